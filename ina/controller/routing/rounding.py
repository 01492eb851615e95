"""From shares of workers, as a linear program has them, to whole workers in stripes. Pure.

A job's points are laid on [0, 1), for each of its racks as long as their shares are, in one order
for the whole job; a stripe has of each rack what lies at its position. So racks that share a point
mostly share it in the same stripes, which keeps few points open in each. Independent draws, as
GRID's authors have them, open a stream to the root with nearly every draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np

from ina.controller.routing.grid_lp import Shares
from ina.controller.routing.network import Floats, Ints

MOST_ORDERED = 4
"""Kinds of points whose orders are tried: all 24."""

Draw: TypeAlias = Literal["middle", "together", "apart", "alone"]
"""Where workers of a rack look on [0, 1): all in the middle of their stripe; all at one place by
chance; spread evenly from a place by chance; each at a place of its own (randomised rounding)."""


@dataclass(frozen=True, eq=False)
class Dealt:
    """Of one job."""

    workers: Ints
    """(stripes, racks, kinds)"""
    kind_of: Ints
    """(places,): -1: of none."""


def deal(
    shares: Shares, workers: Ints, away: Ints, stripes: int, draw: Draw, rng: np.random.Generator
) -> Ints:
    """(stripes, racks, points). ``workers``: by rack; ``away``: by point, cables to the root."""
    fractions = shares.counts / np.maximum(shares.counts.sum(axis=1, keepdims=True), 1e-12)
    positions = _positions(workers, stripes, draw, rng)  # (stripes, racks, the most workers)
    is_worker = np.arange(positions.shape[2]) < workers[:, None]
    best: tuple[int, Ints] | None = None
    for order in _orders(away, fractions.sum(axis=0)):
        edges = np.cumsum(fractions[:, order], axis=1)
        edges[:, -1] = 1.0
        found = np.zeros((stripes, *fractions.shape), dtype=np.int64)
        below = np.zeros_like(edges[:, :1])
        for number, point in enumerate(order):
            upto = edges[:, number : number + 1]
            inside = (positions >= below) & (positions < upto) & is_worker
            found[:, :, point] = inside.sum(axis=2)
            below = upto
        opened = int(found[:, :, :-1].any(axis=1).sum())
        if best is None or opened < best[0]:
            best = opened, found
    assert best is not None
    return best[1]


def _positions(workers: Ints, stripes: int, draw: Draw, rng: np.random.Generator) -> Floats:
    most = int(workers.max(initial=1))
    shape = (stripes, len(workers), most)
    if draw == "alone":
        within = rng.random(shape)
    elif draw == "apart":
        within = (np.arange(most) + rng.random((len(workers), 1))) / workers[:, None]
        within = np.broadcast_to(within, shape)
    else:
        within = np.full(shape, 0.5 if draw == "middle" else rng.random())
    found: Floats = (np.arange(stripes)[:, None, None] + within) / stripes
    return np.minimum(found, np.nextafter(1.0, 0.0))


def _orders(away: Ints, weights: Floats) -> list[Ints]:
    """Of points; those as far from the root together, the root last."""
    kinds, kind = np.unique(away[:-1], return_inverse=True)
    heavy = np.bincount(kind, weights=weights[:-1], minlength=len(kinds))
    by_weight = np.argsort(-heavy, kind="stable")
    top = [int(it) for it in by_weight if heavy[it] > 0][:MOST_ORDERED]
    others = [int(it) for it in by_weight if int(it) not in top]
    found = []
    for order in permutations(top):
        rank = np.zeros(len(kinds), dtype=np.int64)
        rank[[*order, *others]] = np.arange(len(kinds))
        points = np.argsort(rank[kind], kind="stable")
        found.append(np.append(points, len(away) - 1))
    return found
