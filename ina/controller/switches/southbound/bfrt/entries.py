"""Table entries and counters through the client; groups are passed on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import grpc

from ina.controller.switches.southbound.bfrt.multicast import Multicast
from ina.controller.switches.southbound.bfrt.program import Program
from ina.controller.switches.southbound.bfrt.refusals import Refusals
from ina.tables.errors import SwitchError
from ina.tables.values import Count, Counter, Entry, Group, Item, MatchValue

SOFTWARE, HARDWARE = {"from_hw": False}, {"from_hw": True}
"""Whether to read what the driver remembers, or the chip: counters are only there."""


class Entries:
    """Methods block, and raise what the client raises, or SwitchError."""

    def __init__(
        self, gc: Any, target: Any, program: Program, multicast: Multicast, refusals: Refusals
    ) -> None:
        self._gc, self._target, self._refusals = gc, target, refusals
        self._program, self._multicast = program, multicast

    def insert(self, items: Iterable[Item]) -> None:
        """In their order."""
        self._write(items, self._add, self._multicast.insert)

    def modify(self, items: Iterable[Item]) -> None:
        """In their order."""
        self._write(items, self._change, self._multicast.modify)

    def delete(self, items: Iterable[Item]) -> None:
        """In their order; what is not there is no error."""
        self._write(items, self._remove, lambda group: self._multicast.delete(group.number))

    def read(self, tables: Iterable[str]) -> list[Entry]:
        """The entries of these tables."""
        return [
            self._program.read_entry(table, key, data)
            for table in tables
            for data, key in self._read(table, SOFTWARE)
        ]

    def has(self, entry: Entry) -> bool:
        """Whether there is an entry with this key."""
        key = self._program.key(entry.table, entry.match)
        try:
            return bool(
                list(self._program.table(entry.table).entry_get(self._target, [key], SOFTWARE))
            )
        except self._gc.BfruntimeRpcException as error:
            if self._refusals.is_only(error, grpc.StatusCode.NOT_FOUND):
                return False
            raise

    def row_counts(self, table: str) -> list[tuple[Mapping[str, MatchValue], Count]]:
        """What each entry has seen."""
        return [
            (self._program.match(key), self._program.count(data))
            for data, key in self._read(table, HARDWARE)
        ]

    def cells(self, cells: Sequence[Counter]) -> list[tuple[Counter, Count]]:
        """What these cells have seen, in all pipes together."""
        return [(cell, self._cell(cell)) for cell in cells]

    def clear(self, cells: Sequence[Counter]) -> None:
        """Sets these cells to 0."""
        for cell in cells:
            key = self._program.cell_key(cell.name, cell.index)
            data = self._program.zero(cell.name)
            self._program.table(cell.name).entry_mod(self._target, [key], [data])

    def _write(
        self,
        items: Iterable[Item],
        write: Callable[[str, list[Entry]], None],
        write_group: Callable[[Group], None],
    ) -> None:
        """Entries of one table that follow each other go in one message."""
        for table, run in groupby(items, lambda i: "" if isinstance(i, Group) else i.table):
            if table:
                write(table, [item for item in run if isinstance(item, Entry)])
            else:
                for item in run:
                    assert isinstance(item, Group)
                    write_group(item)

    def _add(self, table: str, entries: list[Entry]) -> None:
        self._program.table(table).entry_add(
            self._target, self._keys(table, entries), self._data(table, entries)
        )

    def _change(self, table: str, entries: list[Entry]) -> None:
        self._program.table(table).entry_mod(
            self._target, self._keys(table, entries), self._data(table, entries)
        )

    def _remove(self, table: str, entries: list[Entry]) -> None:
        keys = []
        for entry in entries:
            with contextlib.suppress(SwitchError):  # what cannot be said cannot be there
                keys.append(self._program.key(table, entry.match))
        if not keys:  # without a key it would delete all
            return
        try:
            self._program.table(table).entry_del(self._target, keys)
        except self._gc.BfruntimeRpcException as error:
            if not self._refusals.is_only(error, grpc.StatusCode.NOT_FOUND):
                raise

    def _keys(self, table: str, entries: list[Entry]) -> list[Any]:
        return [self._program.key(table, entry.match) for entry in entries]

    def _data(self, table: str, entries: list[Entry]) -> list[Any]:
        return [self._program.data(table, entry.action, entry.params) for entry in entries]

    def _read(self, table: str, flags: Mapping[str, bool]) -> list[tuple[Any, Any]]:
        """(data, key) of each entry but the default one."""
        found = self._program.table(table).entry_get(self._target, [], flags)
        return [(data, key) for data, key in found if key is not None and data is not None]

    def _cell(self, cell: Counter) -> Count:
        key = self._program.cell_key(cell.name, cell.index)
        found = self._program.table(cell.name).entry_get(self._target, [key], HARDWARE)
        for data, _ in found:
            return self._program.count(data)
        raise self._refusals.error(f"counter {cell.name} has no cell {cell.index}", refused=True)
