"""A job of a soak: four ranks in processes of their own, from their start to the last one's end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

from tests.soak.rank import WORKERS, Place, Told, work
from tests.worlds.processes.forks import context

END_S = 60.0
"""When one rank has ended, each other one does so within this, not counting time it is stopped:
longer than a join, than an operation's deadline, and than leaving a job whose controller is away.
"""
KILLED = "killed"


@dataclass(frozen=True)
class End:
    """How one rank ended."""

    rank: int
    name: str
    """The error's, ``done``, ``killed``, or ``crashed``: anything else, which is a bug."""
    line: str = ""
    ranks: tuple[int, ...] = ()


class Rank:
    """One process."""

    def __init__(self, place: Place, rank: int) -> None:
        self.rank = rank
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=work, args=(place, rank, theirs))
        self.process.start()
        theirs.close()
        self.steps = 0
        self.end: End | None = None
        self.paused = False
        self.hit = False
        """Whether it was killed, or stopped for a time."""
        self.is_over = False

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """Sends it one, if it still runs."""
        if not self.is_over:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def killed(self) -> None:
        """By the soak, which is why it ends, whatever it was about to say."""
        self.hit = True
        self.paused = False
        self.signal(signal.SIGKILL)
        if self.end is None:
            self.end = End(self.rank, KILLED, "kill -9 by the soak")

    def pause(self) -> None:
        self.hit = self.paused = True
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.paused = False
        self.signal(signal.SIGCONT)


class Job:
    """All ranks; :meth:`read` is to be called until :attr:`is_over`."""

    def __init__(self, place: Place) -> None:
        self.number = place.job
        self.ranks = [Rank(place, rank) for rank in range(WORKERS)]
        self.checked: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._ending_s: float | None = None  # since when one has ended and nobody was stopped

    @property
    def steps(self) -> int:
        """That all ranks have done, as far as they have said."""
        return min(rank.steps for rank in self.ranks)

    @property
    def is_over(self) -> bool:
        return all(rank.is_over for rank in self.ranks)

    @property
    def is_ending(self) -> bool:
        """Whether a rank has ended, or has nothing more to do than to end."""
        return any(rank.end is not None or rank.is_over for rank in self.ranks)

    @property
    def ends(self) -> list[End]:
        """Of a job that is over."""
        return [rank.end for rank in self.ranks if rank.end is not None]

    def alive(self) -> list[Rank]:
        return [rank for rank in self.ranks if not rank.is_over]

    def read(self, timeout_s: float) -> list[str]:
        """Hears what ranks say, for so long at most; returns what must not be."""
        alive = self.alive()
        pipes: dict[Any, Rank] = {rank.pipe: rank for rank in alive}
        sentinels: dict[Any, Rank] = {rank.process.sentinel: rank for rank in alive}
        for ready in wait([*pipes, *sentinels], timeout_s):
            if ready in pipes:
                self._hear(pipes[ready])
        for rank in alive:
            if not rank.process.is_alive():
                while self._hear(rank):
                    pass
                self._over(rank)
        return self._late()

    def kill(self) -> None:
        """Whatever still runs."""
        for rank in self.alive():
            rank.killed()
            rank.process.join()
            self._over(rank)

    def _hear(self, rank: Rank) -> bool:
        """Takes one message, if there is one; returns whether there was."""
        pipe = cast("Connection[Any, Told]", rank.pipe)
        try:
            told = pipe.recv() if pipe.poll(0) else None
        except (EOFError, OSError):  # it has been killed, maybe in the middle of a word
            return False
        if told is None:
            return False
        rank.steps = told.steps
        self.checked.update(told.checked)
        if told.wrong:
            self.wrong.append(told.wrong)
        if told.ended and rank.end is None:
            rank.end = End(rank.rank, told.ended, told.line, told.ranks)
        return True

    def _over(self, rank: Rank) -> None:
        rank.is_over = True
        rank.process.join()
        rank.pipe.close()
        if rank.end is None:
            code = rank.process.exitcode
            rank.end = End(rank.rank, "crashed", f"ended with {code}, without a word")

    def _late(self) -> list[str]:
        """Ranks that should have ended, long ago; they are killed."""
        alive = self.alive()
        if not self.is_ending or not alive or any(rank.paused for rank in alive):
            self._ending_s = None
            return []
        now = time.monotonic()
        self._ending_s = self._ending_s or now
        if now - self._ending_s < END_S:
            return []
        late = [rank.rank for rank in alive]
        self.kill()
        return [f"ranks {late} still ran {END_S:g} s after another one had ended"]
