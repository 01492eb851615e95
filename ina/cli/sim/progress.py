"""Bars on a terminal for what takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ina.sim.fuzz import State
from ina.sim.windows.runner import Done


@contextmanager
def run_progress(limit_s: float) -> Iterator[Callable[[float], None]]:
    """Of virtual time, up to the scenario's limit. Elsewhere than on a terminal: nothing."""
    with _bar() as bars:
        task = bars.add_task("virtual time", total=limit_s)

        def told(virtual_s: float) -> None:
            words = f"{virtual_s:.3g} s of virtual time"
            bars.update(task, completed=virtual_s, description=words)

        yield told


@contextmanager
def fuzz_progress(seeds: int) -> Iterator[Callable[[State], None]]:
    """Of seeds."""
    with _bar() as bars:
        task = bars.add_task("seeds", total=seeds)

        def told(state: State) -> None:
            words = f"{state.seeds} seeds, {state.sums} sums, {len(state.findings)} findings"
            bars.update(task, completed=state.seeds, description=words)

        yield told


@contextmanager
def windows_progress() -> Iterator[Callable[[Done], None]]:
    """Of runs of a comparison."""
    with _bar() as bars:
        task = bars.add_task("runs", total=None)

        def told(done: Done) -> None:
            words = f"{done.runs} of {done.of} runs: {done.family}, {done.algorithm}"
            bars.update(task, completed=done.runs, total=done.of, description=words)

        yield told


@contextmanager
def routing_progress() -> Iterator[Callable[[int, int], None]]:
    """Of runs of a comparison."""
    with _bar() as bars:
        task = bars.add_task("runs", total=None)

        def told(done: int, of: int) -> None:
            bars.update(task, completed=done, total=of, description=f"{done} of {of} runs")

        yield told


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
