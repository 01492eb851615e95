"""What a P4Info and the program say about each other: P4Runtime ids to the program's objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from finsy.proto import p4i

from ina.switch.ir.program import Action, MatchKind, Program, Table
from ina.switch.p4runtime.status import StatusError, invalid, unimplemented

_KINDS = {
    p4i.MatchField.EXACT: MatchKind.EXACT,
    p4i.MatchField.LPM: MatchKind.LPM,
    p4i.MatchField.TERNARY: MatchKind.TERNARY,
    p4i.MatchField.RANGE: MatchKind.RANGE,
    p4i.MatchField.OPTIONAL: MatchKind.OPTIONAL,
}
_Field = p4i.MatchField | p4i.Action.Param | p4i.ControllerPacketMetadata.Metadata
_WITH_PRIORITY = {MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL}


@dataclass(frozen=True)
class FieldSchema:
    """A match field, an action parameter, or a field of a controller header."""

    id: int
    name: str
    width_bits: int
    """In the program. A client's translated number (p4runtime_translation) is taken as it is."""
    kind: MatchKind = MatchKind.EXACT
    is_string: bool = False
    """Translated from a string: only the target's maker could say which value it means."""


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
class DigestSchema:
    """A digest; ``form`` is that of its value: struct, tuple or bitstring."""

    id: int
    name: str
    form: str


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
    digests: Mapping[int, DigestSchema]
    unsupported: frozenset[str]
    """Entity kinds that the P4Info has and this switch does not serve, as "meter_entry"."""


def build_schema(p4info: p4i.P4Info, program: Program) -> Schema:
    """Join a P4Info with the loaded program; a StatusError says where they disagree."""
    removed = _removed_tables(p4info, program)
    types = _Types(p4info)
    actions = {a.preamble.id: a for a in p4info.actions}
    direct = {c.direct_table_id: _counter(c.preamble, c.spec, 0) for c in p4info.direct_counters}
    tables = {
        t.preamble.id: _table(t, actions, direct.get(t.preamble.id), program, types)
        for t in p4info.tables
        if t.preamble.name not in removed
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
        packet_in=_header(headers.get("packet_in"), program, types),
        packet_out=_header(headers.get("packet_out"), program, types),
        digests={info.preamble.id: _digest(info, p4info, program) for info in p4info.digests},
        unsupported=frozenset(_unsupported(p4info)),
    )


def _removed_tables(p4info: p4i.P4Info, program: Program) -> set[str]:
    """Tables that p4c took out of the program, for no packet reaches them.

    It writes P4Info before. If the program has tables that P4Info does not have, then the two are
    not of one program, and nothing is taken as removed.
    """
    described = {t.preamble.name for t in p4info.tables}
    if any(table.name not in described for table in program.tables):
        return set()
    return described - {table.name for table in (*program.tables, *program.folded)}


def _mismatch(what: str) -> StatusError:
    return invalid(f"P4Info and p4_device_config disagree: the program has no {what}")


def _unsupported(p4info: p4i.P4Info) -> Iterable[str]:
    for there, kind in (
        (p4info.meters, "meter_entry"),
        (p4info.direct_meters, "direct_meter_entry"),
        (p4info.registers, "register_entry"),
        (p4info.value_sets, "value_set_entry"),
        (p4info.externs, "extern_entry"),
    ):
        if len(there):
            yield kind
    if len(p4info.action_profiles):
        yield from ("action_profile_member", "action_profile_group")


class _Types:
    """How wide clients' values are, and how wide the program's."""

    def __init__(self, p4info: p4i.P4Info) -> None:
        self._translated = {
            name: new.translated_type
            for name, new in p4info.type_info.new_types.items()
            if new.HasField("translated_type")
        }

    def is_translated(self, info: _Field) -> bool:
        """Whether the client's values are not the program's."""
        return info.type_name.name in self._translated

    def field(
        self, info: _Field, width_bits: int, what: str, kind: MatchKind = MatchKind.EXACT
    ) -> FieldSchema:
        """A field that the program has with this width; ``what`` is what it lacks otherwise."""
        is_string = False
        if self.is_translated(info):
            translated = self._translated[info.type_name.name]
            is_string = translated.WhichOneof("sdn_type") == "sdn_string"
        elif info.bitwidth and info.bitwidth != width_bits:  # p4c gives an error no width
            raise _mismatch(what)
        return FieldSchema(info.id, info.name, width_bits, kind, is_string)


def _counter(preamble: p4i.Preamble, spec: p4i.CounterSpec, size: int) -> CounterSchema:
    unit = spec.unit
    return CounterSchema(
        preamble.id,
        preamble.name,
        size,
        packets=unit != p4i.CounterSpec.BYTES,
        bytes=unit != p4i.CounterSpec.PACKETS,
    )


def _digest(info: p4i.Digest, p4info: p4i.P4Info, program: Program) -> DigestSchema:
    name, form = info.preamble.name, info.type_spec.WhichOneof("type_spec")
    digest = next((each for each in program.turns.digests if each.name == name), None)
    if digest is None:
        raise _mismatch(f"digest {name}")
    members = [info.type_spec]
    if form == "struct":
        members = [
            member.type_spec
            for member in p4info.type_info.structs[info.type_spec.struct.name].members
        ]
    elif form == "tuple":
        members = list(info.type_spec.tuple.members)
    if any(member.WhichOneof("type_spec") != "bitstring" for member in members):
        raise unimplemented(f"digest {name} of anything but fields")
    if len(members) != len(digest.fields):
        raise _mismatch(f"digest {name} of {len(members)} fields")
    return DigestSchema(info.preamble.id, name, str(form))


def _header(
    metadata: p4i.ControllerPacketMetadata | None, program: Program, types: _Types
) -> tuple[FieldSchema, ...]:
    if metadata is None:
        return ()
    name, infos = metadata.preamble.name, metadata.metadata
    widths = [info.bitwidth for info in infos]
    if any(types.is_translated(info) for info in infos):
        widths = _widths_of_header(program, infos, types) or widths
    fields = []
    for info, width_bits in zip(infos, widths, strict=True):
        field = types.field(info, width_bits, f"{info.name} of {info.bitwidth} bits in {name}")
        if field.is_string or not width_bits:
            raise unimplemented(f"{name}, {info.name}: a string (p4runtime_translation)")
        fields.append(field)
    if sum(widths) % 8:
        raise invalid(f"controller header {name}: not a whole number of bytes")
    return tuple(fields)


def _widths_of_header(
    program: Program, infos: Sequence[p4i.ControllerPacketMetadata.Metadata], types: _Types
) -> list[int] | None:
    """Of the header with these fields: neither p4c file says which one a controller header is."""
    for header in program.headers.values():
        fields = header.type.fields
        if (
            not header.metadata
            and [field.name for field in fields] == [info.name for info in infos]
            and all(
                types.is_translated(info) or info.bitwidth == field.width_bits
                for info, field in zip(infos, fields, strict=True)
            )
        ):
            return [field.width_bits for field in fields]
    return None


def _action(info: p4i.Action, action: Action, types: _Types) -> ActionSchema:
    what = f"action {info.preamble.name} with these parameters"
    if len(info.params) != len(action.params):
        raise _mismatch(what)
    params = tuple(
        types.field(param, own.width_bits, what)
        for param, own in zip(info.params, action.params, strict=True)
    )
    return ActionSchema(info.preamble.id, info.preamble.name, params)


def _table(
    info: p4i.Table,
    actions: Mapping[int, p4i.Action],
    direct_counter: CounterSchema | None,
    program: Program,
    types: _Types,
) -> TableSchema:
    name = info.preamble.name
    table = next((t for t in (*program.tables, *program.folded) if t.name == name), None)
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
        what = f"match field {match.name} of {match.bitwidth} bits, {kind.value}, in table {name}"
        if key.kind not in (kind, compiled):
            raise _mismatch(what)
        fields.append(types.field(match, key.width_bits, what, kind))
    refs = {}
    for ref in info.action_refs:
        described = actions.get(ref.id)
        if described is None:
            raise invalid(f"P4Info: table {name} names action {ref.id}, which P4Info does not have")
        action_name = described.preamble.name
        action = table.action(action_name)
        if action is None:
            raise _mismatch(f"action {action_name} in table {name}")
        refs[ref.id] = ActionRef(
            _action(described, action, types),
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
