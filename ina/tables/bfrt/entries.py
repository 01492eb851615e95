"""Table entries and counters through the client; groups are passed on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

import grpc

from ina.tables.bfrt.multicast import Multicast
from ina.tables.bfrt.program import Program
from ina.tables.bfrt.refusals import Refusals
from ina.tables.errors import SwitchError
from ina.tables.values import (
    AnyItem,
    Count,
    Counter,
    CounterRef,
    DefaultAction,
    Entry,
    Group,
    Match,
)

SOFTWARE, HARDWARE = {"from_hw": False}, {"from_hw": True}
"""Whether to read what the driver remembers, or the chip: counters are only there."""


class Entries:
    """Methods block, and raise what the client raises, or SwitchError."""

    def __init__(
        self, gc: Any, target: Any, program: Program, multicast: Multicast, refusals: Refusals
    ) -> None:
        self._gc, self._target, self._refusals = gc, target, refusals
        self._program, self._multicast = program, multicast

    def insert(self, items: Iterable[AnyItem]) -> None:
        """In their order."""
        self._write(items, self._add, self._multicast.insert, self._set_default)

    def modify(self, items: Iterable[AnyItem]) -> None:
        """In their order."""
        self._write(items, self._change, self._multicast.modify, self._set_default)

    def delete(self, items: Iterable[AnyItem]) -> None:
        """In their order; what is not there is no error."""
        self._write(
            items,
            self._remove,
            lambda group: self._multicast.delete(group.number),
            lambda item: self._program.table(item.table).default_entry_reset(self._target),
        )

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

    def row_counts(self, table: str) -> list[tuple[Match, Count]]:
        """What each entry has seen."""
        return [
            (self._program.match(key), self._program.count(data))
            for data, key in self._read(table, HARDWARE)
        ]

    def count(self, ref: CounterRef) -> Count:
        """What it has seen, in all pipes together."""
        if isinstance(ref, Counter):
            name, key = ref.name, self._program.cell_key(ref.name, ref.index)
        else:
            name, key = ref.table, self._program.key(ref.table, ref.match)
        for data, _ in self._program.table(name).entry_get(self._target, [key], HARDWARE):
            return self._program.count(data)
        raise self._refusals.error(f"there is no {ref}", refused=True)

    def clear(self, counters: Iterable[Counter]) -> None:
        """Sets these cells to 0."""
        for counter in counters:
            key = self._program.cell_key(counter.name, counter.index)
            data = self._program.zero(counter.name)
            self._program.table(counter.name).entry_mod(self._target, [key], [data])

    def clear_all(self) -> None:
        """Empties every table, group, counter and register that the program does not fix."""
        for group in self._multicast.read():
            self._multicast.delete(group.number)
        for name in self._program.tables():
            table = self._program.table(name)
            if table.info.key_field_name_list_get():
                table.entry_del(self._target, [])
            if not table.info.has_const_default_action_get():
                table.default_entry_reset(self._target)
        for name in self._program.arrays():
            self._program.table(name).entry_del(self._target, [])

    def _write(
        self,
        items: Iterable[AnyItem],
        write: Callable[[str, list[Entry]], None],
        write_group: Callable[[Group], None],
        write_default: Callable[[DefaultAction], None],
    ) -> None:
        """Entries of one table that follow each other go in one message."""
        for table, run in groupby(items, lambda it: it.table if isinstance(it, Entry) else ""):
            if table:
                write(table, [item for item in run if isinstance(item, Entry)])
                continue
            for item in run:
                match item:
                    case Group():
                        write_group(item)
                    case DefaultAction():
                        write_default(item)
                    case _:
                        what = type(item).__name__
                        raise self._refusals.error(f"{what}: not by BFRuntime", refused=True)

    def _set_default(self, item: DefaultAction) -> None:
        data = self._program.data(item.table, item.action, item.params)
        self._program.table(item.table).default_entry_set(self._target, data)

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
