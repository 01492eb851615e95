"""How far a command is: bars on a terminal, a line every ten seconds elsewhere; always on stderr.

A log of CI or of a batch system shows so that the command lives, and where it is. What takes less
than ten seconds says nothing there.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from ina.units import time_text

EVERY_S = 10.0


class Progress:
    """Of one piece of work. Its methods may be called from any thread."""

    def __init__(self, bars: Bars, what: str, total: float | None) -> None:
        self._bars = bars
        self._task = bars.add_task(what, total=total)
        self._what, self._done, self._total = what, 0.0, total
        self._began_s = time.monotonic()

    def update(
        self, what: str = "", *, done: float | None = None, total: float | None = None
    ) -> None:
        """What goes on by now, how much of it is done, and of how much, where that has changed."""
        self._what = what or self._what
        self._done = self._done if done is None else done
        self._total = self._total if total is None else total
        # Copies: rich takes None for "as it was".
        self._bars.update(self._task, description=self._what, completed=self._done, total=total)

    def advance(self, by: float = 1) -> None:
        """So much more is done."""
        self.update(done=self._done + by)

    @property
    def line(self) -> str:
        """All of it in words."""
        share = f", {100 * self._done / self._total:.0f} %" if self._total and self._done else ""
        return f"{self._what}{share}, after {time_text(time.monotonic() - self._began_s)}"


@contextmanager
def progress(
    what: str, total: float | None = None, *, is_kept: bool = False, every_s: float = EVERY_S
) -> Iterator[Progress]:
    """Until the block ends.

    Args:
        what: the words to begin with.
        total: how much there is to do, of what is counted; None: it is not known.
        is_kept: on a terminal the bar stays when the block has ended.
        every_s: elsewhere, from line to line.
    """
    is_terminal = sys.stderr.isatty()
    columns: tuple[ProgressColumn, ...] = (TextColumn("{task.description}", markup=False),)
    if total is None:
        columns = (SpinnerColumn(), *columns, TimeElapsedColumn())
    else:
        columns = (*columns, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    stderr = Console(stderr=True)
    with Bars(*columns, console=stderr, transient=not is_kept, disable=not is_terminal) as bars:
        told = Progress(bars, what, total)
        if is_terminal:
            yield told
            return
        ended = threading.Event()
        teller = threading.Thread(target=_tell, args=(told, ended, every_s), daemon=True)
        teller.start()
        try:
            yield told
        finally:
            ended.set()
            teller.join()


def _tell(told: Progress, ended: threading.Event, every_s: float) -> None:
    stream = sys.stderr
    with suppress(OSError, ValueError):  # nobody reads it, or it is closed
        while not ended.wait(every_s):
            print(told.line, file=stream, flush=True)
