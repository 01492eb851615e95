"""What each worker does in the tests of death: a training whose every sum is known beforehand.

The parameters of one rank's replica follow from the seed alone, so an undisturbed run is computed
here, in one process, without a network: a step that is lost or counted twice shows.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

import ina.torch
from ina.host.arrays import VALUE_TYPES
from ina.protocol.coding import CODINGS
from ina.protocol.collective import Collective
from tests.worlds.word_sums import by_numpy

Array = NDArray[Any]

WORDS = 64
"""Of a packet, where floats are summed."""
LENGTHS = (1, 63, 64, 1000, 20_000, 333)
"""Elements of the tensors of one step; all are in flight at once."""


@dataclass(frozen=True)
class Training:
    """Steps of several all_reduces; each changes what the next ones sum."""

    folder: Path
    """Rank 0 writes its step to ``step`` in it, for whoever kills something in mid-training."""
    seed: int
    steps: int
    pause_s: float = 0.0
    """Sleep of every rank in each step: makes the run longer, not busier."""
    returns: int = 0
    """It goes on until the group has gone back to the network so often, and some steps longer."""
    wire: str = ""
    """Of floats, the job's INA_WIRE; empty: int32."""

    def __call__(self, rank: int, workers: int) -> Outcome:
        """Run it over the default group."""
        parameters = self._initial()
        step, steps, returned = 0, self.steps, 0
        while step < steps:
            gradients = [
                torch.from_numpy(gradient(self.seed, step, rank, parameter))
                for parameter in parameters
            ]
            try:
                works = [dist.all_reduce(one, async_op=True) for one in gradients]
                for work in works:
                    work.wait()
            except Exception as error:
                return Outcome(step, digest(parameters), f"{type(error).__name__}: {error}")
            parameters = [
                update(parameter, one.numpy())
                for parameter, one in zip(parameters, gradients, strict=True)
            ]
            if rank == 0:
                self._say("step", step + 1)
            step += 1
            if self.returns:  # all ranks go back at the same all_reduce
                before, returned = returned, ina.torch.stats().switch_returns
                if rank == 0 and returned > before:
                    self._say("returns", returned)
                steps = max(steps, step + 10) if returned < self.returns else steps
            time.sleep(self.pause_s)
        return Outcome(step, digest(parameters), None, ina.torch.stats())

    def _initial(self) -> list[Array]:
        types = (np.float32, np.float16) if self.wire else (np.int32,)
        return [np.arange(n).astype(types[n % len(types)]) % 100 for n in LENGTHS]

    def _sum(self, parts: list[Array], number: int) -> Array:
        if not self.wire:
            return np.asarray(np.sum(parts, axis=0, dtype=np.int32))
        what = CODINGS[self.wire].of(Collective(VALUE_TYPES[parts[0].dtype], parts[0].size))
        return by_numpy(parts, what, number, None, words=WORDS)[0]

    def _say(self, name: str, number: int) -> None:
        said = self.folder / f"{name}.part"
        said.write_text(str(number))
        said.rename(self.folder / name)

    def undisturbed(self, workers: int, steps: int | None = None) -> str:
        """The digest of the parameters at the end, without a network."""
        parameters, number = self._initial(), 0
        for step in range(self.steps if steps is None else steps):
            sums = []
            for parameter in parameters:
                number += 1
                parts = [gradient(self.seed, step, rank, parameter) for rank in range(workers)]
                sums.append(self._sum(parts, number))
            parameters = [update(*both) for both in zip(parameters, sums, strict=True)]
        return digest(parameters)


@dataclass(frozen=True)
class Outcome:
    """How a training ended on one rank."""

    steps: int
    digest: str
    error: str | None
    stats: ina.torch.GroupStats | None = None


def gradient(seed: int, step: int, rank: int, parameter: Array) -> Array:
    """Any function of all of them will do; the multiplication of int32 wraps, as the sums do."""
    random = np.random.default_rng([seed, step, rank, len(parameter)])
    if parameter.dtype != np.int32:
        noise = random.standard_normal(len(parameter), np.float32)
        return np.asarray(parameter * np.float32(0.1 * rank) + noise).astype(parameter.dtype)
    added = random.integers(-(2**30), 2**30, len(parameter), dtype=np.int32)
    return np.asarray(parameter * np.int32(2 * rank + 3) + added)


def update(parameter: Array, total: Array) -> Array:
    if parameter.dtype != np.int32:
        return np.asarray(parameter * np.float32(0.5) + total).astype(parameter.dtype)
    return np.asarray(parameter * np.int32(5) + total)


def digest(parameters: list[Array]) -> str:
    return hashlib.sha256(b"".join(one.tobytes() for one in parameters)).hexdigest()
