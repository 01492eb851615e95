"""What no plan can be better than: bounds of the judge's ``step_s``. Pure.

A job with workers on both sides of a cut sends its gradient across at least once, whatever its
trees: contributions of the side without the root go one way, results of the other side the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.network import Bools, Floats, Ints, Network


@dataclass(frozen=True)
class Bound:
    """Of a step of all jobs together."""

    seconds: float
    what: str
    """For people: ``cables of leaf1``, ``host 10.0.0.1``, ``LP``."""


def cut_bound(network: Network, demands: Sequence[Demand]) -> Bound:
    """The best of cuts around racks, and around ever wider parts of the network (pods), of hosts'
    cables, and of all that places take in a second.

    Tops of racks that do not sum let every contribution of theirs out.
    """
    best = Bound(0.0, "")
    for found in _bounds(network, demands):
        best = max(best, found, key=lambda it: it.seconds)
    return best


def _bounds(network: Network, demands: Sequence[Demand]) -> Iterator[Bound]:
    sizes = np.array([it.step_bytes for it in demands])
    if not len(sizes):
        return
    hosts = np.zeros(len(network.host_names))
    workers = np.zeros((len(demands), len(network)))  # by job and top of rack
    for number, demand in enumerate(demands):
        np.add.at(hosts, np.array(demand.hosts, dtype=np.int64), demand.step_bytes)
        np.add.at(workers[number], demand.places(network), 1.0)
    seconds = np.divide(hosts, network.host_rates)
    if seconds.size:
        busiest = int(seconds.argmax())
        yield Bound(float(seconds[busiest]), f"host {network.host_names[busiest]}")
    processing = float(network.processing[network.sums].sum())
    summed = float((sizes * workers.sum(axis=1)).sum())
    yield Bound(summed / processing if processing else inf, "what all places sum")
    for parts in parts_of(network):
        yield from _cuts(network, sizes, workers, parts)


def _cuts(network: Network, sizes: Floats, workers: Floats, parts: Ints) -> Iterator[Bound]:
    """Around each part; ``parts``: by place its part's number, -1: it is in none."""
    count = int(parts.max(initial=-1)) + 1
    if count < 2:
        return
    a, b = parts[network.ends[:, 0]], parts[network.ends[:, 1]]
    crosses = a != b
    capacity = np.zeros(count + 1)
    np.add.at(capacity, a[crosses], network.rates[crosses])
    np.add.at(capacity, b[crosses], network.rates[crosses])
    inside = np.zeros((len(sizes), count + 1))
    for part in range(count):
        inside[:, part] = workers[:, parts == part].sum(axis=1)
    total = workers.sum(axis=1, keepdims=True)
    spans = (inside > 0) & (inside < total)
    # Where nothing sums inside, every contribution is sent out, and every result comes back.
    copies = np.where(_sums_somewhere(network, parts, count), spans, inside)
    load = (copies * sizes[:, None]).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(load[:count] > 0, load[:count] / capacity[:count], 0.0)
    worst = int(seconds.argmax())
    names = [network.names[it] for it in np.flatnonzero(parts == worst)]
    which = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    yield Bound(float(seconds[worst]), f"cables of {which}")


def _sums_somewhere(network: Network, parts: Ints, count: int) -> Bools:
    """(parts + 1,): whether a place of it sums."""
    found = np.zeros(count + 1, dtype=np.bool_)
    found[parts[network.sums]] = True
    return found


def parts_of(network: Network) -> Iterator[Ints]:
    """By place the number of its part: first each top of rack by itself; then what is joined by
    cables among places that are one cable away from one, and so on, until all is one part."""
    away = np.full(len(network), -1, dtype=np.int64)
    away[network.host_places] = 0
    ends = network.ends[network.is_up]
    distance = 0
    while True:
        yield _joined(network, away >= 0, ends)
        a, b = away[ends[:, 0]], away[ends[:, 1]]
        fresh = np.concatenate([ends[(a >= 0) & (b < 0), 1], ends[(b >= 0) & (a < 0), 0]])
        if not fresh.size:
            return
        distance += 1
        away[fresh] = distance


def _joined(network: Network, inside: Bools, ends: Ints) -> Ints:
    """Components of the places inside, by the smallest place in each, numbered from 0."""
    label = np.where(inside, np.arange(len(network)), -1)
    within = ends[inside[ends[:, 0]] & inside[ends[:, 1]]]
    if inside.sum() and len(within):
        while True:
            low = np.minimum(label[within[:, 0]], label[within[:, 1]])
            before = label.copy()
            np.minimum.at(label, within[:, 0], low)
            np.minimum.at(label, within[:, 1], low)
            if (label == before).all():
                break
    found = np.full(len(network), -1, dtype=np.int64)
    found[inside] = np.unique(label[inside], return_inverse=True)[1]
    return found
