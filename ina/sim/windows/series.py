"""A history as a plot wants it: few points, rates, the queues that matter."""

from __future__ import annotations

import numpy as np

from ina.sim.windows.cell import Series
from ina.sim.windows.history import Floats, History
from ina.sim.windows.measure import rates_gbit

_POINTS = 150
_PORTS = 3


def series_of(history: History, hosts: int = 1) -> Series:
    """``hosts``: by which the rate of other traffic is divided, where it goes to so many."""
    edges_s = np.linspace(0.0, float(history.at_s[-1]), min(_POINTS, len(history.at_s)) + 1)
    middles_s = (edges_s[1:] + edges_s[:-1]) / 2
    longest = sorted(
        history.ports, key=lambda name: -float(history.ports[name].waiting_bytes.mean())
    )
    goodput = {
        name: rates_gbit(history.at_s, job.done_bytes, edges_s)
        for name, job in history.jobs.items()
    }
    goodput |= {
        name: rates_gbit(history.at_s, flows.sum(axis=1), edges_s) / hosts
        for name, flows in history.flows.items()
    }
    return Series(
        at_ms=_plain(middles_s * 1e3),
        windows={
            name: _at(history, job.windows.mean(axis=1), middles_s)
            for name, job in history.jobs.items()
        },
        queues_kib={
            name: _most(history, history.ports[name].waiting_bytes / 1024, edges_s)
            for name in longest[:_PORTS]
        },
        goodput_gbit={name: _plain(rates) for name, rates in goodput.items()},
    )


def _at(history: History, values: Floats, at_s: Floats) -> list[float]:
    return _plain(np.interp(at_s, history.at_s, values))


def _most(history: History, values: Floats, edges_s: Floats) -> list[float]:
    """The largest of the looks between each two edges: a peak is what a queue must hold."""
    places = np.clip(np.searchsorted(edges_s, history.at_s, side="right") - 1, 0, len(edges_s) - 2)
    found = np.zeros(len(edges_s) - 1)
    np.maximum.at(found, places, values)
    return _plain(found)


def _plain(values: Floats) -> list[float]:
    return [round(float(value), 6) for value in values]
