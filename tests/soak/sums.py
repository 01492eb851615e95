"""What the ranks of a soak sum, and whether a result is right: NumPy alone says so.

No two tensors of a run are alike, so what belongs to another step, rank or job shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from ina.testing import numerics
from ina.testing.numerics import Array

DTYPES: tuple[np.dtype[Any], ...] = (np.dtype(np.int32), *numerics.FLOATS)
OPS = ("sum", "avg")
_LENGTHS = (1, 63, 64, 65, 500, 2048, 3000)
"""Elements: parts of a packet, a window of them and more, at 64 values and 32 lanes."""


@dataclass(frozen=True)
class Case:
    """One all-reduce of a step, the same on all ranks but for :meth:`part`."""

    dtype: np.dtype[Any]
    op: str
    elems: int
    seed: tuple[int, ...]

    def part(self, rank: int) -> Array:
        """What this rank brings."""
        numbers = np.random.default_rng([*self.seed, rank])
        if self.dtype == np.int32:
            return numbers.integers(-(2**31), 2**31, self.elems, dtype=np.int32)
        # Sizes that differ from block to block and from rank to rank; float16 ends at 65504.
        powers = numbers.integers(-12, 8, -(-self.elems // 50)).repeat(50)[: self.elems]
        values = numbers.standard_normal(self.elems) * np.exp2(powers)
        return values.astype(self.dtype)

    def fault(self, result: Array, workers: int, values: int) -> str:
        """What is wrong with the sum that a rank got; empty: nothing."""
        parts = [self.part(rank) for rank in range(workers)]
        # All ranks compute the same bits here, so those that pass have the same.
        if not numerics.same_bits(result, numerics.all_reduce(parts, self.op, values)):
            return f"{self}: not the bits that follow from the parts"
        if self.dtype == np.int32:
            return ""
        error = np.abs(result.astype(np.float64) - numerics.exact_result(parts, self.op))
        if (error > numerics.error_bound(parts, self.op, values)).any():
            return f"{self}: an error of {error.max():g} is beyond the bound"
        return ""


def cases(seed: int, job: int, step: int) -> list[Case]:
    """Those of one step: each type comes in every other, SUM and AVG by chance."""
    dice = random.Random(f"{seed} {job} {step}")
    return [
        Case(dtype, dice.choice(OPS), dice.choice(_LENGTHS), (seed, job, step, number))
        for number, dtype in enumerate(DTYPES)
        if dice.random() < 0.5
    ]
