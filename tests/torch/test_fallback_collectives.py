"""The switch stops at a random moment under collectives of all kinds: no value is lost, and none
counts twice."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from ina.host.arrays import Array
from tests.selection import LONG
from tests.torch.fallback_group import LIMIT_S, VALUES, Group
from tests.worlds import collectives
from tests.worlds.collectives import Step

STEPS = 30


def as_torch(array: Array) -> torch.Tensor:
    """The same memory."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("i2")).view(torch.bfloat16)
    return torch.from_numpy(array)


def submit_all(group: Group, rank: int, steps: list[Step], reached: dict[int, threading.Event],
               pauses_s: list[float]) -> None:  # fmt: skip
    """Of one rank, in order, then waits for all of them."""
    worker = group.workers[rank]
    begun = []
    for number, (step, pause_s) in enumerate(zip(steps, pauses_s, strict=True)):
        if number in reached:
            reached[number].set()
        time.sleep(pause_s)
        begun.append(worker.start(step.what, as_torch(step.ins[rank]), as_torch(step.outs[rank])))
    for one in begun:
        one.wait()


@pytest.mark.parametrize("seed", range(300 if LONG else 4))
def test_what_is_under_way_when_the_switch_stops(seed: int) -> None:
    chance = random.Random(seed)
    workers = chance.choice([2, 3, 4])
    group = Group(workers, chance.choice([0.0, 0.2]), seed)
    steps = [collectives.drawn(chance, workers, VALUES, 20 * VALUES) for _ in range(STEPS)]
    moment = chance.randrange(STEPS)
    pauses_s = [[chance.choice([0, 0, 0, 0.003]) for _ in steps] for _ in range(workers)]
    noticed = chance.sample(range(workers), chance.randint(1, workers))
    reached = {moment: threading.Event()}
    try:
        with ThreadPoolExecutor(workers) as pool:
            done = [
                pool.submit(submit_all, group, rank, steps, reached, pauses_s[rank])
                for rank in range(workers)
            ]
            assert reached[moment].wait(LIMIT_S)
            time.sleep(chance.uniform(0, 0.01))
            group.lose_switch(*noticed, stop=chance.random() < 0.5)
            group.wait_for(done)
        for step in steps:
            step.check()
        group.wait_for_gloo()
    finally:
        group.close()


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_what_comes_later_goes_over_gloo(rank: int) -> None:
    group = Group(3, 0.0, rank)
    chance = random.Random(rank)
    steps = [collectives.drawn(chance, 3, VALUES, 20 * VALUES) for _ in range(STEPS)]
    try:
        group.lose_switch(rank)
        group.wait_for_gloo()
        with ThreadPoolExecutor(3) as pool:
            done = [pool.submit(submit_all, group, it, steps, {}, [0.0] * STEPS) for it in range(3)]
            group.wait_for(done)
        for step in steps:
            step.check()
    finally:
        group.close()
