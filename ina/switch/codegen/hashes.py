"""Hashes and checksums to C."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.data import Field
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Checksum
from ina.switch.ir.ranges import range_of
from ina.switch.ir.stmt import Hash, HashInput

if TYPE_CHECKING:
    from ina.switch.codegen.statements import Statements

MAX_INPUT_BITS = 2048 * 8
"""INA_HASH_MAX_BYTES of runtime/ina_hash.h."""


def emit_hash(to: Statements, stmt: Hash) -> None:
    """``target = base + hash % size``."""
    with to.out.block("", source=stmt.source):
        emit_bits(to, stmt.inputs)
        size = to.expr.exact(stmt.size, 64)
        if range_of(stmt.size)[0] <= 0:
            size = f"({size} ? {size} : 1)"
        base = to.expr.exact(stmt.base, 64)
        to.out.line(
            f"const uint64_t hash = (uint64_t)(ina_hash_{stmt.algorithm}(&bits) % {size} + {base});"
        )
        width = stmt.target.width_bits
        code = "hash" if width in (8, 16, 32, 64) or width > 64 else f"hash & INA_MASK({width})"
        to.store(stmt.target, code, stmt)


def emit_bits(to: Statements, inputs: tuple[HashInput, ...]) -> None:
    """``bits``: the inputs one after another, those of invalid headers left out."""
    if sum(item.width_bits for item in inputs) > MAX_INPUT_BITS:
        raise UnsupportedProgramError("a hash over more than 2048 bytes")
    to.out.line("ina_bits bits;")
    to.out.line("bits.bits = 0;")
    for item in inputs:
        guard = f"if ({to.layout.valid(item.header)}) " if item.header else ""
        value = to.expr.stored(item.value, item.width_bits)
        to.out.line(f"{guard}ina_bits_put(&bits, {item.width_bits}, {value});")


def csum16_terms(to: Statements, inputs: tuple[HashInput, ...]) -> list[tuple[str, str]] | None:
    """(validity, addend) of each input when every header's share is whole 16-bit words.

    A sum of 16-bit words modulo 2^16 - 1 does not care for carries between words: a field counts as
    its value shifted to its place within a word.
    """
    runs: list[tuple[str, list[HashInput]]] = []
    for item in inputs:
        if not runs or runs[-1][0] != item.header:
            runs.append((item.header, []))
        runs[-1][1].append(item)
    terms = []
    for header, items in runs:
        length = sum(item.width_bits for item in items)
        if length % 16:
            return None
        position, addends = length, []
        for item in items:
            position -= item.width_bits
            shift = position % 16
            value = to.expr.stored(item.value, item.width_bits)
            if item.width_bits > 48:
                if item.width_bits > 64 or shift:
                    return None
                addends.append(f"((uint64_t){value} >> 32) + ((uint64_t){value} & 0xffffffffu)")
            elif value != "0":
                addends.append(f"((uint64_t){value} << {shift})" if shift else f"(uint64_t){value}")
        terms.append((to.layout.valid(header) if header else "", " + ".join(addends) or "0"))
    return terms


def emit_csum16(to: Statements, inputs: tuple[HashInput, ...], name: str) -> None:
    """``const uint16_t name = csum16(inputs)``."""
    terms = csum16_terms(to, inputs)
    if terms is None:
        to.out.line(f"uint16_t {name};")
        with to.out.block(""):
            emit_bits(to, inputs)
            to.out.line(f"{name} = (uint16_t)ina_hash_csum16(&bits);")
        return
    to.out.line(f"uint64_t {name}_sum = 0;")
    for valid, addend in terms:
        guard = f"if ({valid}) " if valid else ""
        to.out.line(f"{guard}{name}_sum += {addend};")
    to.out.line(f"const uint16_t {name} = ina_csum16_finish({name}_sum);")


def emit_wire_csum16(to: Statements, checksum: Checksum, written: set[str], name: str) -> None:
    """A header's checksum: words with a written field from the struct, the rest from the packet.

    The caller has made sure (``reads_wire``) that the inputs lie as on the wire. The field that the
    sum is kept in is not among them, so those words are never read.
    """
    header = checksum.target.header
    wire = to.layout.wire(header)
    refs = [item.value for item in checksum.inputs if isinstance(item.value, FieldRef)]
    by_name = to.layout.program.headers[header].type.by_name
    fields = [by_name[ref.field] for ref in refs]
    covered: Counter[int] = Counter()
    for field in fields:
        covered.update(bit // 16 for bit in range(field.offset_bits, _end(field)))
    own = {word for word, bits in covered.items() if bits < 16}  # words summed field by field
    own.update(word for field in fields if field.name in written for word in _words(field))
    while True:
        more = {word for field in fields if own & _words(field) for word in _words(field)}
        if more <= own:
            break
        own |= more
    terms = []
    for ref, field in zip(refs, fields, strict=True):
        if own & _words(field):
            value = f"(uint64_t){to.layout.field_or_wire(ref)}"
            shift = -_end(field) % 16
            terms.append(f"({value} << {shift})" if shift else value)
    words = sorted(set(covered) - own)
    while words:
        at = words.pop(0)
        pair = bool(words) and words[0] == at + 1
        if pair:
            words.pop(0)
        terms.append(f"ina_load({wire} + {2 * at}, {4 if pair else 2})")
    to.out.line(f"const uint16_t {name} = ina_csum16_finish({' + '.join(terms) or 0});")


def _end(field: Field) -> int:
    return field.offset_bits + field.width_bits


def _words(field: Field) -> set[int]:
    """The 16-bit words of the header that the field lies in."""
    return set(range(field.offset_bits // 16, (_end(field) - 1) // 16 + 1))
