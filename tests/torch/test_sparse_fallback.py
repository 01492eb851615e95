"""The switch is lost while sparse sums are under way: each is exact, once, the same everywhere."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from ina.errors import InaError
from ina.host.sparse import BlockSum
from ina.host.turns import Sum
from ina.protocol.collective import Reduction
from ina.torch.blocks import Pipeline
from ina.torch.errors import GroupClosedError
from ina.torch.parts import DenseBlocks
from tests.selection import LONG
from tests.torch.fallback_group import LIMIT_S, Group

BLOCK = 16


def _nobody(_: object) -> None:
    pass


def begin(
    pipeline: Pipeline, tensor: torch.Tensor, told: list[bool] | None = None
) -> BlockSum[Any]:
    part = DenseBlocks(tensor, BLOCK, _nobody)
    return pipeline.begin(part, Reduction.SUM, None, _nobody if told is None else told.append)


@pytest.fixture
def pair() -> Iterator[Group]:
    group = Group(2, 0.0, 0)
    yield group
    group.close()


def thin(rank: int, elems: int = 4000) -> torch.Tensor:
    """Whole numbers in one block of each rank, so that sums are exact."""
    tensor = torch.zeros(elems)
    tensor[100 * rank : 100 * rank + 10] = rank + 1.0
    return tensor


def _some_blocks(elems: int, chance: random.Random) -> torch.Tensor:
    """Whole numbers in some of its blocks, or none."""
    generator = torch.Generator().manual_seed(chance.getrandbits(32))
    whole = torch.randint(-9, 9, (elems,), generator=generator).float()
    there = torch.rand(-(-elems // 50), generator=generator) < 0.2
    return whole * there.repeat_interleave(50)[:elems]


@pytest.mark.parametrize("seed", range(100 if LONG else 4))
def test_sums_under_way_when_the_switch_stops(seed: int) -> None:
    """Among dense ones, in pipelines that are flushed now and then."""
    chance = random.Random(seed)
    workers, count = chance.choice([2, 3]), 24
    sparse = [chance.random() < 0.7 for _ in range(count)]
    flushed = [chance.random() < 0.5 for _ in range(count)]
    sizes = [chance.choice([40, 500, 6000]) for _ in range(count)]
    pauses = [[chance.choice([0, 0, 0.003]) for _ in range(count)] for _ in range(workers)]
    moment, noticed = chance.randrange(count), chance.randrange(workers)
    group = Group(workers, chance.choice([0.0, 0.2]), seed)
    reached = threading.Event()
    parts = [[_some_blocks(size, chance) for _ in range(workers)] for size in sizes]
    results = [[part.clone() for part in of_one] for of_one in parts]

    def work(rank: int) -> None:
        pipeline, sums = Pipeline(group.workers[rank]), list[Sum[Any]]()
        for number in range(count):
            if number == moment:
                reached.set()
            time.sleep(pauses[rank][number])
            if sparse[number]:
                sums.append(begin(pipeline, results[number][rank]))
            else:
                sums.append(group.workers[rank].submit(results[number][rank], Reduction.SUM))
            if flushed[number]:
                pipeline.flush()
        pipeline.flush()
        for one in sums:
            one.wait()

    try:
        with ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(work, rank) for rank in range(workers)]
            assert reached.wait(LIMIT_S)
            time.sleep(chance.uniform(0, 0.01))
            group.lose_switch(noticed, stop=chance.random() < 0.5)
            group.wait_for(done)
        for of_one, found in zip(parts, results, strict=True):
            wanted = torch.stack(of_one).sum(dim=0)
            assert all(torch.equal(one, wanted) for one in found)
        group.wait_for_gloo()
    finally:
        group.close()


def test_counters_are_under_way(pair: Group) -> None:
    """Rank 0 has sent its own; what comes behind waits for its turn, and goes over Gloo, too."""
    first, told = [thin(0), thin(1)], list[bool]()
    behind = [torch.ones(5), torch.ones(5)]
    pipelines = [Pipeline(worker) for worker in pair.workers]
    sums: list[Sum[Any]] = [begin(pipelines[0], first[0], told)]
    pipelines[0].flush()
    sums.append(pair.workers[0].submit(behind[0], Reduction.SUM))
    pair.lose_switch(0)
    pair.wait_for_gloo()
    sums.append(begin(pipelines[1], first[1]))
    pipelines[1].flush()
    sums.append(pair.workers[1].submit(behind[1], Reduction.SUM))
    for one in sums:
        one.wait()
    assert all(torch.equal(one, thin(0) + thin(1)) for one in first)
    assert all(one.eq(2).all() for one in behind)
    assert told == [False]


def test_values_are_under_way(pair: Group) -> None:
    """Rank 0 has sent them, rank 1 has its counters alone."""
    tensors, told = [thin(0), thin(1)], list[bool]()
    pipelines = [Pipeline(worker) for worker in pair.workers]
    sums = [begin(pipelines[0], tensors[0], told), begin(pipelines[1], tensors[1])]
    pipelines[0].flush()
    deadline = time.monotonic() + LIMIT_S
    while sums[0].union is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    pair.lose_switch(1)
    pair.wait_for_gloo()
    pipelines[1].flush()
    for one in sums:
        one.wait()
    assert all(torch.equal(one, thin(0) + thin(1)) for one in tensors)


def test_abort_ends_what_waits_for_its_turn(pair: Group) -> None:
    pipeline = Pipeline(pair.workers[0])
    sums: list[Sum[Any]] = [begin(pipeline, thin(0))]
    pipeline.flush()
    sums.append(pair.workers[0].submit(torch.ones(5), Reduction.SUM))
    pair.workers[0].abort("group g")
    for one in sums:
        with pytest.raises(GroupClosedError):
            one.wait()
    with pytest.raises(GroupClosedError):
        pair.workers[0].submit(torch.ones(5), Reduction.SUM).wait()


def test_leaving_ends_what_waits_for_its_turn(pair: Group) -> None:
    pipeline = Pipeline(pair.workers[0])
    one = begin(pipeline, thin(0))
    pipeline.flush()
    behind = pair.workers[0].submit(torch.ones(5), Reduction.SUM)
    pair.workers[0].close(0.0)
    for waiting in (one, behind):
        with pytest.raises(InaError, match=r"destroyed|closed"):
            waiting.wait()


def test_back_on_the_network(pair: Group) -> None:
    """The group goes back; sparse sums go there, too."""
    pair.lose_switch(0, 1, stop=False)
    pair.wait_for_gloo()
    told = list[bool]()
    deadline = time.monotonic() + LIMIT_S
    while not (told and told[-1]):
        assert time.monotonic() < deadline
        tensors = [thin(0), thin(1)]
        pipelines = [Pipeline(worker) for worker in pair.workers]
        sums = [begin(pipelines[0], tensors[0], told), begin(pipelines[1], tensors[1])]
        for pipeline in pipelines:
            pipeline.flush()
        for one in sums:
            one.wait()
        assert all(torch.equal(one, thin(0) + thin(1)) for one in tensors)
    assert told[0] is False
    assert all(worker.switch_returns == 1 for worker in pair.workers)
