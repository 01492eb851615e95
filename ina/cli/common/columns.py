"""A table's columns, each said once: its title, and what stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ina.cli.common.output import FittingTable


@dataclass(frozen=True)
class Column:
    """One of a table whose rows are objects, or mappings."""

    title: str
    of: str | tuple[str, str] | Callable[[Any], Any] = ""
    """A field or key of the row, empty: the title; of a width its lower end and its upper end; or
    how it follows from the row."""
    digits: int | None = None
    """Behind the point; None: as it is."""
    scale: float = 1.0
    """What a number is multiplied by to be in the title's unit."""

    def cell(self, row: Any) -> Any:
        """A dash stands for None: what was not measured."""
        if callable(self.of):
            found = self.of(row)
        elif isinstance(self.of, str):
            found = _field(row, self.of or self.title)
        else:
            low, high = (_field(row, name) for name in self.of)
            found = None if low is None else high - low
        if found is None:
            return "-"
        scaled = found if self.scale == 1 else self.scale * found
        return scaled if self.digits is None else round(scaled, self.digits)


def _field(row: Any, name: str) -> Any:
    return row[name] if isinstance(row, Mapping) else getattr(row, name)


def ms(title: str, of: str | tuple[str, str], digits: int) -> Column:
    """A column of what is in seconds."""
    return Column(title, of, digits, 1e3)


def percent(title: str, of: str, digits: int) -> Column:
    """A column of a share."""
    return Column(title, of, digits, 100)


def view(
    columns: Sequence[Column],
    rows: Iterable[Any],
    spare: Sequence[str] = (),
    *,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> FittingTable:
    """The table. ``spare``: titles of columns that a narrow terminal does without, the first ones
    first. ``notes``: lines below it."""
    titles = [column.title for column in columns]
    cells = [[column.cell(row) for column in columns] for row in rows]
    return FittingTable(titles, cells, spare, title=title, notes=notes)
