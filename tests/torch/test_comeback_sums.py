"""Groups that lose a switch that works, at random moments: they go back, and sums stay exact.

Each worker is a thread of this process.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import torch

from ina.host.errors import JobEvictedError, SwitchLostError
from ina.protocol.collective import Reduction
from ina.torch.errors import GroupClosedError
from ina.torch.fallback import comeback
from ina.torch.worker import Worker
from tests.selection import LONG
from tests.torch.fallback_group import LIMIT_S, Case, Group


def wait_until(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def ready(worker: Worker) -> bool:
    """Whether it has joined anew, and the group does not use that yet."""
    assert worker._fallback is not None
    return worker._fallback._gate._candidate is not None


def sum_of_ranks(group: Group) -> None:
    """One int32 sum over all ranks, which all wait for."""
    parts = [torch.full((100,), 1 + rank, dtype=torch.int32) for rank in range(len(group.workers))]
    for one in [
        m.submit(part, Reduction.SUM) for m, part in zip(group.workers, parts, strict=True)
    ]:
        one.wait()
    expected = sum(range(1, 1 + len(parts)))
    assert all(part.eq(expected).all() for part in parts)


def until_returned(group: Group, returns: int) -> None:
    """Sum until all have gone back so often."""
    deadline = time.monotonic() + LIMIT_S
    while any(worker.switch_returns < returns for worker in group.workers):
        assert time.monotonic() < deadline, [worker.switch_returns for worker in group.workers]
        sum_of_ranks(group)
        time.sleep(0.002)


@pytest.fixture
def pair() -> Iterator[Group]:
    group = Group(2, 0.0, 0)
    yield group
    group.close()


@pytest.mark.parametrize("seed", range(100 if LONG else 4))
def test_sums_under_way_at_losses_and_returns(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comeback, "_SHORT_S", 0.0)  # go back at once, each time
    chance = random.Random(seed)
    workers, losses = chance.choice([2, 3]), 3
    group = Group(workers, chance.choice([0.0, 0.1]), seed)
    cases: list[Case] = []
    end = [1 << 30]  # how many there are, once that is known
    lock = threading.Lock()

    def case(number: int) -> Case:
        with lock:
            while len(cases) <= number:
                cases.append(Case.draw(workers, chance, len(cases) + 1))
            return cases[number]

    def work(rank: int) -> None:
        pauses, number, sums = random.Random(f"{seed} {rank}"), 0, []
        while number < end[0]:
            time.sleep(pauses.choice([0, 0, 0, 0.003]))
            one = case(number)
            sums.append(one.submit(rank, group.workers[rank]))
            number += 1
            if len(sums) > 8:  # so that ranks stay together
                sums.pop(0).wait()
        for left in sums:
            left.wait()

    def returned(times: int, done: list[Future[None]]) -> None:
        def is_so() -> bool:
            back = all(it.switch_returns >= times for it in group.workers)
            return back or any(one.done() for one in done)  # with an error

        wait_until(is_so, f"return {times}")

    try:
        with ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(work, rank) for rank in range(workers)]
            try:
                for number in range(losses):
                    returned(number, done)
                    time.sleep(chance.uniform(0, 0.05))
                    for rank in chance.sample(range(workers), chance.randint(1, workers)):
                        group.workers[rank]._session.fail(SwitchLostError(f"rank {rank} noticed"))
                returned(losses, done)
                end[0] = len(cases) + 20
            except BaseException:
                end[0] = 0  # else they go on, and the pool waits for them
                raise
            group.wait_for(done)
        for each in cases:
            each.check()
        counted = [worker.stats().operations_done for worker in group.workers]
        assert all(0 < count <= len(cases) for count in counted)
    finally:
        end[0] = 0
        group.close()


def test_one_rank_that_stays_keeps_all_on_gloo() -> None:
    group = Group(2, 0.0, 0, stay=[1])
    try:
        group.lose_switch(0, stop=False)
        group.wait_for_gloo()
        for _ in range(100):
            sum_of_ranks(group)
        assert [worker.switch_returns for worker in group.workers] == [0, 0]
        assert not any(map(ready, group.workers))
    finally:
        group.close()


def test_a_session_that_is_lost_before_it_is_used_is_joined_anew(
    pair: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one rank alone; the other gives up what only it has."""
    monkeypatch.setattr(comeback, "STALE_S", 0.1)
    pair.lose_switch(0, stop=False)
    pair.wait_for_gloo()
    wait_until(lambda: all(map(ready, pair.workers)), "ready")
    joined = pair.workers[1]._next
    assert joined is not None
    joined.session.fail(JobEvictedError("an operator says so"))
    wait_until(lambda: pair.workers[1]._next is not joined, "given up")
    until_returned(pair, 1)
    sum_of_ranks(pair)


def test_a_group_that_ends_while_it_joins_does_not_wait(pair: Group) -> None:
    pair.lose_switch(0, 1)
    pair.wait_for_gloo()
    time.sleep(0.3)  # the former job keeps its name: the switch has stopped
    began_s = time.monotonic()
    waiting = pair.workers[0].submit(torch.ones(10), Reduction.SUM)
    for worker in pair.workers:
        worker.abort("group g")
    assert time.monotonic() - began_s < 5.0
    with pytest.raises(GroupClosedError, match="aborted"):
        waiting.wait()


def test_a_group_that_ends_with_what_it_has_joined_leaves_that(pair: Group) -> None:
    pair.lose_switch(0, stop=False)
    pair.wait_for_gloo()
    wait_until(lambda: all(map(ready, pair.workers)), "ready")
    for worker in pair.workers:
        worker.close(1.0)
    wait_until(lambda: not pair.embedded.show().slots_used, "nobody is in any job")


def test_what_differs_in_speed_goes_back_at_the_same_sum(pair: Group) -> None:
    """One rank is far ahead: its sums wait for the other's ballot."""
    pair.lose_switch(0, stop=False)
    pair.wait_for_gloo()
    wait_until(lambda: all(map(ready, pair.workers)), "ready")
    parts = [
        [torch.full((9,), 1 + rank + n, dtype=torch.int32) for n in range(50)] for rank in range(2)
    ]
    sums = [pair.workers[0].submit(part, Reduction.SUM) for part in parts[0]]
    assert pair.workers[0].switch_returns == 0
    sums += [pair.workers[1].submit(part, Reduction.SUM) for part in parts[1]]
    for one in sums:
        one.wait()
    for number in range(50):
        assert all(of_rank[number].eq(3 + 2 * number).all() for of_rank in parts)
    assert [worker.switch_returns for worker in pair.workers] == [1, 1]
    losses = [worker.switch_loss for worker in pair.workers]
    assert len({one.gloo_operations for one in losses if one is not None}) == 1
