"""Jobs that are damaged until they end, one after the other, and what became of each chunk.

A job that fails leaves its sums unfinished, but each chunk of them that it has taken is in memory
by then. So all chunks of a job can be damaged at once, and each is looked at: it holds what NumPy
says, bit for bit, or what was there before.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ina.errors import InaError
from ina.host import Handle, Session, WorkerOptions
from ina.protocol.verify import Verify
from ina.testing import numerics
from ina.testing.numerics import Array
from tests.selection import LONG

VALUES = 64
WORKERS = 2
SLOTS = 256
OP_TIMEOUT_S = 2.0 if LONG else 0.7
"""A packet whose number was damaged makes its slot look newer than it is: then all wait so long."""
_JOIN_S = 60.0
_END_S = 60.0
_STEPS = 40
"""Of a job that nothing ends."""
_LENGTHS = (1, 64, 65, 700, 20_000)
_OFTEN = (64 * VALUES, 128 * VALUES)
"""Elements of most sums of a job, one of these: half of its lanes, and all."""
_BEFORE = 0xA5
"""Each byte of a result's memory before it is there."""

Controller = str


@dataclass
class Tally:
    """Of all jobs of a run."""

    jobs: int = 0
    sums: int = 0
    """That ended well, on one rank."""
    chunks: int = 0
    """Of those, and of sums that did not end, that hold what they must."""
    ends: Counter[str] = field(default_factory=Counter)
    """Of ranks: the error's name, or ``done``."""
    corrupted: int = 0
    """Results that did not verify, as the workers have counted."""
    refused: int = 0
    """Results that they dropped for another reason."""
    wrong: list[str] = field(default_factory=list)


@dataclass
class _Sum:
    """One all-reduce of a step."""

    op: str
    parts: list[Array]
    outs: list[Array]
    handles: list[Handle[Any]] = field(default_factory=list)

    @classmethod
    def draw(cls, dice: random.Random, dtype: np.dtype[Any], elems: int) -> _Sum:
        numbers = np.random.default_rng(dice.getrandbits(32))
        parts: list[Array] = []
        for _ in range(WORKERS):
            if dtype == np.int32:
                part = numbers.integers(-(2**31), 2**31, elems).astype(np.int32)
            else:
                part = (numbers.standard_normal(elems) * 2.0 ** dice.choice((-9, 0, 0, 3))).astype(
                    dtype
                )
                if dice.random() < 0.1:
                    part[:] = 0
                if dice.random() < 0.05:
                    part[dice.randrange(elems)] = dice.choice((np.inf, np.nan))
            parts.append(part)
        outs = [np.full(part.nbytes, _BEFORE, np.uint8).view(dtype) for part in parts]
        return cls(dice.choice(("sum", "avg")), parts, outs)

    def check(self, tally: Tally, what: str) -> None:
        """After the sessions' end."""
        right = numerics.all_reduce(self.parts, self.op, VALUES)
        for rank, out in enumerate(self.outs):
            ended = rank < len(self.handles) and self.handles[rank].exception() is None
            for at in range(0, out.size, VALUES):
                chunk = out[at : at + VALUES]
                if numerics.same_bits(chunk, right[at : at + VALUES]):
                    tally.chunks += 1
                elif ended or (chunk.view(np.uint8) != _BEFORE).any():
                    tally.wrong.append(f"{what}: rank {rank}, {out.dtype} {self.op}, at {at}")


@dataclass
class Attack:
    """When a job is damaged."""

    is_over: Callable[[], bool]
    begin: Callable[[list[Session]], object] = lambda _: None
    """With a job that has summed something, and is well."""
    meanwhile: Callable[[], object] = lambda: None
    """With a part of a step in the slots, as the first worker has begun it; and as all have."""
    end: Callable[[], object] = lambda: None
    """Once its workers have left."""


class Jobs:
    """Runs them at a controller."""

    def __init__(
        self,
        controller: Controller,
        verify: Verify,
        dtypes: Sequence[np.dtype[Any]],
        hosts: Sequence[str | None],
        seed: int,
    ) -> None:
        self.tally = Tally()
        self._controller, self._verify, self._dtypes = controller, verify, dtypes
        self._hosts, self._dice = hosts, random.Random(seed)

    def run(self, attack: Attack) -> Tally:
        """Jobs until the attack is over."""
        while not attack.is_over():
            self.tally.jobs += 1
            sums: list[_Sum] = []
            try:
                with self._joined() as sessions:
                    self._one(sessions, attack, sums)
                    for session in sessions:
                        stats = session.stats()
                        self.tally.corrupted += stats.corrupted_sums
                        self.tally.refused += stats.refused_results
            finally:
                attack.end()
            for one in sums:
                one.check(self.tally, f"job {self.tally.jobs}")
        return self.tally

    def _one(self, sessions: list[Session], attack: Attack, sums: list[_Sum]) -> None:
        # One type a job, and mostly one length: so that exponents are guessed.
        dtype, often = self._dice.choice(self._dtypes), self._dice.choice(_OFTEN)
        one = _Sum.draw(self._dice, dtype, VALUES * SLOTS)
        sums.append(one)
        self._submit(sessions, [one], lambda: None)
        try:
            self._wait(sessions, [one])
        except InaError:  # on a busy machine: nothing has been done to it
            return
        attack.begin(sessions)
        for _ in range(_STEPS):
            elems = often if self._dice.random() < 0.7 else self._dice.choice(_LENGTHS)
            step = [_Sum.draw(self._dice, dtype, elems) for _ in range(self._dice.randint(1, 4))]
            sums += step
            try:
                self._submit(sessions, step, attack.meanwhile)
                self._wait(sessions, step)
            except InaError:
                return
            if attack.is_over():
                break
        self.tally.ends["done"] += len(sessions)

    @staticmethod
    def _submit(sessions: list[Session], step: list[_Sum], meanwhile: Callable[[], object]) -> None:
        for rank, session in enumerate(sessions):
            for one in step:
                one.handles.append(
                    session.all_reduce(one.parts[rank], one.op, out=one.outs[rank], async_op=True)
                )
            meanwhile()

    def _wait(self, sessions: list[Session], step: list[_Sum]) -> None:
        """Raises an error that a rank has ended with, once all have ended."""
        failed: InaError | None = None
        for rank in range(len(sessions)):
            try:
                for one in step:
                    if rank < len(one.handles):
                        one.handles[rank].wait(_END_S)
                        self.tally.sums += 1
            except InaError as error:
                failed = error
                self.tally.ends[type(error).__name__] += 1
        if failed is not None:
            raise failed

    @contextmanager
    def _joined(self) -> Iterator[list[Session]]:
        with ExitStack() as stack, ThreadPoolExecutor(WORKERS) as pool:

            def join(rank: int) -> Session:
                return Session.join(
                    *(self._controller, "flips", rank, WORKERS),
                    options=WorkerOptions(
                        host=self._hosts[rank],
                        slots=SLOTS,
                        verify=self._verify,
                        timeout_s=_JOIN_S,
                        op_timeout_s=OP_TIMEOUT_S,
                        transport="udp",
                        threads=1,
                    ),
                )

            joined = list(pool.map(join, range(WORKERS)))
            for session in joined:
                stack.callback(session.close)
            yield joined
