"""What a P4Info and the program say about each other: P4Runtime ids to the program's objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from finsy.proto import p4i

from ina.switch.ir.program import MatchKind, Program, Table
from ina.switch.p4runtime.status import StatusError, invalid, unimplemented

_KINDS = {
    p4i.MatchField.EXACT: MatchKind.EXACT,
    p4i.MatchField.LPM: MatchKind.LPM,
    p4i.MatchField.TERNARY: MatchKind.TERNARY,
    p4i.MatchField.RANGE: MatchKind.RANGE,
    p4i.MatchField.OPTIONAL: MatchKind.OPTIONAL,
}
_WITH_PRIORITY = {MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL}


@dataclass(frozen=True)
class FieldSchema:
    """A match field, an action parameter, or a field of a controller header."""

    id: int
    name: str
    width_bits: int
    kind: MatchKind = MatchKind.EXACT


@dataclass(frozen=True)
class ActionSchema:
    """An action; parameters in the program's order."""

    id: int
    name: str
    params: tuple[FieldSchema, ...]


@dataclass(frozen=True)
class ActionRef:
    """An action of a table, and where the table may use it."""

    action: ActionSchema
    in_entries: bool
    as_default: bool


@dataclass(frozen=True)
class CounterSchema:
    """A counter; ``size`` is 0 for a direct one. What it does not count is not reported."""

    id: int
    name: str
    size: int
    packets: bool
    bytes: bool


@dataclass(frozen=True)
class TableSchema:
    """A table; ``fields`` in the order of the program's key."""

    id: int
    name: str
    fields: tuple[FieldSchema, ...]
    actions: Mapping[int, ActionRef]
    is_const: bool
    const_default: bool
    direct_counter: CounterSchema | None
    program: Table

    @property
    def needs_priority(self) -> bool:
        """Whether an entry must carry a priority."""
        return any(field.kind in _WITH_PRIORITY for field in self.fields)

    def action_named(self, name: str) -> ActionSchema | None:
        """The table's action of this full name."""
        return next((r.action for r in self.actions.values() if r.action.name == name), None)


@dataclass(frozen=True)
class Schema:
    """All that the service needs of a P4Info."""

    tables: Mapping[int, TableSchema]
    counters: Mapping[int, CounterSchema]
    direct_counters: Mapping[int, TableSchema]
    packet_in: tuple[FieldSchema, ...]
    packet_out: tuple[FieldSchema, ...]
    unsupported: frozenset[str]
    """Entity kinds that the P4Info has and this switch does not serve, as "meter_entry"."""


def build_schema(p4info: p4i.P4Info, program: Program) -> Schema:
    """Join a P4Info with the loaded program; a StatusError says where they disagree."""
    actions = {a.preamble.id: _action(a) for a in p4info.actions}
    direct = {c.direct_table_id: _counter(c.preamble, c.spec, 0) for c in p4info.direct_counters}
    tables = {
        t.preamble.id: _table(t, actions, direct.get(t.preamble.id), program) for t in p4info.tables
    }
    counters = {c.preamble.id: _counter(c.preamble, c.spec, c.size) for c in p4info.counters}
    known_counters = {counter.name for counter in program.counters}
    for counter in counters.values():
        if counter.name not in known_counters:
            raise _mismatch(f"counter {counter.name}")
    headers = {m.preamble.name: m for m in p4info.controller_packet_metadata}
    return Schema(
        tables=tables,
        counters=counters,
        direct_counters={t.direct_counter.id: t for t in tables.values() if t.direct_counter},
        packet_in=_header(headers.get("packet_in")),
        packet_out=_header(headers.get("packet_out")),
        unsupported=frozenset(_unsupported(p4info)),
    )


def _mismatch(what: str) -> StatusError:
    return invalid(f"P4Info and p4_device_config disagree: the program has no {what}")


def _unsupported(p4info: p4i.P4Info) -> Iterable[str]:
    for there, kind in (
        (p4info.meters, "meter_entry"),
        (p4info.direct_meters, "direct_meter_entry"),
        (p4info.registers, "register_entry"),
        (p4info.digests, "digest_entry"),
        (p4info.value_sets, "value_set_entry"),
        (p4info.externs, "extern_entry"),
    ):
        if len(there):
            yield kind
    if len(p4info.action_profiles):
        yield from ("action_profile_member", "action_profile_group")


def _action(action: p4i.Action) -> ActionSchema:
    params = tuple(_field(p.id, p.name, p.bitwidth, action.preamble.name) for p in action.params)
    return ActionSchema(action.preamble.id, action.preamble.name, params)


def _field(
    id_: int, name: str, width_bits: int, owner: str, kind: MatchKind = MatchKind.EXACT
) -> FieldSchema:
    if width_bits <= 0:  # sdn_string: a translation that only the target's maker can know
        raise unimplemented(f"{owner}, {name}: a type without a bit width (p4runtime_translation)")
    return FieldSchema(id_, name, width_bits, kind)


def _counter(preamble: p4i.Preamble, spec: p4i.CounterSpec, size: int) -> CounterSchema:
    unit = spec.unit
    return CounterSchema(
        preamble.id,
        preamble.name,
        size,
        packets=unit != p4i.CounterSpec.BYTES,
        bytes=unit != p4i.CounterSpec.PACKETS,
    )


def _header(metadata: p4i.ControllerPacketMetadata | None) -> tuple[FieldSchema, ...]:
    if metadata is None:
        return ()
    name = metadata.preamble.name
    fields = tuple(_field(m.id, m.name, m.bitwidth, name) for m in metadata.metadata)
    if sum(field.width_bits for field in fields) % 8:
        raise invalid(f"controller header {name}: not a whole number of bytes")
    return fields


def _table(
    info: p4i.Table,
    actions: Mapping[int, ActionSchema],
    direct_counter: CounterSchema | None,
    program: Program,
) -> TableSchema:
    name = info.preamble.name
    table = program.table(name)
    if table is None:
        raise _mismatch(f"table {name}")
    if len(info.match_fields) != len(table.keys):
        raise _mismatch(f"table {name} with {len(info.match_fields)} match fields")
    fields = []
    for match, key in zip(info.match_fields, table.keys, strict=True):
        kind = _KINDS.get(match.match_type)
        if kind is None:
            raise unimplemented(f"table {name}, {match.name}: match type {match.match_type}")
        compiled = MatchKind.TERNARY if kind is MatchKind.OPTIONAL else kind  # as p4c writes it
        if match.bitwidth != key.width_bits or key.kind not in (kind, compiled):
            raise _mismatch(
                f"match field {match.name} of {match.bitwidth} bits, {kind.value}, in table {name}"
            )
        fields.append(_field(match.id, match.name, match.bitwidth, name, kind))
    refs = {}
    for ref in info.action_refs:
        schema = actions.get(ref.id)
        if schema is None:
            raise invalid(f"P4Info: table {name} names action {ref.id}, which P4Info does not have")
        action = table.action(schema.name)
        if action is None:
            raise _mismatch(f"action {schema.name} in table {name}")
        if [p.width_bits for p in schema.params] != [p.width_bits for p in action.params]:
            raise _mismatch(f"action {schema.name} with these parameters")
        refs[ref.id] = ActionRef(
            schema,
            in_entries=ref.scope != p4i.ActionRef.DEFAULT_ONLY,
            as_default=ref.scope != p4i.ActionRef.TABLE_ONLY,
        )
    return TableSchema(
        info.preamble.id,
        name,
        tuple(fields),
        refs,
        is_const=info.is_const_table or table.is_const,
        const_default=info.const_default_action_id != 0,
        direct_counter=direct_counter,
        program=table,
    )
