"""A spinner with the time gone by, for a tool that tells nothing of its progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None]]:
    """Show that something goes on, on a terminal's stderr; gone when the block ends.

    Yields what changes the words. Elsewhere than on a terminal nothing is written.
    """
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bars:
        task = bars.add_task(what, total=None)
        yield lambda words: bars.update(task, description=words)
