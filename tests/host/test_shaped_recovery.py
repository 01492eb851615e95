"""Ranks that lose the switch in the middle of any collective end, together, with what is right."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from ina.host.frozen import Frozen, export_of
from ina.host.recovery import Plan, plan
from ina.protocol.collective import REDUCTIONS, CollectiveKind
from ina.testing import numerics
from tests.selection import LONG
from tests.worlds import collectives
from tests.worlds.collectives import Step
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.parts import INT32, random_parts
from tests.worlds.recovering import finish, hand_on
from tests.worlds.virtual.cores import EPOCH, JOB
from tests.worlds.virtual.star import Star, late, scattered

VALUES = 64
OPS = {int(number): name for name, number in REDUCTIONS.items()}


class Job:
    """All ranks submit all of it at once; what is done on a rank, the caller writes over."""

    def __init__(self, star: Star, steps: list[Step]) -> None:
        self.star, self.steps = star, steps
        self.results: list[dict[int, numerics.Array]] = [{} for _ in star.workers]
        # Memory of each rank's own: what one rank is done with another may still read.
        self.ins = [[step.ins[rank].copy() for rank in range(len(star.workers))] for step in steps]
        for rank, worker in enumerate(star.workers):
            for step, ins in zip(steps, self.ins, strict=True):
                worker.submit(ins[rank].ctypes.data, step.outs[rank].ctypes.data, step.what)
        star._listen()

    def step(self) -> None:
        self.star.step()
        self.take_done()

    def take_done(self) -> None:
        for rank, done in enumerate(self.star.done):
            for operation in done:
                self.take(rank, operation)
            done.clear()

    def take(self, rank: int, operation: int) -> None:
        assert operation not in self.results[rank], "it ended twice"
        out = self.steps[operation - 1].outs[rank]
        self.results[rank][operation] = out.copy()
        for array in (out, self.ins[operation - 1][rank]):
            array.view(np.uint8).fill(0xA5)

    def recover(self) -> Plan:
        frozen = []
        self.take_done()  # what has no elements was as it was submitted
        for rank, worker in enumerate(self.star.workers):
            ranks = len(self.star.workers)
            ticket = direct_ticket("t", JOB, EPOCH, rank, ranks, 4, VALUES, "127.0.0.1", 1)
            submitted = worker.counters.tensors_submitted
            assert worker.freeze()
            frozen.append(Frozen(worker, export_of(ticket, submitted, worker), {}))
        found = plan([one.export for one in frozen])
        hand_on(found, frozen)
        for left in found.sums:
            op = OPS[self.steps[left.operation - 1].what.op]
            finish(
                *(left.operation, left.undone, frozen),
                partial(numerics.all_reduce, op=op, values=VALUES),
            )
            for rank, one in enumerate(frozen):
                if left.operation in {p.operation for p in one.export.pending}:
                    one.complete(left.operation)
                    self.take(rank, left.operation)
        return found

    def check(self) -> None:
        for number, step in enumerate(self.steps, 1):
            for rank, wanted in enumerate(step.wanted):
                found = self.results[rank][number]
                assert numerics.same_bits(found, wanted), (step.what, rank)


@settings(max_examples=2000 if LONG else 60, deadline=None)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 4), loss=st.floats(0, 0.3))
@example(seed=2**32 - 1, workers=4, loss=0.0)  # one of no elements, and frozen at once
def test_any_of_them_at_any_moment(seed: int, workers: int, loss: float) -> None:
    rng = random.Random(seed)
    slots = rng.choice([2, 4, 8, 16])
    star = Star(
        workers,
        slots=slots,
        values=VALUES,
        way=scattered(loss, loss / 2, most_ns=500_000),
        back=late(loss / 2, loss, loss / 2),
        seed=seed,
        first_seq=rng.choice([0, 2**32 - slots]),
        keep_results=True,
        shares=[min(rng.choice([1, 1, 2, 4]), slots // 2) for _ in range(workers)],
    )
    steps = [collectives.drawn(rng, workers, VALUES, 300) for _ in range(rng.randint(1, 5))]
    job = Job(star, steps)
    for _ in range(rng.randint(0, 200)):
        job.step()
    found = job.recover()
    job.check()
    event(f"handed on: {bool(found.transfers)}")
    event(f"summed again: {bool(found.again)}")


@pytest.mark.parametrize("kind", [CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE])
def test_of_a_scatter_what_the_owner_lacks_is_made_once_more(kind: CollectiveKind) -> None:
    """Frozen after each step of a lossy run: nobody else has the sum."""
    again = 0
    for moment in range(0, 300, 1 if LONG else 4):
        star = Star(3, slots=8, way=scattered(0.2), seed=5, keep_results=True)
        shares = 3 if kind is CollectiveKind.REDUCE_SCATTER else 1
        job = Job(
            star,
            [
                collectives.reduced(kind, random_parts(dtype, 3, shares * 200), VALUES)
                for dtype in (INT32, numerics.FLOATS[0])
            ],
        )
        for _ in range(moment):
            job.step()
        again += len(job.recover().again)
        job.check()
        if all(len(results) == len(job.steps) for results in job.results) and moment > 200:
            break
    assert again > 3
