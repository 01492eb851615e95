"""Fields that ingress changes: unpacked on the main path where a packet's way comes to the change.

Before it, ingress reads such a field from the packet, as it reads late fields. Behind branches of
which some change it, it is unpacked on all ways; so a packet that is dropped on a way without the
change, or that overwrites the field, has never held it in a machine register.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from ina.switch.ir.expr import FieldRef, InPacket
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Apply, Assign, Block, If, Loop, Stmt
from ina.switch.ir.walk import child_names, pipeline_parts, walk
from ina.switch.passes.effect_places import Kind, field_of
from ina.switch.passes.effects import effects, effects_of_parser, field_ref, verifications
from ina.switch.passes.main_path import MainIngress, ParserPath
from ina.switch.passes.storage import Storage

Fields = frozenset[FieldRef]


def unpack_at_changes(
    program: Program, path: ParserPath, ingress: MainIngress, types: Mapping[str, Storage]
) -> tuple[MainIngress, Fields]:
    """The same with reads from the packet, and the fields that its block unpacks itself."""
    fields = _fields(program, path, ingress.block, types)
    block, left = _unpack(program, ingress.block, fields)
    assert not left, "every field that is looked at changes somewhere"
    asked = {
        name: _read(getattr(ingress, name), fields) for name in ("after", "computed", "of_computed")
    }
    return replace(ingress, block=block, **asked), fields


def _fields(
    program: Program, path: ParserPath, ingress: Block, types: Mapping[str, Storage]
) -> Fields:
    """Scalars of the main path's headers that plain statements of ingress change, and that nothing
    else before egress looks at: no parser state, checksum, table or loop."""
    if effects(program, ingress).leaves:
        return frozenset()
    elsewhere = effects(
        program,
        tuple(state.keys for state in program.states.values()),
        verifications(program),
        *pipeline_parts(program, program.ingress)[1:],  # of gates, too
        *(node for node in walk(ingress) if isinstance(node, Loop)),
        *(way for node in walk(ingress) if isinstance(node, Apply) for _, way in node.on_action),
    )
    elsewhere = effects_of_parser(program).then(elsewhere)
    plain = [effects(program, stmt) for stmt in _plain(ingress)]
    not_ours = elsewhere.reads.fields() | elsewhere.writes.fields()
    for done in plain:
        not_ours |= done.writes.fields() - done.sets.fields()
    all_done = elsewhere.then(effects(program, ingress))
    whole = all_done.whole | all_done.writes.names(Kind.VALID)
    found = frozenset[tuple[str, str]]().union(*(done.sets.fields() for done in plain)) - not_ours
    refs = (field_ref(program, header, field) for header, field in found)
    return frozenset(
        ref
        for ref in refs
        if ref.header in path.offsets_bytes
        and ref.header not in whole
        and _is_loadable(program, ref, types)
    )


def _plain(block: Block) -> Iterator[Stmt]:
    """The statements that have no others in them."""
    for stmt in block:
        if isinstance(stmt, If):
            yield from _plain((*stmt.then, *stmt.otherwise))
        elif isinstance(stmt, Apply):
            yield from _plain((*stmt.on_hit, *stmt.on_miss))
        elif not isinstance(stmt, Loop):
            yield stmt


def _is_loadable(program: Program, ref: FieldRef, types: Mapping[str, Storage]) -> bool:
    header_type = program.headers[ref.header].type
    field = header_type.by_name[ref.field]
    is_scalar = ref.field in types[header_type.name].scalars
    return is_scalar and not ref.signed and field.offset_bits % 8 + field.width_bits <= 64


def _unpack(program: Program, block: Block, packed: Fields) -> tuple[Block, Fields]:
    """``packed``: the fields that stand in the packet before the block; also those after it."""
    result: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, If):
            condition = _read(stmt.condition, packed)
            (then, otherwise), packed = _ways(program, (stmt.then, stmt.otherwise), packed)
            result.append(replace(stmt, condition=condition, then=then, otherwise=otherwise))
        elif isinstance(stmt, Apply):
            (on_hit, on_miss), packed = _ways(program, (stmt.on_hit, stmt.on_miss), packed)
            result.append(replace(stmt, on_hit=on_hit, on_miss=on_miss))
        elif isinstance(stmt, Loop):
            result.append(stmt)
        else:
            result.append(_read(stmt, packed))
            sets = effects(program, stmt).sets
            packed = frozenset(ref for ref in packed if field_of(ref) not in sets)
    return tuple(result), packed


def _ways(program: Program, ways: tuple[Block, ...], packed: Fields) -> tuple[list[Block], Fields]:
    """Exactly one of them is gone; behind them a field is unpacked on all ways or on none."""
    done = [_unpack(program, way, packed) for way in ways]
    after = frozenset.intersection(*(left for _, left in done))
    return [(*way, *_loads(left - after)) for way, left in done], after


def _loads(fields: AbstractSet[FieldRef]) -> list[Assign]:
    by_name = sorted(fields, key=lambda ref: (ref.header, ref.field))
    return [Assign(ref, InPacket(ref.header, ref.field, ref.width_bits)) for ref in by_name]


def _read(node: Any, packed: Fields) -> Any:
    """The expression or statement, which reads these fields from the packet."""
    if isinstance(node, tuple):
        return tuple(_read(item, packed) for item in node)
    if isinstance(node, FieldRef):
        is_packed = node in packed
        return InPacket(node.header, node.field, node.width_bits) if is_packed else node
    if not hasattr(node, "__dataclass_fields__"):
        return node
    names = [name for name in child_names(node.__class__) if name != "target"]
    return replace(node, **{name: _read(getattr(node, name), packed) for name in names})
