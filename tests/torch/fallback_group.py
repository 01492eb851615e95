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
from ina.protocol.verify import Verify
from ina.testing import numerics
from ina.torch.env import Settings
from ina.torch.worker import Worker
from tests.torch.bound import sum_and_bound

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
            assert np.array_equal(first.numpy(), numerics.all_reduce(parts, self.op, VALUES))
            return
        inputs = np.stack([part.double().numpy() for part in self.parts])
        name = str(first.dtype).removeprefix("torch.")
        exact, bound = sum_and_bound(inputs, VALUES, name)
        bound += workers * np.abs(inputs).sum(axis=0) * 2.0**-24  # Gloo rounds each addition
        result = first.double().numpy()
        if self.op == "avg":
            result, bound = result * workers, 2 * bound + np.abs(exact) * 2.0**-22
        assert (np.abs(result - exact) <= bound).all()
