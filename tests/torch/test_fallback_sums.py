"""The switch stops at a random moment under many sums: each is exact, once, the same everywhere."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import torch

from ina.host.errors import JobEvictedError, RanksDifferError
from ina.protocol.collective import Reduction
from ina.protocol.verify import Verify
from ina.torch.errors import FallbackError, GroupClosedError
from ina.torch.fallback import fallback
from tests.selection import LONG
from tests.torch.fallback_group import LIMIT_S, Case, Group
from tests.worlds.fakes.memory import Memory, pipeline_of


@pytest.fixture
def pair() -> Iterator[Group]:
    group = Group(2, 0.0, 0)
    yield group
    group.close()


@pytest.mark.parametrize("seed", range(300 if LONG else 8))
def test_sums_under_way_when_the_switch_stops(seed: int) -> None:
    chance = random.Random(seed)
    workers = chance.choice([2, 3, 4])
    cases = [Case.draw(workers, chance, 1 + n) for n in range(30)]
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
            sums.append(case.submit(rank, group.workers[rank]))
        for one in sums:
            one.wait()

    try:
        with ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(work, rank) for rank in range(workers)]
            assert reached.wait(LIMIT_S)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_an_empty_sum_that_one_rank_had_begun(pair: Group, dtype: torch.dtype) -> None:
    """It is done at once there; the others must not wait for its part, or mix it up."""
    sums = [pair.workers[0].submit(torch.ones(0, dtype=dtype), Reduction.SUM)]
    pair.lose_switch(0)
    pair.wait_for_gloo()
    sums.append(pair.workers[1].submit(torch.ones(0, dtype=dtype), Reduction.SUM))
    results = [torch.ones(5), torch.ones(5)]
    sums += [
        worker.submit(result, Reduction.SUM)
        for worker, result in zip(pair.workers, results, strict=True)
    ]
    for one in sums:
        one.wait()
    assert all(result.eq(2).all() for result in results)


@pytest.mark.parametrize("verify", ["accidents", "keyed"])
def test_a_switch_whose_memory_loses_bits_is_given_up(verify: Verify, tmp_path: Path) -> None:
    """Sums that it had made are kept, and those that it spoils are Gloo's."""
    group = Group(3, 0.01, 0, verify)
    chance = random.Random(verify)
    try:
        memory = Memory(pipeline_of(group.embedded.switch), 3, tmp_path)
        epoch = group.workers[0]._session.ticket.epoch
        for spoiled in (False, True):
            cases = [Case.draw(3, chance, 1 + n + 6 * spoiled) for n in range(6)]
            sums = [case.submit(0, group.workers[0]) for case in cases]
            if spoiled:
                for slot in memory.open(memory.owned(epoch), LIMIT_S):
                    memory.flip(chance, slot, only="slot_check")
            for rank in (1, 2):
                sums += [case.submit(rank, group.workers[rank]) for case in cases]
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
    cases = [Case.draw(workers, chance, 1 + n) for n in range(20)]
    group = Group(workers, chance.choice([0.0, 0.1]), seed, chance.choice(["accidents", "keyed"]))
    pauses = [[chance.choice([0, 0, 0.003]) for _ in cases] for _ in range(workers)]

    def work(rank: int) -> None:
        sums = []
        for case, pause_s in zip(cases, pauses[rank], strict=True):
            time.sleep(pause_s)
            sums.append(case.submit(rank, group.workers[rank]))
        for one in sums:
            one.wait()

    try:
        memory = Memory(pipeline_of(group.embedded.switch), workers, tmp_path)
        slots = range(group.workers[0]._session.ticket.slots)
        with ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(work, rank) for rank in range(workers)]
            deadline = time.monotonic() + LIMIT_S
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
    # It does not leave: the controller would tell rank 0, maybe before its switch is lost, and the
    # sum would end for that.
    gone = pair.workers[1]._fallback
    assert gone is not None
    gone.close(0.0)
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
    over = pair.workers[0]._fallback
    assert over is not None
    # Gloo cannot abort: without its peer the sum is under way there until its timeout.
    over._peers.set_timeout(timedelta(seconds=1))
    waiting = pair.workers[0].submit(torch.ones(100), Reduction.SUM)
    pair.workers[0].abort("group g")
    with pytest.raises(GroupClosedError, match="aborted"):
        waiting.wait()


def test_close_waits_for_ranks_that_may_lack_results(pair: Group) -> None:
    """The first rank to be done has the last result; the switch goes before the other gets it."""
    ended = threading.Event()

    def close() -> None:
        pair.workers[0].close(LIMIT_S)
        ended.set()

    closing = threading.Thread(target=close)
    closing.start()
    assert not ended.wait(0.5)
    pair.workers[1].close(LIMIT_S)
    assert ended.wait(LIMIT_S)
    closing.join(LIMIT_S)


def test_close_does_not_wait_for_a_job_that_has_failed(pair: Group) -> None:
    closing = threading.Thread(target=pair.workers[0].close, args=(10 * LIMIT_S,))
    closing.start()
    pair.workers[0]._session.fail(JobEvictedError("an operator says so"))
    closing.join(LIMIT_S)
    assert not closing.is_alive()
