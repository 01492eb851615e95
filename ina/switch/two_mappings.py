"""What a switch in a rank's process has of its job: of one mapping, or of two beside one another.

See docs/resize.md. Pure: whoever has it inserts and deletes the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ina.p4 import names

Row = TypeVar("Row")


@dataclass(frozen=True)
class _Mapping(Generic[Row]):
    job: int  # its number
    rows: list[Row]


class TwoMappings(Generic[Row]):
    """Rows of one mapping, or of the older and the newer one. Not thread-safe."""

    def __init__(self, table_of: Callable[[Row], str]) -> None:
        """``table_of``: the table of a row; empty: it is a multicast group."""
        self._table_of = table_of
        self._mappings: list[_Mapping[Row]] = []

    @property
    def rows(self) -> list[list[Row]]:
        """By mapping, the older one first."""
        return [it.rows for it in self._mappings]

    def begin(self, job: int, rows: Sequence[Row]) -> None:
        """There are these alone. ``job``: number of the job."""
        self._mappings = [_Mapping(job, [*rows])]

    def add(self, job: int, rows: Sequence[Row]) -> None:
        """Those of the next mapping are there, too."""
        self._mappings.append(_Mapping(job, [*rows]))

    def end_change(self, *, is_new_used: bool) -> list[Row]:
        """One mapping is not used any more: which rows are to be deleted, in this order."""
        if len(self._mappings) < 2:
            return []
        gone, kept = self._mappings if is_new_used else reversed(self._mappings)
        same_job = gone.job == kept.job
        stay = [row for row in gone.rows if self._outlives(row, same_job=same_job)]
        self._mappings = [_Mapping(kept.job, [*stay, *kept.rows])]
        return [row for row in reversed(gone.rows) if row not in stay]

    def _outlives(self, row: Row, *, same_job: bool) -> bool:
        """Whether it is not of one mapping alone: its key has no epoch, or not even the job."""
        table = self._table_of(row)
        if same_job:
            return table not in (names.JOBS, names.MEMBERS)
        return table == names.OWN_ADDRESSES
