"""P4Runtime as a :class:`~ina.controller.switches.southbound.interface.SwitchSession`.

finsy's entities end here. A Tofino's P4Info has the pipe's name before those of the program:
``pipe.`` is put before names that are only there with it, and taken off what is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finsy import (
    P4CounterData,
    P4CounterEntry,
    P4DirectCounterEntry,
    P4MulticastGroupEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4entity import P4Entity
from finsy.p4schema import P4EntityMap

from ina.controller.switches.southbound.p4runtime import P4RuntimeSession
from ina.p4 import CompiledProgram
from ina.tables.errors import SwitchError
from ina.tables.values import Count, Counter, Entry, Group, Item, MatchValue, PortState

PIPE = "pipe."


class P4RuntimeSwitch:
    """Wraps a connected session."""

    def __init__(self, session: P4RuntimeSession, program: CompiledProgram) -> None:
        """``program``: what the switch shall run; its names are known from now on."""
        self.session = session
        self._program = program
        self._schema = P4Schema(program.p4info)

    @property
    def address(self) -> str:
        """See :class:`SwitchSession`."""
        return self.session.address

    @property
    def device_id(self) -> int:
        """See :class:`SwitchSession`."""
        return self.session.device_id

    @property
    def election_id(self) -> int:
        """See :class:`SwitchSession`."""
        return self.session.election_id

    @property
    def is_primary(self) -> bool:
        """See :class:`SwitchSession`."""
        return self.session.is_primary

    @property
    def lost(self) -> str | None:
        """See :class:`SwitchSession`."""
        return self.session.lost

    @property
    def heard_s(self) -> float:
        """See :class:`SwitchSession`."""
        return self.session.heard_s

    def who_is_primary(self) -> str:
        """See :class:`SwitchSession`."""
        return self.session.who_is_primary()

    async def close(self) -> None:
        """See :class:`SwitchSession`."""
        await self.session.close()

    async def until_primary(self) -> None:
        """See :class:`SwitchSession`."""
        await self.session.until_primary()

    async def until_backup(self) -> None:
        """See :class:`SwitchSession`."""
        await self.session.until_backup()

    async def set_pipeline(self) -> bool:
        """See :class:`SwitchSession`. Ports are the switch's own affair here."""
        return await self.session.set_pipeline(self._program)

    def port_number(self, name: str) -> int:
        """P4Runtime knows numbers alone."""
        raise SwitchError(
            f"switch {self.address}: port {name}: P4Runtime has no names of the front panel"
        )

    async def insert(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self.session.insert(self._encode(items))

    async def modify(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self.session.modify(self._encode(items))

    async def delete(self, items: Sequence[Item]) -> None:
        """See :class:`SwitchSession`."""
        await self.session.delete(self._encode(items))

    async def read_entries(self, table: str = "") -> list[Entry]:
        """See :class:`SwitchSession`."""
        wanted = P4TableEntry(self._table(table)) if table else P4TableEntry()
        entries = await self.session.read([wanted])
        return [self._read_entry(entry) for entry in entries if not entry.is_default_action]

    async def read_groups(self) -> list[Group]:
        """See :class:`SwitchSession`."""
        return [
            Group(
                group.multicast_group_id,
                tuple((copy.port, copy.instance) for copy in group.replicas),
            )
            for group in await self.session.read([P4MulticastGroupEntry()])
        ]

    async def read_cells(self, cells: Sequence[Counter]) -> list[tuple[Counter, Count]]:
        """See :class:`SwitchSession`."""
        if not cells:
            return []
        wanted = [P4CounterEntry(self._counter(cell.name), index=cell.index) for cell in cells]
        return [
            (Counter(self._full_counter(found.counter_id), found.index or 0), _count(found))
            for found in await self.session.read(wanted)
        ]

    async def clear_cells(self, cells: Sequence[Counter]) -> None:
        """See :class:`SwitchSession`."""
        await self.session.modify(
            [
                P4CounterEntry(self._counter(cell.name), index=cell.index, data=P4CounterData())
                for cell in cells
            ]
        )

    async def read_row_counts(self, table: str) -> list[tuple[Mapping[str, MatchValue], Count]]:
        """See :class:`SwitchSession`."""
        wanted = P4DirectCounterEntry(table_entry=P4TableEntry(self._table(table)))
        return [
            (_match(found.table_entry), _count(found))
            for found in await self.session.read([wanted])
            if found.table_entry is not None and found.table_entry.match is not None
        ]

    async def read_ports(self) -> list[PortState]:
        """P4Runtime tells of none."""
        return []

    def _encode(self, items: Iterable[Item]) -> list[P4Entity]:
        return entities(self._schema, items)

    def _read_entry(self, entry: P4TableEntry) -> Entry:
        action: Any = entry.action
        return Entry(
            _bare(self._schema.tables[entry.table_id].name),
            tuple(_match(entry).items()),
            "" if action is None else _bare(self._schema.actions[action.name].name),
            () if action is None else tuple(action.args.items()),
        )

    def _table(self, name: str) -> str:
        return in_pipe(self._schema.tables, name)

    def _counter(self, name: str) -> str:
        return in_pipe(self._schema.counters, name)

    def _full_counter(self, alias: str) -> str:
        return _bare(self._schema.counters[alias].name)


def entities(schema: P4Schema, items: Iterable[Item]) -> list[P4Entity]:
    """Items as finsy has them, of a program with these names."""
    found: list[P4Entity] = []
    for item in items:
        if isinstance(item, Entry):
            action = P4TableAction(in_pipe(schema.actions, item.action), **dict(item.params))
            table = in_pipe(schema.tables, item.table)
            found.append(P4TableEntry(table, match=P4TableMatch(item.match), action=action))
        else:
            found.append(P4MulticastGroupEntry(item.number, replicas=item.replicas))
    return found


def in_pipe(known: P4EntityMap[Any], name: str) -> str:
    """The name as ``known`` (a schema's tables, actions, counters) has it: as it is, or with the
    pipe's in front."""
    return PIPE + name if known.get(name) is None and known.get(PIPE + name) is not None else name


def _bare(name: str) -> str:
    return name.removeprefix(PIPE)


def _match(entry: P4TableEntry) -> dict[str, MatchValue]:
    values = dict(entry.match or {})
    return {name: value if isinstance(value, int) else str(value) for name, value in values.items()}


def _count(found: P4CounterEntry | P4DirectCounterEntry) -> Count:
    return Count(found.packet_count, found.byte_count)
