"""Items of one program as P4Runtime's entities, and back. Names are resolved by its P4Info.

finsy's entities begin and end here. A Tofino's P4Info has the pipe's name before those of the
program: ``pipe.`` is put before names that are only there with it, and taken off what is read.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from finsy import (
    P4CloneSessionEntry,
    P4CounterData,
    P4CounterEntry,
    P4DirectCounterEntry,
    P4MulticastGroupEntry,
    P4PacketOut,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4entity import P4Entity, P4Replica, decode_entity
from finsy.p4schema import P4EntityMap, P4MatchField, P4MatchType
from finsy.proto import p4r

from ina.tables.values import (
    AnyItem,
    CloneSession,
    Count,
    Counter,
    CounterRef,
    DefaultAction,
    Entry,
    Group,
    Match,
    MatchValue,
    lpm_text,
)

PIPE = "pipe."
_IPV4_BITS = 32


class ProgramFiles(Protocol):
    """A compiled P4 program, as :func:`ina.p4.compiled` gives it."""

    @property
    def p4info(self) -> Path:
        """In text form."""
        ...

    @property
    def bmv2_json(self) -> Path:
        """What p4c-bm2-ss made; of a Tofino its device file."""
        ...


class Entities:
    """Of one program. What cannot be encoded raises ValueError: no such name, or too many bits."""

    def __init__(self, p4info: Path, device_config: Path | None = None) -> None:
        """``device_config``: None, where the program itself is set by somebody else."""
        self._schema = P4Schema(p4info, device_config)

    @property
    def cookie(self) -> int:
        """Of the program: what a switch that runs it tells."""
        return self._schema.p4cookie

    @property
    def config(self) -> p4r.ForwardingPipelineConfig:
        """The program, to be set."""
        return self._schema.get_pipeline_config()

    def encode(self, item: AnyItem) -> p4r.Entity:
        """To be written. A default action without a name is the program's own."""
        return self._encoded(self._entity(item))

    def decode(self, entity: p4r.Entity) -> AnyItem:
        """What was encoded, or read."""
        if entity.HasField("packet_replication_engine_entry"):
            engine = entity.packet_replication_engine_entry
            if engine.HasField("clone_session_entry"):
                clones = engine.clone_session_entry
                return CloneSession(clones.session_id, _copies(clones.replicas))
            group = engine.multicast_group_entry
            return Group(group.multicast_group_id, _copies(group.replicas))
        found: Any = decode_entity(entity, self._schema)
        table = _bare(self._schema.tables[found.table_id].name)
        action, params = "", ()
        if found.action is not None:
            action = _bare(self._schema.actions[found.action.name].name)
            params = tuple(found.action.args.items())
        if found.is_default_action:
            return DefaultAction(table, action, params)
        return Entry(table, self._match(found), action, params, found.priority)

    def table_of(self, entity: p4r.Entity) -> str:
        """Of an entry; empty: it is none."""
        if not entity.HasField("table_entry"):
            return ""
        return _bare(self._schema.tables[entity.table_entry.table_id].name)

    def entries_of(self, table: str) -> p4r.Entity:
        """To be read: all of a table, or of all."""
        return self._encoded(P4TableEntry(self._table(table)) if table else P4TableEntry())

    def row_counts_of(self, table: str) -> p4r.Entity:
        """To be read: the counters of all of a table's entries."""
        entries = P4TableEntry(self._table(table))
        return self._encoded(P4DirectCounterEntry(table_entry=entries))

    @staticmethod
    def groups() -> p4r.Entity:
        """To be read: all of them."""
        return P4MulticastGroupEntry().encode(P4Schema())

    def counter(self, ref: CounterRef, *, is_zero: bool = False) -> p4r.Entity:
        """To be read, or set to nothing seen."""
        data = P4CounterData() if is_zero else None
        if isinstance(ref, Counter):
            name = in_pipe(self._schema.counters, ref.name)
            return self._encoded(P4CounterEntry(name, index=ref.index, data=data))
        entry = P4TableEntry(self._table(ref.table), match=P4TableMatch(ref.match))
        return self._encoded(P4DirectCounterEntry(table_entry=entry, data=data))

    def count(self, entity: p4r.Entity) -> Count:
        """What a counter that was read has seen."""
        found: Any = decode_entity(entity, self._schema)
        return Count(found.packet_count, found.byte_count)

    def counted_match(self, entity: p4r.Entity) -> Match:
        """Whose the direct counter is; empty: the default action's."""
        found: Any = decode_entity(entity, self._schema)
        return () if found.table_entry is None else self._match(found.table_entry)

    def packet_out(self, packet: bytes, egress_port: int) -> p4r.StreamMessageRequest:
        """A frame, by the header that the programs have."""
        out = P4PacketOut(packet, egress_port=egress_port, padding=0)
        return out.encode_update(self._schema)

    def _entity(self, item: AnyItem) -> P4Entity:
        match item:
            case Entry(table, match, action, params, priority):
                return P4TableEntry(
                    self._table(table),
                    match=P4TableMatch(match),
                    action=self._action(action, params),
                    priority=priority,
                )
            case DefaultAction(table, action, params):
                chosen = self._action(action, params) if action else None
                return P4TableEntry(self._table(table), action=chosen, is_default_action=True)
            case Group(number, replicas):
                return P4MulticastGroupEntry(number, replicas=replicas)
            case CloneSession(number, replicas):
                return P4CloneSessionEntry(number, replicas=replicas)

    def _encoded(self, entity: Any) -> p4r.Entity:
        encoded: p4r.Entity = entity.encode(self._schema)
        return encoded

    def _match(self, entry: Any) -> Match:
        if entry.match is None:
            return ()
        fields = self._schema.tables[entry.table_id].match_fields
        return tuple((name, _shown(fields[name], value)) for name, value in entry.match.items())

    def _table(self, name: str) -> str:
        return in_pipe(self._schema.tables, name)

    def _action(self, name: str, params: Iterable[tuple[str, int]]) -> P4TableAction:
        return P4TableAction(in_pipe(self._schema.actions, name), **dict(params))


@functools.lru_cache(maxsize=16)
def entities_of(p4info: Path, device_config: Path | None = None) -> Entities:
    """The same, read once in a process: the P4Info of a large program takes a while."""
    return Entities(p4info, device_config)


def in_pipe(known: P4EntityMap[Any], name: str) -> str:
    """The name as ``known`` (a schema's tables, actions, counters) has it: as it is, or with the
    pipe's in front."""
    return PIPE + name if known.get(name) is None and known.get(PIPE + name) is not None else name


def _bare(name: str) -> str:
    return name.removeprefix(PIPE)


def _copies(replicas: Iterable[p4r.Replica]) -> tuple[tuple[int, int], ...]:
    return tuple((copy.port, copy.instance) for copy in map(P4Replica.decode, replicas))


def _shown(field: P4MatchField, value: Any) -> MatchValue:
    """finsy gives pairs of numbers for all but exact matches."""
    match field.match_type:
        case P4MatchType.LPM:
            return lpm_text(*value, is_ipv4=field.bitwidth == _IPV4_BITS)
        case P4MatchType.TERNARY:
            return f"{value[0]}/&{value[1]}"
        case P4MatchType.RANGE:
            return f"{value[0]}...{value[1]}"
    return value if isinstance(value, int) else str(value)
