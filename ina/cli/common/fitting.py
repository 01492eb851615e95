"""Tables that fit the terminal: columns that matter least go, and what names things stays whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ina.cli.common.output import table


@dataclass
class FittingTable:
    """A table that leaves out columns of ``spare``, first to last, until it fits; and says so."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    spare: Sequence[str]
    title: str | None = None
    notes: Sequence[str] = field(default=())
    """Lines of their own below the table; folded, never cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render at the width that there is."""
        gone: list[str] = []
        view = self._view(gone)
        for name in self.spare:
            if _width(console, options, view) <= options.max_width:
                break
            gone.append(name)
            view = self._view(gone)
        yield view
        if gone:
            yield Text(f"(too narrow for: {', '.join(gone)}; --json has all)", style="dim")
        for note in self.notes:
            yield Text(note, overflow="fold")

    def _view(self, gone: Sequence[str]) -> Table:
        kept = [index for index, name in enumerate(self.columns) if name not in gone]
        names = [self.columns[index] for index in kept]
        view = table(names, [[row[index] for index in kept] for row in self.rows], title=self.title)
        for column in view.columns:
            column.overflow = "fold"  # where even the least does not fit: no name is cut
        return view


def _width(console: Console, options: ConsoleOptions, view: Table) -> int:
    """What the table would take with all cells on one line."""
    wide = options.update(max_width=10_000)
    return Measurement.get(console, wide, view).maximum
