"""How far off sums are by how floats travel: the documented numerics on drawn gradients.

Relative squared error, |result - exact|^2 / |exact|^2. Values are normal, times a log-normal that
ranks share, as gradients of layers are: a block's largest is far above most others.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import ml_dtypes
import numpy as np

from ina.protocol.coding import CODINGS, MOST_WORKERS, Coding
from ina.testing import packed
from ina.testing.numerics import Array, exact_result

_SPREAD = 2.0
"""Of the log-normal."""


@dataclass(frozen=True)
class RoundingRow:
    """One way of one number of workers."""

    workers: int
    way: str
    """bf16: a chain of additions, as Gloo's ring does; a wire; or 8 turned, as the hook does, where
    torch is installed."""
    error: float
    """Relative squared error of the sum, all seeds."""


def gradients(workers: int, elems: int, seed: int) -> list[Array]:
    """One of each rank's."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(_SPREAD * rng.standard_normal(elems))
    return [(rng.standard_normal(elems) * sizes).astype(np.float32) for _ in range(workers)]


def measure(workers: int, elems: int, words: int, seeds: int) -> list[RoundingRow]:
    """All ways that so many workers may take; ``words``: of a packet."""
    ways: dict[str, Callable[[Sequence[Array]], Array]] = {"bf16": _bf16_chain}
    for name, coding in CODINGS.items():
        if workers <= MOST_WORKERS[coding.bits]:
            ways[name] = partial(_as_it_travels, words=words, coding=coding)
    if workers <= MOST_WORKERS[8] and importlib.util.find_spec("torch") is not None:
        ways["8 turned"] = _turned
    off, of = dict.fromkeys(ways, 0.0), 0.0
    for seed in range(seeds):
        parts = gradients(workers, elems, seed)
        exact = exact_result(parts, "sum")
        of += float(np.square(exact).sum())
        for name, way in ways.items():
            off[name] += float(np.square(way(parts) - exact).sum())
    return [RoundingRow(workers, name, off[name] / of) for name in ways]


def _as_it_travels(parts: Sequence[Array], *, words: int, coding: Coding) -> Array:
    return packed.all_reduce(parts, "sum", words, coding)


def _bf16_chain(parts: Sequence[Array]) -> Array:
    total = parts[0].astype(ml_dtypes.bfloat16)
    for part in parts[1:]:
        total = total + part.astype(ml_dtypes.bfloat16)
    return total.astype(np.float64)


def _turned(parts: Sequence[Array]) -> Array:
    """By the hook itself; in one step, so without feedback."""
    from ina.torch.virtual import VirtualHook

    workers, averages = len(parts), [part.copy() for part in parts]
    hooks = [VirtualHook("lowbit8", [parts[0].size], rank, workers) for rank in range(workers)]
    begun, firsts = zip(
        *[hook.begin(it) for hook, it in zip(hooks, averages, strict=True)], strict=True
    )
    reaches = np.mean([first.array for first in firsts], axis=0)
    for first in firsts:
        first.array[:] = reaches
    integers = [hook.second(one) for hook, one in zip(hooks, begun, strict=True)]
    own, *others = [one.array for one in integers if one is not None]
    for other in others:
        own += other
    hooks[0].write(begun[0])
    total: Array = averages[0].astype(np.float64) * workers
    return total
