"""Tables that lie in an array which user space writes and a program reads by itself.

The kernel's own maps are asked by calling it. Where that is not allowed (in a critical section), or
no map does what the table wants (ternary, ranges, prefixes among other fields), its entries are
words of one array. :mod:`ina.switch.xdp.placed` writes them, runtime/ina_placed.h finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ina.switch.passes.tables import Lookup, TablePlan

MOST_SCANNED = 256
"""Entries of a table that is looked through from its first to its last."""
SPARE = 16
"""Places beside those of entries, so that few changes have to wait for one to be free."""
PROBES = 32
"""INA_PROBES of runtime/ina_placed.h: places of the index that may have a key."""
_INDEX_PER_ENTRY = 4


@dataclass(frozen=True)
class PlacedTable:
    """Where everything is of one table, in words of 64 bits."""

    plan: TablePlan
    at: int

    @property
    def scans(self) -> bool:
        """Whether entries are looked through; else their places are found by their keys."""
        return self.plan.lookup is not Lookup.EXACT

    @property
    def most_entries(self) -> int:
        """That it can have."""
        most = max(self.plan.table.max_size, 1)
        return min(most, MOST_SCANNED) if self.scans else most

    @property
    def places(self) -> int:
        """For entries. Of a table that is not scanned, the first is none."""
        return self.most_entries + SPARE + (not self.scans)

    @property
    def index_words(self) -> int:
        """Before the entries: how many of them to look at, or an index, a power of two."""
        return 1 if self.scans else 1 << (_INDEX_PER_ENTRY * self.most_entries - 1).bit_length()

    @property
    def entry_words(self) -> int:
        """Of an action with its number and its parameters."""
        return entry_words(self.plan)

    @property
    def place_words(self) -> int:
        """Of an entry with its key; of one that is scanned with rank, place and mask, too."""
        key_words = self.plan.key_words
        return self.entry_words + (2 + 2 * key_words if self.scans else key_words)

    @property
    def words(self) -> int:
        """All."""
        return self.index_words + self.places * self.place_words


def placed(plans: Iterable[TablePlan]) -> dict[str, PlacedTable]:
    """One behind the other; by the table's name."""
    found: dict[str, PlacedTable] = {}
    at = 0
    for plan in plans:
        table = PlacedTable(plan, at)
        found[plan.table.name] = table
        at += table.words
    return found


def entry_words(plan: TablePlan) -> int:
    """Of an entry: its action and number, and parameters."""
    return 1 + plan.param_words
