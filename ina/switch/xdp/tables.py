"""Entries of one table in the kernel's memory, with what that does not tell of them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from ina.switch.emit_ebpf.placed import entry_words
from ina.switch.errors import EntryExistsError, EntryNotFoundError, TableFullError
from ina.switch.ir.program import Action
from ina.switch.match import TableKey
from ina.switch.passes.tables import WORD_BITS, Lookup, TablePlan, words_of
from ina.switch.xdp.libbpf import ANY, CREATE, Map
from ina.switch.xdp.placed import PlacedStore, Store


@dataclass
class _Entry:
    key: bytes
    number: int
    """Of its counter."""


@dataclass(frozen=True)
class MapStore(Store):
    """One of the kernel's maps."""

    entries: Map

    def insert(self, key: bytes, entry: bytes, priority: int) -> bool:
        """See :meth:`Store.insert`."""
        return not self.entries.write(key, entry, CREATE)

    def replace(self, key: bytes, entry: bytes) -> None:
        """See :meth:`Store.replace`."""
        self.entries.write(key, entry, ANY)

    def delete(self, key: bytes) -> None:
        """See :meth:`Store.delete`."""
        self.entries.delete(key)

    def find(self) -> dict[bytes, bytes]:
        """See :meth:`Store.find`."""
        there = {key: self.entries.read(key) for key in self.entries.keys()}  # noqa: SIM118
        return {key: value for key, value in there.items() if value is not None}


@dataclass
class MapTable:
    """A table: what its entries are called, and where their counters are."""

    plan: TablePlan
    store: Store | None
    """None: it has no key, and so no entries."""
    _by_handle: dict[int, _Entry] = field(default_factory=dict)
    _keys: set[bytes] = field(default_factory=set)
    _free: list[int] = field(default_factory=list)
    _handles: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _found: dict[bytes, bytes] = field(default_factory=dict)
    """What was there before us, and was not inserted again yet."""

    def __post_init__(self) -> None:
        self._free = list(range(self.plan.table.max_size))[::-1]

    def find(self) -> None:
        """Entries of a former process are there: those that are inserted again stay."""
        if self.store is not None:
            self._found = self.store.find()
            taken = {_number(value) for value in self._found.values()}
            self._free = [number for number in self._free if number not in taken]

    def settle(self) -> None:
        """Those that were not inserted again are removed."""
        while self._found:
            self._drop_found()

    def _drop_found(self) -> None:
        key, value = self._found.popitem()
        assert self.store is not None
        self.store.delete(key)
        self._free.append(_number(value))

    def insert(
        self, key: TableKey, action: Action, params: Sequence[int], priority: int
    ) -> tuple[int, int]:
        """Returns its handle, and its counter's number, which begins at 0; less than 0: its counter
        goes on.

        Raises EntryExistsError, TableFullError.
        """
        table = self.plan.table
        assert self.store is not None
        packed = self._key(key, priority)
        if packed in self._keys:
            raise EntryExistsError(f"table {table.name} already has an entry for this key")
        if packed in self._found:
            return self._keep(packed, action, params), -1
        if self._found and not self._free:
            self._drop_found()  # a process that was killed as it wrote left no room
        if not self._free:
            raise TableFullError(f"table {table.name} is full ({table.max_size} entries)")
        number = self._free[-1]
        entry = entry_bytes(self.plan, action, params, number)
        while not self.store.insert(packed, entry, priority):
            if not self._found:
                most = len(self._keys)
                raise TableFullError(f"table {table.name} is full ({most} entries, on device xdp)")
            self._drop_found()
        self._free.pop()
        return self._name(packed, number), number

    def _keep(self, packed: bytes, action: Action, params: Sequence[int]) -> int:
        """An entry that is there."""
        before = self._found.pop(packed)
        number = _number(before)
        now = entry_bytes(self.plan, action, params, number)
        if now != before:
            assert self.store is not None
            self.store.replace(packed, now)
        return self._name(packed, number)

    def _name(self, packed: bytes, number: int) -> int:
        self._keys.add(packed)
        handle = next(self._handles)
        self._by_handle[handle] = _Entry(packed, number)
        return handle

    def modify(self, handle: int, action: Action, params: Sequence[int]) -> None:
        """Its counter goes on. A packet finds what was there, or what is. Raises
        EntryNotFoundError."""
        entry = self._entry(handle)
        assert self.store is not None
        self.store.replace(entry.key, entry_bytes(self.plan, action, params, entry.number))

    def delete(self, handle: int) -> None:
        """Raises EntryNotFoundError."""
        entry = self._entry(handle)
        assert self.store is not None
        self.store.delete(entry.key)
        del self._by_handle[handle]
        self._keys.remove(entry.key)
        self._free.append(entry.number)

    def number(self, handle: int | None) -> int:
        """Of its counter; None: of the default entry's. Raises EntryNotFoundError."""
        return self.plan.table.max_size if handle is None else self._entry(handle).number

    def _entry(self, handle: int) -> _Entry:
        found = self._by_handle.get(handle)
        if found is None:
            raise EntryNotFoundError(f"table {self.plan.table.name}: no such entry or index")
        return found

    def _key(self, key: TableKey, priority: int) -> bytes:
        if not isinstance(self.store, PlacedStore) and self.plan.lookup is Lookup.LPM:
            (field,) = self.plan.table.keys
            assert key.prefix_bits is not None
            network = key.values[0].to_bytes(field.width_bits // 8, "big")
            return struct.pack("<I", key.prefix_bits) + network
        if self.plan.lookup is Lookup.EXACT:
            return self._packed(key.values)
        rank = struct.pack("<i", priority)
        return self._packed(key.values) + self._packed(key.masks) + rank

    def _packed(self, values: Sequence[int]) -> bytes:
        words = [0] * self.plan.key_words
        for part in self.plan.parts:
            value = values[part.field] >> WORD_BITS * part.field_word & (1 << WORD_BITS) - 1
            if part.swapped_bytes:
                value = int.from_bytes(value.to_bytes(part.swapped_bytes, "big"), "little")
            words[part.word] |= value << part.shift
        return struct.pack(f"<{len(words)}Q", *words)


def _number(entry: bytes) -> int:
    return int(struct.unpack_from("<I", entry, 4)[0])


def entry_bytes(plan: TablePlan, action: Action, params: Sequence[int], number: int) -> bytes:
    """ina_entry."""
    words = [
        value >> WORD_BITS * word & (1 << WORD_BITS) - 1
        for param, value in zip(action.params, params, strict=True)
        for word in range(words_of(param.width_bits))
    ]
    words += [0] * (entry_words(plan) - 1 - len(words))
    return struct.pack(f"<II{len(words)}Q", action.index, number, *words)
