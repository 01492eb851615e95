"""Workers in threads, over an embedded switch that they give up for Gloo, and what they sum."""

from __future__ import annotations

import faulthandler
import random
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import torch
from torch._C._distributed_c10d import HashStore

from ina.controller.embedded import Embedded
from ina.host.errors import SwitchLostError
from ina.protocol.coding import CODINGS, Coding
from ina.protocol.collective import REDUCTIONS
from ina.protocol.spec import ValueType
from ina.protocol.verify import Verify
from ina.testing import numerics
from ina.torch.env import Settings
from ina.torch.paths import collective_of
from ina.torch.worker import Sum, Worker
from tests.worlds.word_sums import by_numpy

LIMIT_S = 30.0
_DTYPES = (torch.int32, torch.float32, torch.float16, torch.bfloat16)
VALUES = 64


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
        self.embedded = Embedded(values=VALUES, slots=32, loss_rate=loss_rate, loss_seed=seed)
        self.embedded.__enter__()
        store = HashStore()
        settings = Settings(
            controller=self.embedded.controller_addr, on_switch_loss="fallback", verify=verify
        )

        def join(rank: int) -> Worker:
            return Worker(
                store, rank, range(workers), timedelta(seconds=LIMIT_S), name="g",
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
                one.result(LIMIT_S)
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
            deadline = time.monotonic() + LIMIT_S
            while worker.switch_loss is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)


@dataclass
class Case:
    """One all_reduce."""

    parts: list[torch.Tensor]
    op: str
    coding: Coding
    number: int
    results: list[torch.Tensor]

    @classmethod
    def draw(cls, workers: int, chance: random.Random, number: int) -> Case:
        """``number``: in the order of submission, from 1."""
        dtype, op = chance.choice(_DTYPES), chance.choice(["sum", "avg"])
        elems = chance.choice([1, 63, 65, 700, 3000, 20_000])
        coding = chance.choice(list(CODINGS.values()))
        generator = torch.Generator().manual_seed(chance.getrandbits(32))
        if dtype == torch.int32:
            parts = [
                torch.randint(-(2**31), 2**31, (elems,), dtype=dtype, generator=generator)
                for _ in range(workers)
            ]
        else:
            parts = [torch.randn(elems, generator=generator).to(dtype) for _ in range(workers)]
            _spoil(parts, chance)
        return cls(parts, op, coding, number, [part.clone() for part in parts])

    def submit(self, rank: int, worker: Worker) -> Sum:
        return worker.submit(self.results[rank], REDUCTIONS[self.op], self.coding)

    def check(self) -> None:
        """On all ranks the bits of the network, wherever it went."""
        parts = [as_numpy(part) for part in self.parts]
        what = collective_of(self.parts[0], REDUCTIONS[self.op], self.coding)
        if what.value_type == ValueType.INT32:
            right = numerics.all_reduce(parts, self.op, VALUES)
        else:  # faster than ina.testing.packed, with which tests/host/test_word_sum.py compares it
            right = by_numpy(parts, what, self.number, None, words=VALUES)[0]
        for result in self.results:
            found = as_numpy(result)
            assert numerics.same_bits(found, right), (
                f"{self.op} {self.number} of {found.dtype}[{found.size}], wire {self.coding}:"
                f" {np.count_nonzero(found != right)} differ"
            )


def _spoil(parts: list[torch.Tensor], chance: random.Random) -> None:
    """Some blocks of zeros on all ranks, some values of one that are not finite or tiny."""
    for _ in range(chance.choice([0, 0, 3])):
        at = chance.randrange(parts[0].numel())
        for part in parts:
            part[at : at + 5 * VALUES] = chance.choice([0.0, -0.0])
        parts[chance.randrange(len(parts))][at] = chance.choice(
            [0.0, 1e-40, 3e4, float("inf"), float("nan")]
        )


def as_numpy(tensor: torch.Tensor) -> numerics.Array:
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.int16).numpy().view(numerics.FLOATS[2])
