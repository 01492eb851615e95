"""Progress of the demo: bars on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress


class Progress:
    """One bar a training, advanced by its epochs."""

    def __init__(self) -> None:
        self._rich = sys.stderr.isatty()
        self._bars = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=14),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=not self._rich,
        )

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def begin(self, title: str, total: int) -> TaskID:
        """A new bar of ``total`` epochs."""
        self._say(f"{title}: starting")
        return self._bars.add_task(title, total=total, note="starting workers")

    def advance(self, bar: TaskID, title: str, done: int, total: int, note: str) -> None:
        """``done`` epochs are over; ``note`` says how well."""
        self._say(f"{title}: epoch {done}/{total}, {note}")
        # A bar has room for the accuracy alone, on a terminal of 80 columns.
        self._bars.update(bar, completed=done, note=note.rpartition(", ")[2])

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        if self._rich:
            self._bars.console.print(line, markup=False, highlight=False)
        else:
            self._say(line)

    def _say(self, line: str) -> None:
        if not self._rich:
            print(line, file=sys.stderr, flush=True)
