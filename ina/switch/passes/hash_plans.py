"""Hashes of the main path over memory: a frame's bytes as they came, or a header that is made for
it and an array behind it.

Put together bit by bit, what a packet's CRC is over costs more than the CRC. Before ingress all of
it still lies in the frame, but for what the program has replaced by constants: bytes that a switch
may change on the way. Of a packet that leaves, its copies have the same values, and a CRC is
linear: that of a header and of what stands behind it is made of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ina.switch.ir.data import Field
from ina.switch.ir.expr import Const, FieldRef, InPacket, WholeArray
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Hash, HashInput
from ina.switch.ir.walk import pipeline_parts, walk
from ina.switch.passes.effect_places import Kind
from ina.switch.passes.effects import effects_of_copies
from ina.switch.passes.late_arrays import LateArray
from ina.switch.passes.main_path import MainIngress, ParserPath

_BLOCK_BYTES = 16
"""Of which patched bytes are a multiple."""
MOST_PATCHED_BYTES = 128
"""INA_CRC_MOST_PATCHED of runtime/ina_crc.h."""
WORD_BITS = 64
_ALGORITHMS = ("crc32", "crc32_custom")


@dataclass(frozen=True)
class Patched:
    """Over a frame's bytes from some place on, of which some are others."""

    first_bytes: int
    """In the frame."""
    size_bytes: int
    keep: bytes
    """Of the first of them: the bits that count as they came."""
    ones: bytes
    """Of the same: the bits that are set."""


@dataclass(frozen=True)
class Headed:
    """Over words, and a late array behind them that no copy of a packet changes."""

    words: tuple[tuple[HashInput, ...], ...]
    """WORD_BITS each, of some inputs, one after another."""
    array: WholeArray


HashPlan = Patched | Headed


def plan_hashes(
    program: Program,
    path: ParserPath,
    usual: MainIngress,
    late_arrays: Mapping[str, LateArray],
    in_packet: AbstractSet[tuple[str, str]],
) -> dict[Hash, HashPlan]:
    """Those that the main path asks of before ingress, and those of egress. ``in_packet``: (header,
    field) that are read from the frame before ingress."""
    found: dict[Hash, HashPlan] = {}
    for node in usual.computed:
        if isinstance(node, Hash) and _ends_late(node, late_arrays):
            patched = _patched(program, path, node, in_packet)
            if patched is not None:
                found[node] = patched
    changed = effects_of_copies(program).writes.names(Kind.VALID)
    valid = {name for name, there in usual.facts.valid.items() if there and name not in changed}
    for node in _of_egress(program):
        if _ends_late(node, late_arrays):
            headed = _headed(node, valid)
            if headed is not None:
                found[node] = headed
    return found


def hashes_late_arrays(program: Program, late_arrays: Mapping[str, LateArray]) -> bool:
    """Whether egress has a hash over one."""
    inputs = (item.value for node in _of_egress(program) for item in node.inputs)
    return any(isinstance(it, WholeArray) and it.header in late_arrays for it in inputs)


def _of_egress(program: Program) -> list[Hash]:
    nodes = walk(tuple(pipeline_parts(program, program.egress)))
    return [node for node in nodes if isinstance(node, Hash)]


def _ends_late(stmt: Hash, late_arrays: Mapping[str, LateArray]) -> bool:
    """Whether it is a CRC-32 whose last input is a late array."""
    last = stmt.inputs[-1].value if stmt.inputs else None
    is_late = isinstance(last, WholeArray) and last.header in late_arrays
    return is_late and stmt.algorithm in _ALGORITHMS


def _patched(
    program: Program, path: ParserPath, stmt: Hash, in_packet: AbstractSet[tuple[str, str]]
) -> Patched | None:
    """None: not all is one behind the other in the frame, or constant."""
    *head, last = stmt.inputs
    array = last.value
    assert isinstance(array, WholeArray)
    keep = ones = position = 0
    firsts = set()  # bits in the frame at which the hash's input begins
    for item in head:
        width, value = item.width_bits, item.value
        keep, ones = keep << width, ones << width
        if isinstance(value, Const):
            ones |= value.value % (1 << width)
        else:
            at = _bit_of(program, path, item, in_packet)
            if at is None:
                return None
            keep |= (1 << width) - 1
            firsts.add(at - position)
        position += width
    fields = program.headers[array.header].type.fields
    firsts.add(_bit(path, array.header, fields[array.first]) - position)
    first = firsts.pop()
    patched = -(-position // (8 * _BLOCK_BYTES)) * _BLOCK_BYTES
    size = (position + last.width_bits) // 8
    if firsts or first % 8 or first < 0 or position % 8 or patched > min(size, MOST_PATCHED_BYTES):
        return None
    rest = 8 * patched - position
    return Patched(
        first // 8,
        size,
        (keep << rest | (1 << rest) - 1).to_bytes(patched, "big"),
        (ones << rest).to_bytes(patched, "big"),
    )


def _bit_of(
    program: Program, path: ParserPath, item: HashInput, in_packet: AbstractSet[tuple[str, str]]
) -> int | None:
    """The first bit in the frame of an input that is a field of as many bits, as it came."""
    ref = item.value
    if not isinstance(ref, FieldRef) or ref.header not in path.offsets_bytes:
        return None
    as_it_came = isinstance(ref, InPacket) or (ref.header, ref.field) in in_packet
    field = program.headers[ref.header].type.by_name[ref.field]
    if not as_it_came or field.width_bits != item.width_bits:
        return None
    return _bit(path, ref.header, field) if item.header in ("", ref.header) else None


def _bit(path: ParserPath, header: str, field: Field) -> int:
    return 8 * path.offsets_bytes[header] + field.offset_bits


def _headed(stmt: Hash, valid: set[str]) -> Headed | None:
    """None: something may not be there, or is not made of whole words."""
    *head, last = stmt.inputs
    array = last.value
    assert isinstance(array, WholeArray)
    if any(item.header and item.header not in valid for item in stmt.inputs):
        return None
    words: list[tuple[HashInput, ...]] = []
    pending: list[HashInput] = []
    for item in head:
        pending.append(item)
        bits = sum(it.width_bits for it in pending)
        if not isinstance(item.value, (Const, FieldRef)) or bits > WORD_BITS:
            return None
        if bits == WORD_BITS:
            words.append(tuple(pending))
            pending = []
    return None if pending or not words else Headed(tuple(words), array)
