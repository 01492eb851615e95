"""Collectives of all kinds, with what each rank has and must get."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ina.host.arrays import VALUE_TYPES, Array
from ina.protocol.collective import REDUCTIONS, Collective, CollectiveKind
from ina.protocol.spec import ValueType
from ina.testing import numerics
from tests.worlds.parts import INT32, random_parts

UNTOUCHED = 0x5A
"""Each byte of memory that nothing may be written to."""
FLOAT32 = np.dtype(np.float32)
DTYPES = (INT32, *numerics.FLOATS)


@dataclass(frozen=True)
class Step:
    """One collective; by rank what is read, what is written, and what must be there then."""

    what: Collective
    ins: list[Array]
    outs: list[Array]
    wanted: list[Array]

    def check(self) -> None:
        """Raises AssertionError: some rank has something else."""
        for rank, (out, wanted) in enumerate(zip(self.outs, self.wanted, strict=True)):
            assert numerics.same_bits(out, wanted), f"{self.what}: rank {rank}"


def untouched(elems: int, dtype: np.dtype[Any]) -> Array:
    """Memory as it is before a result comes."""
    return np.full(elems * dtype.itemsize, UNTOUCHED, np.uint8).view(dtype)


def reduced(
    kind: CollectiveKind,
    parts: Sequence[Array],
    values: int,
    *,
    op: str = "sum",
    root: int = 0,
) -> Step:
    """Of what is summed; ``parts``: of each rank, for REDUCE_SCATTER with all ranks' parts."""
    ranks, dtype = len(parts), parts[0].dtype
    shares = ranks if kind is CollectiveKind.REDUCE_SCATTER else 1
    elems = parts[0].size // shares
    what = Collective(VALUE_TYPES[dtype], elems, REDUCTIONS[op], kind, root)
    sums = [
        numerics.all_reduce([part[first : first + elems] for part in parts], op, values)
        for first in range(0, shares * elems, elems or 1)
    ] or [untouched(0, dtype)] * shares
    outs = [untouched(elems, dtype) for _ in parts]
    wanted = [sums[rank if shares > 1 else 0] for rank in range(ranks)]
    if kind is CollectiveKind.REDUCE:
        wanted = [sums[0] if rank == root else outs[rank].copy() for rank in range(ranks)]
    return Step(what, list(parts), outs, wanted)


def gathered(parts: Sequence[Array]) -> Step:
    """Of each rank's bytes."""
    what = Collective(ValueType.BYTES, parts[0].size, kind=CollectiveKind.ALL_GATHER)
    whole = np.concatenate(parts)
    return Step(what, list(parts), [untouched(whole.size, whole.dtype) for _ in parts],
                [whole] * len(parts))  # fmt: skip


def broadcast(data: Array, ranks: int, root: int) -> Step:
    """Of these bytes; the root's memory is not written to."""
    what = Collective(ValueType.BYTES, data.size, kind=CollectiveKind.BROADCAST, root=root)
    outs = [untouched(data.size, data.dtype) for _ in range(ranks)]
    ins = [data if rank == root else outs[rank] for rank in range(ranks)]
    wanted = [outs[rank].copy() if rank == root else data for rank in range(ranks)]
    return Step(what, ins, outs, wanted)


def barrier(ranks: int) -> Step:
    """Of nothing."""
    nothing = untouched(0, INT32)
    what = Collective(ValueType.INT32, 0, kind=CollectiveKind.BARRIER)
    return Step(what, [nothing] * ranks, [nothing] * ranks, [nothing] * ranks)


def drawn(rng: random.Random, ranks: int, values: int, most_elems: int) -> Step:
    """Any of them, of a random size."""
    kind = rng.choice(list(CollectiveKind))
    elems = rng.choice((0, 1, rng.randint(1, values), rng.randint(1, most_elems)))
    root, seed = rng.randrange(ranks), rng.getrandbits(32)
    octets = np.random.default_rng(seed)
    match kind:
        case CollectiveKind.BARRIER:
            return barrier(ranks)
        case CollectiveKind.ALL_GATHER:
            return gathered([octets.integers(0, 256, elems, np.uint8) for _ in range(ranks)])
        case CollectiveKind.BROADCAST:
            return broadcast(octets.integers(0, 256, 4 * elems, np.uint8), ranks, root)
    dtype, op = rng.choice(DTYPES), rng.choice(("sum", "avg"))
    shares = ranks if kind is CollectiveKind.REDUCE_SCATTER else 1
    parts = random_parts(dtype, ranks, shares * elems, seed)
    if elems and rng.random() < 0.1 and dtype != INT32:
        parts[root][rng.randrange(parts[root].size)] = np.inf
    return reduced(kind, parts, values, op=op, root=root if kind.has_root else 0)
