"""Entries of tables that lie in an array, where programs read them at any time.

A reader finds an entry whole: it is written to a place that nobody looks at, and then told by one
word. A place that was given up may still be read by programs that were running then; it is written
again only after those have ended (membarrier waits for them).
"""

from __future__ import annotations

import ctypes
import heapq
import itertools
import platform
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

from ina.switch.emit_ebpf.placed import PROBES, PlacedTable

_MEMBARRIER = {"x86_64": 324, "aarch64": 283}
"""Number of the system call."""
_GLOBAL = 1
_LONGEST_RUN_S = 0.05
"""Of a program, where the kernel cannot tell that all have ended."""
_NUMBER_BITS = 31
_NUMBERS = 1 << _NUMBER_BITS
"""Entries of a priority that came one after the other."""
_GONE = (1 << 64) - 1
_MASK = (1 << 64) - 1


class Store(ABC):
    """Where a table's entries are, by their packed keys. Which there are is known to who asks."""

    @abstractmethod
    def insert(self, key: bytes, entry: bytes, priority: int) -> bool:
        """False: there is no room."""

    @abstractmethod
    def replace(self, key: bytes, entry: bytes) -> None:
        """Of a key that is there."""

    @abstractmethod
    def delete(self, key: bytes) -> None:
        """Of a key that is there."""

    @abstractmethod
    def find(self) -> dict[bytes, bytes]:
        """Takes over what another process left: entries by their keys."""


def wait_for_programs() -> None:
    """Until all that were running have ended."""
    number = _MEMBARRIER.get(platform.machine())
    if number is None or ctypes.CDLL(None).syscall(number, _GLOBAL, 0, 0):
        time.sleep(_LONGEST_RUN_S)


@dataclass
class _Places:
    """Those that are free; which of them nobody reads any more."""

    free: list[int]
    given_up: list[int] = field(default_factory=list)

    def take(self) -> int:
        """The least that nobody reads."""
        if not self.free:
            wait_for_programs()
            self.free, self.given_up = self.given_up, []
            heapq.heapify(self.free)
        return heapq.heappop(self.free)


class PlacedStore(Store):
    """The words of one table in an array of them."""

    def __init__(self, table: PlacedTable, words: memoryview) -> None:
        """``words``: the whole array's, of 64 bits."""
        self._table, self._words = table, words
        self._free = _Places(list(range(not table.scans, table.places)))

    def _at(self, place: int) -> int:
        return self._table.at + self._table.index_words + place * self._table.place_words

    def _write(self, at: int, data: bytes) -> None:
        for (word,) in struct.iter_unpack("<Q", data):
            self._words[at] = word
            at += 1

    def _read(self, at: int, words: int) -> bytes:
        return struct.pack(f"<{words}Q", *(self._words[at + word] for word in range(words)))

    def _take_over(self, taken: Iterable[int]) -> None:
        """Other places may still be read: of entries that were just given up."""
        places = set(range(not self._table.scans, self._table.places)) - set(taken)
        self._free = _Places([], sorted(places))


class FoundStore(PlacedStore):
    """Entries are found by exact keys: an index of their places, with open addressing."""

    def __init__(self, table: PlacedTable, words: memoryview) -> None:
        super().__init__(table, words)
        self._index: dict[bytes, int] = {}
        """By key: where its place is told."""

    def insert(self, key: bytes, entry: bytes, priority: int) -> bool:
        """See :meth:`Store.insert`."""
        home, mask = _hash(key), self._table.index_words - 1
        near = [self._table.at + (home + probe & mask) for probe in range(PROBES)]
        free = next((at for at in near if self._words[at] in (0, _GONE)), None)
        if free is None:
            return False
        self._words[free] = self._put(key, entry)
        self._index[key] = free
        return True

    def replace(self, key: bytes, entry: bytes) -> None:
        """See :meth:`Store.replace`."""
        at = self._index[key]
        before = self._words[at]
        self._words[at] = self._put(key, entry)
        self._free.given_up.append(before)

    def delete(self, key: bytes) -> None:
        """See :meth:`Store.delete`. Where nothing is behind it, no search has to go on."""
        at = self._index.pop(key)
        self._free.given_up.append(self._words[at])
        first, mask = self._table.at, self._table.index_words - 1
        self._words[at] = _GONE
        while self._words[at] == _GONE and self._words[first + (at - first + 1 & mask)] == 0:
            self._words[at] = 0
            at = first + (at - first - 1 & mask)

    def find(self) -> dict[bytes, bytes]:
        """See :meth:`Store.find`."""
        table, found = self._table, dict[bytes, bytes]()
        for at in range(table.at, table.at + table.index_words):
            if self._words[at] not in (0, _GONE):
                place, key_words = self._at(self._words[at]), table.plan.key_words
                key = self._read(place, key_words)
                self._index[key] = at
                found[key] = self._read(place + key_words, table.entry_words)
        self._take_over(self._words[at] for at in self._index.values())
        return found

    def _put(self, key: bytes, entry: bytes) -> int:
        place = self._free.take()
        self._write(self._at(place), key + entry)
        return place


class ScannedStore(PlacedStore):
    """Entries are looked at one after the other; of those that match, the best is taken: of the
    highest priority, and of these, the one that came first."""

    def __init__(self, table: PlacedTable, words: memoryview) -> None:
        super().__init__(table, words)
        self._numbers = itertools.count()
        self._places: dict[bytes, tuple[int, int]] = {}
        """By key: its rank and place."""

    def insert(self, key: bytes, entry: bytes, priority: int) -> bool:
        """See :meth:`Store.insert`."""
        if len(self._places) == self._table.most_entries:
            return False
        later = _NUMBERS - 1 - next(self._numbers)
        rank = (priority + (1 << 31) << _NUMBER_BITS) + later + 1
        self._places[key] = rank, self._put(key, entry, rank)
        return True

    def replace(self, key: bytes, entry: bytes) -> None:
        """See :meth:`Store.replace`."""
        rank, before = self._places[key]
        self._places[key] = rank, self._put(key, entry, rank)
        self._give_up(before)

    def delete(self, key: bytes) -> None:
        """See :meth:`Store.delete`."""
        self._give_up(self._places.pop(key)[1])

    def find(self) -> dict[bytes, bytes]:
        """See :meth:`Store.find`. Of an entry that was being replaced, there may be two."""
        table, found = self._table, dict[bytes, bytes]()
        key_words, least = 2 * table.plan.key_words, _NUMBERS
        for place in range(self._words[table.at]):
            at = self._at(place)
            rank = self._words[at]
            if rank == 0:
                continue
            priority = (rank - 1 >> _NUMBER_BITS) - (1 << 31)
            key = self._read(at + 2, key_words) + struct.pack("<i", priority)
            if key in found:
                self._words[at] = 0
                continue
            found[key] = self._read(at + 2 + key_words, table.entry_words)
            self._places[key] = rank, place
            least = min(least, (rank - 1) % _NUMBERS)
        self._numbers = itertools.count(_NUMBERS - least)
        self._take_over(place for _, place in self._places.values())
        return found

    def _put(self, key: bytes, entry: bytes, rank: int) -> int:
        place = self._free.take()
        at = self._at(place)
        self._words[at + 1] = place
        key_bytes = 16 * self._table.plan.key_words  # and the priority behind them
        self._write(at + 2, key[:key_bytes] + entry)
        self._words[self._table.at] = max(self._words[self._table.at], place + 1)
        self._words[at] = rank
        return place

    def _give_up(self, place: int) -> None:
        self._words[self._at(place)] = 0
        self._free.given_up.append(place)


def placed_store(table: PlacedTable, words: memoryview) -> PlacedStore:
    """As the table's entries are found."""
    return (ScannedStore if table.scans else FoundStore)(table, words)


def _hash(key: bytes) -> int:
    """As ina_find of runtime/ina_placed.h has it."""
    found = 0
    for (word,) in struct.iter_unpack("<Q", key):
        found = (found ^ word) * 0x9E3779B97F4A7C15 & _MASK
        found ^= found >> 32
    return found
