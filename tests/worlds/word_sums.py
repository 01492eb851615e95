"""Sums of words with NumPy in place of the switch or Gloo, of ranks in one process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ina.host.chunks import ChunkMap, Ranges
from ina.host.word_sum import Place, WordSum
from ina.protocol.collective import Collective
from ina.testing.numerics import Array


def by_numpy(
    parts: Sequence[Array], what: Collective, number: int, chunks: Ranges | None, *, words: int
) -> list[Array]:
    """Each rank's result of values that lie one chunk after the other; ``words``: of a packet."""
    spans = None if chunks is None else ChunkMap(what, len(parts), words).spans(chunks)
    sums = [
        WordSum(what, Place(rank, len(parts), words), number, spans) for rank in range(len(parts))
    ]
    values = [part.copy().view(np.uint8) for part in parts]
    codes = np.max([one.codes(it) for one, it in zip(sums, values, strict=True)], axis=0)
    total = np.sum(
        [one.words(it, codes).astype(np.int64) for one, it in zip(sums, values, strict=True)],
        axis=0,
    )
    assert np.abs(total).max(initial=0) < 2**31, "no word wraps"
    for one, it in zip(sums, values, strict=True):
        one.results(total.astype(np.int32), codes, it)
    return [it.view(parts[0].dtype) for it in values]
