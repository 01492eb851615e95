"""Ranks of a star that change to another mapping, each at its own pace."""

from __future__ import annotations

import random

from ina._native.host import VerifyMode
from ina.congestion import Congestion
from ina.trees.slots import SlotRange
from tests.worlds.virtual.cores import EPOCH, JOB, worker_config
from tests.worlds.virtual.disturbed import VALUES
from tests.worlds.virtual.hand_job import OtherMapping
from tests.worlds.virtual.star import Star


class Change:
    """One change, each of whose steps each rank takes some steps of the network later."""

    def __init__(self, star: Star, number: int, slots: int, rng: random.Random) -> None:
        self._star, self._rng, self._slots = star, rng, slots
        self._epoch = EPOCH + number
        hosts = star.fabric.topology.hosts
        memory = SlotRange(4096 if number % 2 else 64, slots, slots)
        self._entries = OtherMapping(star.fabric, hosts, memory, number=JOB, epoch=self._epoch)
        self.first = 0
        self._all_done = False
        self._slowness = rng.choice([1, 3, 20, 60])
        self.stages = [0] * len(star.workers)  # begun, cut, over

    @property
    def is_over(self) -> bool:
        return set(self.stages) == {3}

    def go_on(self) -> None:
        for rank in range(len(self.stages)):
            if self._rng.randrange(self._slowness) == 0:
                self._take_step(rank)

    def _take_step(self, rank: int) -> None:
        worker, stage = self._star.workers[rank], self.stages[rank]
        if stage == 0:
            config = worker_config(
                rank, len(self.stages), self._slots, VALUES, keep_results=True,
                verify=VerifyMode.ACCIDENTS,
            )  # fmt: skip
            config.epoch = self._epoch
            worker.begin_remap(config, 0, Congestion().choice())
        elif stage == 1:
            if rank == 0 and not self.first:
                self.first = worker.reserve(self._rng.choice([0, 10**6]))
            if not self.first:
                return
            worker.cut_over(self.first, True)
        elif stage == 2:
            self._all_done = self._all_done or all(
                stage >= 2 and worker.wait_cut(0)
                for stage, worker in zip(self.stages, self._star.workers, strict=True)
            )
            if not self._all_done:
                return
            if set(self.stages) == {2}:
                self._entries.remove_former()
            worker.end_remap()
        else:
            return
        self.stages[rank] += 1
