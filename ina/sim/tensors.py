"""What ranks give to an all-reduce, and whether what they get is right.

Values follow from the seed and from where they are used, so nothing has to be kept to know them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from msgspec.structs import replace

from ina.host.arrays import Array
from ina.protocol.coding import CODINGS
from ina.sim.scenario import TensorSpec
from ina.testing import numerics, packed, sparse, streams
from ina.testing.parts import reduce_scatter

_DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "int32": np.dtype(np.int32),
}
_RUN = 256
"""Values in a row that are zero together."""
_STRANGE = 0.05
"""Share of float tensors with a block of zeros, or with Inf or NaN in it."""


def dtype_of(spec: TensorSpec) -> np.dtype[Any]:
    """NumPy's, of a name in a scenario."""
    return _DTYPES[spec.dtype]


@dataclass(frozen=True)
class Place:
    """Which all-reduce of which job."""

    seed: int
    job: str
    step: int
    tensor: int

    def given(self, spec: TensorSpec, rank: int, workers: int) -> Array:
        """What a rank reads from."""
        if spec.kind == "barrier":
            return np.zeros(0, dtype_of(spec))
        if spec.kind == "reduce_scatter":
            spec = replace(spec, elems=spec.elems * workers)
        return self.values(spec, rank)

    def values(self, spec: TensorSpec, rank: int) -> Array:
        """Of a tensor of this size, a rank's."""
        values = self._dense(spec, rank)
        if spec.zeros > 0.0:
            seed = zlib.crc32(f"{self.seed} {self.job} {self.step} {self.tensor} {rank}".encode())
            draws = np.random.default_rng(seed).random(-(-spec.elems // _RUN))
            for chosen, zero in ((draws < spec.zeros, 0.0), (draws < spec.zeros / 2, -0.0)):
                values[np.repeat(chosen, _RUN)[: spec.elems]] = zero
        return values

    def _dense(self, spec: TensorSpec, rank: int) -> Array:
        key = zlib.crc32(f"{self.job} {self.step} {self.tensor}".encode())
        rng = np.random.Generator(np.random.PCG64([self.seed % (1 << 32), key, rank]))
        dtype = dtype_of(spec)
        if spec.dtype == "int32":
            limit = 2 ** (31 if key % 4 == 0 else 20)  # large ones may wrap, on any rank
            whole = rng.integers(-limit, limit, spec.elems, dtype=np.int64).astype(np.int32)
            return self._thinned(whole, spec, rank, key)
        sizes = 2.0 ** rng.integers(-8, 8, spec.elems)
        values: Array = (rng.random(spec.elems) - 0.5) * sizes
        if rng.random() < _STRANGE and spec.elems:
            start = int(rng.integers(spec.elems))
            values[start : start + 64] = rng.choice((0.0, np.inf, np.nan))
        return self._thinned(values.astype(dtype), spec, rank, key)

    def _thinned(self, values: Array, spec: TensorSpec, rank: int, key: int) -> Array:
        """Of a sparse sum: with blocks of zeros, of either sign; of some, the same on all ranks."""
        if spec.density is None:
            return values
        own = (key, rank) if key % 2 else (key,)
        rng = np.random.Generator(np.random.PCG64([self.seed % (1 << 32), *own]))
        blocks = sparse.block_count(spec.elems, spec.block_elems)
        draws = rng.random(blocks)
        is_kept = sparse.values_of(draws < spec.density, spec.block_elems, spec.elems)
        is_signed = sparse.values_of(rng.random(blocks) < 0.5, spec.block_elems, spec.elems)
        zeros = np.zeros(spec.elems, values.dtype)
        values = np.where(is_kept, values, np.where(is_signed, -zeros, zeros))
        return values

    def right(
        self, spec: TensorSpec, workers: int, words: int, number: int = 1, lanes: int = 0
    ) -> Array:
        """What ranks must get, bit for bit; of what each gets a part of, all parts.

        ``words``: of a packet. ``number``: in the order of submission, from 1. ``lanes``: of a
        stream of blocks; 0: it is none.
        """
        parts = [self.given(spec, rank, workers) for rank in range(workers)]
        if spec.kind == "all_gather":
            return np.concatenate(parts)
        if spec.kind in ("broadcast", "barrier"):
            return parts[spec.root or 0]
        if spec.kind == "reduce_scatter":
            dense = replace(spec, kind="all_reduce")
            chunk = (words - 1 if lanes else words) * 32 // CODINGS[spec.wire].bits
            return reduce_scatter(
                parts,
                chunk,
                lambda filled: self._sum(dense, filled, words, number, lanes),
                in_turn=lanes > 0,
            )
        return self._sum(spec, parts, words, number, lanes)

    @staticmethod
    def _sum(
        spec: TensorSpec, parts: Sequence[Array], words: int, number: int, lanes: int
    ) -> Array:
        coding = CODINGS[spec.wire]
        with np.errstate(invalid="ignore"):
            if lanes:
                return streams.all_reduce(parts, spec.op, words - 1, lanes)
            if spec.density is None:
                return packed.all_reduce(parts, spec.op, words, coding, number)
            return sparse.all_reduce(parts, spec.block_elems, spec.op, words, coding, number)


def difference(found: Array, right: Array, values_per_packet: int) -> str:
    """Where they differ first, in a line; empty: nowhere."""
    if numerics.same_bits(found, right):
        return ""
    bits = np.dtype(f"u{right.dtype.itemsize}")
    places = np.flatnonzero(found.view(bits) != right.view(bits))
    at = int(places[0])
    return (
        f"value {at} (chunk {at // values_per_packet}) is {found[at]} and should be {right[at]};"
        f" {places.size} of {right.size} values differ"
    )
