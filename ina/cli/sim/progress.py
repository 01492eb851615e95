"""What ``ina sim`` says while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ina.cli.common.progress import progress
from ina.sim.fuzz import State
from ina.sim.windows.runner import Done


@contextmanager
def run_progress(limit_s: float) -> Iterator[Callable[[float], None]]:
    """Of virtual time, up to the scenario's limit."""
    with progress("virtual time", limit_s) as bar:
        yield lambda virtual_s: bar.update(f"{virtual_s:.3g} s of virtual time", done=virtual_s)


@contextmanager
def fuzz_progress(seeds: int) -> Iterator[Callable[[State], None]]:
    """Of seeds."""
    with progress("seeds", seeds) as bar:

        def told(state: State) -> None:
            words = f"{state.seeds} seeds, {state.sums} sums, {len(state.findings)} findings"
            bar.update(words, done=state.seeds)

        yield told


@contextmanager
def windows_progress() -> Iterator[Callable[[Done], None]]:
    """Of runs of a comparison."""
    with progress("runs", 1) as bar:

        def told(done: Done) -> None:
            words = f"{done.runs} of {done.of} runs: {done.family}, {done.algorithm}"
            bar.update(words, done=done.runs, total=done.of)

        yield told


@contextmanager
def routing_progress() -> Iterator[Callable[[int, int], None]]:
    """Of runs of a comparison."""
    with progress("runs", 1) as bar:
        yield lambda done, of: bar.update(f"{done} of {of} runs", done=done, total=of)
