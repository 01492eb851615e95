"""Many seeds, some at a time in processes of their own: what they found, and where to go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from fuzz.programs.check import Finding, check_all
from fuzz.programs.generate import generated
from ina.children import worker_processes
from ina.errors import InaError

BATCH = 40
"""Programs that are compiled as one."""


class StateError(InaError):
    """A state file that is none."""


@dataclass
class Progress:
    """Of a campaign: all seeds from ``first`` to before ``next`` are done."""

    first: int
    next: int
    found: list[int] = field(default_factory=list)
    """Seeds with a finding."""

    @classmethod
    def read(cls, path: Path | None, first: int) -> Progress:
        """Of an earlier run that began with the same seed, or of none."""
        if path is None or not path.exists():
            return cls(first, first)
        try:
            saved = json.loads(path.read_text())
            before = cls(
                int(saved["first"]), int(saved["next"]), [int(it) for it in saved["found"]]
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise StateError(f"{path}: not the state of a campaign ({error})") from None
        return before if before.first == first else cls(first, first)

    def write(self, path: Path | None) -> None:
        """For the next run."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            said = {"first": self.first, "next": self.next, "found": self.found}
            path.write_text(json.dumps(said) + "\n")


def run_batch(first: int, count: int) -> list[Finding]:
    """Of consecutive seeds."""
    trials = [generated(seed) for seed in range(first, first + count)]
    return [found for found in check_all(trials) if found is not None]


def campaign(
    first: int, count: int, jobs: int, state: Path | None = None
) -> Iterator[tuple[Progress, list[Finding]]]:
    """After each batch, in order, how far it is and what that batch found.

    A program that ends the process is found, too: its batch is gone through one by one.
    """
    progress = Progress.read(state, first)
    starts = range(progress.next, first + count, BATCH)
    with _Workers(jobs) as workers:
        ahead: dict[int, Future[list[Finding]]] = {}
        pending = list(reversed(starts))
        for start in starts:
            while pending and len(ahead) < 2 * jobs:
                at = pending.pop()
                ahead[at] = workers.submit(at, min(BATCH, first + count - at))
            size = min(BATCH, first + count - start)
            wait([ahead[start]], return_when=FIRST_COMPLETED)
            try:
                found = ahead.pop(start).result()
            except BrokenProcessPool:
                found = _one_by_one(start, size)
                workers.renew()
                ahead = {at: workers.submit(at, min(BATCH, first + count - at)) for at in ahead}
            progress.next = start + size
            progress.found += [it.trial.seed for it in found]
            progress.write(state)
            yield progress, found


def _one_by_one(start: int, size: int) -> list[Finding]:
    """Each in a process that it may end."""
    found: list[Finding] = []
    for seed in range(start, start + size):
        with _Workers(1) as workers:
            try:
                found += workers.submit(seed, 1).result()
            except BrokenProcessPool:
                found.append(Finding(generated(seed), "process", "it ends the process"))
    return found


class _Workers:
    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._open = ExitStack()
        self.renew()

    def renew(self) -> None:
        self._open.close()
        self._pool = self._open.enter_context(worker_processes(self._jobs))

    def submit(self, first: int, count: int) -> Future[list[Finding]]:
        return self._pool.submit(run_batch, first, count)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)
