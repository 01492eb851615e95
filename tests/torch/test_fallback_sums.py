"""The switch stops at a random moment under many sums: each is exact, once, the same everywhere."""

from __future__ import annotations

import faulthandler
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
from torch._C._distributed_c10d import HashStore

from ina.controller.embedded import Embedded
from ina.host.errors import JobEvictedError, RanksDifferError, SwitchLostError
from ina.protocol.collective import REDUCTIONS, Reduction
from ina.protocol.verify import Verify
from ina.testing import numerics
from ina.torch.env import Settings
from ina.torch.errors import FallbackError, GroupClosedError
from ina.torch.fallback import fallback
from ina.torch.worker import Worker
from tests.selection import LONG
from tests.torch.bound import sum_and_bound
from tests.worlds.fakes.memory import Memory, pipeline_of

_LIMIT_S = 30.0
_DTYPES = (torch.int32, torch.float32, torch.float16, torch.bfloat16)
_VALUES = 64


class Group:
    """Workers of one job, each in a thread of its own when it joins, over one embedded switch."""

    def __init__(
        self,
        workers: int,
        loss_rate: float,
        seed: int,
        verify: Verify | None = None,
        *,
        stay: Sequence[int] = (),
    ) -> None:
        """``stay``: ranks that do not want to go back to the network."""
        self.embedded = Embedded(values=_VALUES, slots=32, loss_rate=loss_rate, loss_seed=seed)
        self.embedded.__enter__()
        store = HashStore()
        settings = Settings(
            controller=self.embedded.controller_addr, on_switch_loss="fallback", verify=verify
        )

        def join(rank: int) -> Worker:
            return Worker(
                store, rank, range(workers), timedelta(seconds=_LIMIT_S), name="g",
                sub_group=False, settings=replace(settings, returns=rank not in stay),
            )  # fmt: skip

        with ThreadPoolExecutor(workers) as pool:
            self.workers = list(pool.map(join, range(workers)))

    def close(self) -> None:
        with ThreadPoolExecutor(len(self.workers)) as pool:
            list(pool.map(lambda worker: worker.close(0.0), self.workers))
        self.embedded.close()

    def wait_for(self, done: Sequence[Future[None]]) -> None:
        """For what runs in threads, which end in any case: then it is told where they were."""
        try:
            for one in done:
                one.result(_LIMIT_S)
        except LateError:
            faulthandler.dump_traceback(all_threads=True)
            for worker in self.workers:
                worker.close(0.0)
            raise

    def lose_switch(self, *ranks: int, stop: bool = True) -> None:
        """Let those ranks notice that it has stopped; the others hear it from them.

        Without ``stop`` it answers others still, while those that noticed have given it up.
        """
        if stop:
            self.embedded.switch.stop()
        for rank in ranks:
            self.workers[rank]._session.fail(SwitchLostError(f"rank {rank} noticed"))

    def wait_for_gloo(self) -> None:
        """Until all have gone over to it."""
        for worker in self.workers:
            deadline = time.monotonic() + _LIMIT_S
            while worker.switch_loss is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)


@pytest.fixture
def pair() -> Iterator[Group]:
    group = Group(2, 0.0, 0)
    yield group
    group.close()


@dataclass
class Case:
    """One all_reduce."""

    parts: list[torch.Tensor]
    op: str
    results: list[torch.Tensor]

    @classmethod
    def draw(cls, workers: int, chance: random.Random) -> Case:
        dtype, op = chance.choice(_DTYPES), chance.choice(["sum", "avg"])
        elems = chance.choice([1, 63, 65, 700, 3000, 20_000])
        generator = torch.Generator().manual_seed(chance.getrandbits(32))
        if dtype == torch.int32:
            parts = [
                torch.randint(-(2**31), 2**31, (elems,), dtype=dtype, generator=generator)
                for _ in range(workers)
            ]
        else:
            parts = [torch.randn(elems, generator=generator).to(dtype) for _ in range(workers)]
        return cls(parts, op, [part.clone() for part in parts])

    def check(self) -> None:
        """The same bits on all ranks; int32 exact; floats within the bound of n roundings."""
        first, workers = self.results[0], len(self.parts)
        assert all(torch.equal(result, first) for result in self.results)
        if first.dtype == torch.int32:
            parts = [part.numpy() for part in self.parts]
            assert np.array_equal(first.numpy(), numerics.all_reduce(parts, self.op, _VALUES))
            return
        inputs = np.stack([part.double().numpy() for part in self.parts])
        name = str(first.dtype).removeprefix("torch.")
        exact, bound = sum_and_bound(inputs, _VALUES, name)
        bound += workers * np.abs(inputs).sum(axis=0) * 2.0**-24  # Gloo rounds each addition
        result = first.double().numpy()
        if self.op == "avg":
            result, bound = result * workers, 2 * bound + np.abs(exact) * 2.0**-22
        assert (np.abs(result - exact) <= bound).all()


@pytest.mark.parametrize("seed", range(300 if LONG else 8))
def test_sums_under_way_when_the_switch_stops(seed: int) -> None:
    chance = random.Random(seed)
    workers = chance.choice([2, 3, 4])
    cases = [Case.draw(workers, chance) for _ in range(30)]
    moment = chance.randrange(len(cases))
    pauses = [[chance.choice([0, 0, 0, 0.003]) for _ in cases] for _ in range(workers)]
    noticed = chance.sample(range(workers), chance.randint(1, workers))
    group = Group(workers, chance.choice([0.0, 0.2]), seed)
    reached = threading.Event()

    def work(rank: int) -> None:
        sums = []
        for number, case in enumerate(cases):
            if number == moment:
                reached.set()
            time.sleep(pauses[rank][number])
            sums.append(group.workers[rank].submit(case.results[rank], REDUCTIONS[case.op]))
        for one in sums:
            one.wait()

    try:
        with ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(work, rank) for rank in range(workers)]
            assert reached.wait(_LIMIT_S)
            time.sleep(chance.uniform(0, 0.01))
            group.lose_switch(*noticed, stop=chance.random() < 0.5)
            group.wait_for(done)
        for case in cases:
            case.check()
        group.wait_for_gloo()
    finally:
        group.close()


def test_later_sums_go_over_gloo_and_averages_are_the_networks(pair: Group) -> None:
    pair.lose_switch(0)
    pair.wait_for_gloo()
    for dtype, elems in ((torch.int32, 7), (torch.float16, 3000), (torch.float32, 0)):
        results = [torch.full((elems,), 1 + 4 * rank).to(dtype) for rank in range(2)]
        for one in [
            m.submit(r, Reduction.AVERAGE) for m, r in zip(pair.workers, results, strict=True)
        ]:
            one.wait()
        assert all(result.eq(3).all() for result in results)


@pytest.mark.parametrize("verify", ["accidents", "keyed"])
def test_a_switch_whose_memory_loses_bits_is_given_up(verify: Verify, tmp_path: Path) -> None:
    """Sums that it had made are kept, and those that it spoils are Gloo's."""
    group = Group(3, 0.01, 0, verify)
    chance = random.Random(verify)
    try:
        memory = Memory(pipeline_of(group.embedded.switch), 3, tmp_path)
        epoch = group.workers[0]._session.ticket.epoch
        for spoiled in (False, True):
            cases = [Case.draw(3, chance) for _ in range(6)]
            sums = [group.workers[0].submit(case.results[0], REDUCTIONS[case.op]) for case in cases]
            if spoiled:
                for slot in memory.open(memory.owned(epoch), _LIMIT_S):
                    memory.flip(chance, slot, only="slot_check")
            for rank in (1, 2):
                sums += [
                    group.workers[rank].submit(c.results[rank], REDUCTIONS[c.op]) for c in cases
                ]
            for one in sums:
                one.wait()
            for case in cases:
                case.check()
            if not spoiled:
                assert all(worker.switch_loss is None for worker in group.workers)
        group.wait_for_gloo()
        losses = [worker.switch_loss for worker in group.workers]
        fallbacks = [worker._fallback for worker in group.workers]
        assert all(one is not None and not one._gate.returns for one in fallbacks)  # to that switch
        assert all(one and "not the sum of what the workers sent" in one.reason for one in losses)
    finally:
        group.close()


@pytest.mark.parametrize("seed", range(100 if LONG else 2))
def test_sums_under_way_while_memory_loses_bits(seed: int, tmp_path: Path) -> None:
    """Each rank stops at what it has when its own results fail, or another rank says so."""
    chance = random.Random(seed)
    workers = chance.choice([2, 3])
    cases = [Case.draw(workers, chance) for _ in range(20)]
    group = Group(workers, chance.choice([0.0, 0.1]), seed, chance.choice(["accidents", "keyed"]))
    pauses = [[chance.choice([0, 0, 0.003]) for _ in cases] for _ in range(workers)]

    def work(rank: int) -> None:
        sums = []
        for case, pause_s in zip(cases, pauses[rank], strict=True):
            time.sleep(pause_s)
            sums.append(group.workers[rank].submit(case.results[rank], REDUCTIONS[case.op]))
        for one in sums:
            one.wait()

    try:
        memory = Memory(pipeline_of(group.embedded.switch), workers, tmp_path)
        slots = range(group.workers[0]._session.ticket.slots)
        with ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(work, rank) for rank in range(workers)]
            deadline = time.monotonic() + _LIMIT_S
            while not all(one.done() for one in done) and time.monotonic() < deadline:
                memory.flip(chance, chance.choice(slots), only="check")
            group.wait_for(done)
        for case in cases:
            case.check()
    finally:
        group.close()


def test_rank_that_is_gone_ends_all_that_is_under_way(
    pair: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is there to agree with: one clear error, not a wait for ever."""
    monkeypatch.setattr(fallback, "_AGREE_TIMEOUT", timedelta(seconds=1))
    tensor = torch.ones(100)
    before = pair.workers[0].submit(tensor, Reduction.SUM)
    pair.workers[1].close(0.0)
    pair.lose_switch(0)
    with pytest.raises(FallbackError, match="rank 0 noticed; and it cannot go on over Gloo"):
        before.wait()
    with pytest.raises(FallbackError):
        pair.workers[0].submit(tensor, Reduction.SUM).wait()


def test_session_that_has_failed_takes_the_others_with_it(pair: Group) -> None:
    waiting = pair.workers[0].submit(torch.ones(100), Reduction.SUM)
    pair.workers[1].fail(JobEvictedError("an operator says so"))
    pair.lose_switch(0)
    with pytest.raises(FallbackError, match="rank 1 cannot go on: an operator says so"):
        waiting.wait()


def test_other_failures_are_not_taken_over(pair: Group) -> None:
    waiting = pair.workers[0].submit(torch.ones(100), Reduction.SUM)
    pair.workers[0]._session.fail(JobEvictedError("an operator says so"))
    with pytest.raises(JobEvictedError):
        waiting.wait()
    assert pair.workers[0].switch_loss is None


def test_what_differs_is_not_summed_by_gloo(pair: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    over = pair.workers[0]._fallback
    assert over is not None
    monkeypatch.setattr(
        over._member.signal, "hear", lambda _limit_s: "another rank says it is lost"
    )
    waiting = pair.workers[0].submit(torch.ones(100), Reduction.SUM)
    pair.workers[0]._session.fail(RanksDifferError("ranks differ in all-reduce 1"))
    with pytest.raises(RanksDifferError):
        waiting.wait()
    assert pair.workers[0].switch_loss is None


def test_abort_after_the_loss(pair: Group) -> None:
    pair.lose_switch(0)
    pair.wait_for_gloo()
    waiting = pair.workers[0].submit(torch.ones(100), Reduction.SUM)
    pair.workers[0].abort("group g")
    with pytest.raises(GroupClosedError, match="aborted"):
        waiting.wait()
    # Gloo cannot abort: without its peer the sum would be under way there until its timeout.
    pair.workers[1].submit(torch.ones(100), Reduction.SUM).wait()


def test_close_waits_for_ranks_that_may_lack_results(pair: Group) -> None:
    """The first rank to be done has the last result; the switch goes before the other gets it."""
    ended = threading.Event()

    def close() -> None:
        pair.workers[0].close(_LIMIT_S)
        ended.set()

    closing = threading.Thread(target=close)
    closing.start()
    assert not ended.wait(0.5)
    pair.workers[1].close(_LIMIT_S)
    assert ended.wait(_LIMIT_S)
    closing.join(_LIMIT_S)


def test_close_does_not_wait_for_a_job_that_has_failed(pair: Group) -> None:
    closing = threading.Thread(target=pair.workers[0].close, args=(10 * _LIMIT_S,))
    closing.start()
    pair.workers[0]._session.fail(JobEvictedError("an operator says so"))
    closing.join(_LIMIT_S)
    assert not closing.is_alive()
