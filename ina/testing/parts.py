"""Sums of which each rank gets a part: what the parts must be, by the sums of whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ina.testing.numerics import Array

Summed = Callable[[Sequence[Array]], Array]


def reduce_scatter(
    inputs: Sequence[Array], chunk_elems: int, summed: Summed, *, in_turn: bool = False
) -> Array:
    """All parts, in the order of the ranks. ``inputs``: by rank, as many values for each rank.

    ``summed``: of tensors that have each part filled up to whole chunks, one behind the other;
    ``in_turn``: their chunks by turns, as they are sent.
    """
    ranks = len(inputs)
    elems = inputs[0].size // ranks
    chunks = -(-elems // chunk_elems)
    filled = [_filled(whole, ranks, chunks * chunk_elems) for whole in inputs]
    shape = (ranks, chunks, chunk_elems)
    if in_turn:
        filled = [whole.reshape(shape).swapaxes(0, 1).reshape(-1) for whole in filled]
    sums = summed(filled)
    if in_turn:
        sums = sums.reshape(chunks, ranks, chunk_elems).swapaxes(0, 1)
    parts: Array = sums.reshape(ranks, -1)[:, :elems].reshape(-1)
    return parts


def _filled(whole: Array, ranks: int, elems: int) -> Array:
    parts = np.zeros((ranks, elems), whole.dtype)
    parts[:, : whole.size // ranks] = whole.reshape(ranks, -1)
    return parts.reshape(-1)
