"""What holds a job up: a straggler, its hosts, a link, or its slots. Rules, in this order. Pure.

1. *straggler*: one rank's packet is the last of far more sums than its turn would be, at least half
   way from 1/n to all; and the others' round trips, most of which is then waiting for it, are twice
   its own or more.
2. *host*: no rank had operations pending for half of the time: the network waits for tensors.
3. *link*: the controller's cap is the window of some rank; or of some rank's results one in a
   hundred was marked or lost, or its window is below W and any was; or it has nine tenths of its
   share of a link that is shared; or round trips are twice the shortest: packets stand in a queue.
4. *slots*: windows are W, and round trips are near the shortest: W packets a round trip is all that
   there can be.

Else nothing is said: where little has come since the report before, for instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ina.controller.windows.caps import Cap
from ina.controller.windows.seen import Between

LEAST_RESULTS = 50
"""Of a rank between two reports; with fewer nothing is said."""
LONG_ROUND_TRIP = 2.0
"""Times another one."""
BUSY_SHARE = 0.5
TROUBLE_SHARE = 0.01
"""Of results: marked, or of packets that were lost."""
FULL_SHARE = 0.9


@dataclass(frozen=True)
class Limit:
    """What holds a job up."""

    what: str
    """``straggler``, ``host``, ``link``, ``slots``; empty: not known."""
    why: str
    """One line, for people."""
    rank: int | None = None
    """Which one, if it is one."""


UNKNOWN = Limit("", "too little has come to tell")


def limited_by(ranks: Sequence[Between], cap: Cap) -> Limit:
    """Of a job; ``ranks``: of all that have told, in their order."""
    told = [it for it in ranks if it.results >= LEAST_RESULTS]
    if not told:
        idle = [it for it in ranks if it.busy_share is not None]
        if idle and len(idle) == len(ranks):
            return _host(ranks) or UNKNOWN
        return UNKNOWN
    return (
        _straggler(told)
        or _host(told)
        or _link(told, cap)
        or _slots(told)
        or Limit("", "no rule says")
    )


def _straggler(ranks: Sequence[Between]) -> Limit | None:
    if len(ranks) < 2:
        return None
    worst = max(ranks, key=lambda it: it.last_share)
    others = [it for it in ranks if it is not worst and it.mean_s > 0]
    if worst.last_share < (1 + 1 / len(ranks)) / 2 or not others or not worst.mean_s:
        return None
    others_s = sum(it.mean_s for it in others) / len(others)
    if others_s < LONG_ROUND_TRIP * worst.mean_s:
        return None
    return Limit(
        "straggler",
        f"rank {worst.rank}'s packet is the last of {worst.last_share:.0%} of the sums: the others'"
        f" round trips are {_us(others_s)}, its own {_us(worst.mean_s)}",
        worst.rank,
    )


def _host(ranks: Sequence[Between]) -> Limit | None:
    shares = [it.busy_share for it in ranks if it.busy_share is not None]
    if len(shares) < len(ranks) or max(shares) >= BUSY_SHARE:
        return None
    return Limit(
        "host",
        f"operations are pending for {max(shares):.0%} of the time at most: the network waits for"
        " tensors",
    )


def _link(ranks: Sequence[Between], cap: Cap) -> Limit | None:
    where = "" if cap.bottleneck is None else f" of {cap.bottleneck}"
    for it in ranks:
        if it.most_packets and it.packets >= it.most_packets:
            return Limit(
                "link",
                f"the cap is {it.most_packets} packets: the job's share{where},"
                f" {_gbit(cap.share_bits_per_s)}, of which it has {_gbit(it.goodput_bits_per_s)}",
                it.rank,
            )
    for it in ranks:
        trouble = it.marks + it.losses
        if trouble >= TROUBLE_SHARE * it.results or (trouble and it.packets < it.largest):
            return Limit(
                "link",
                f"rank {it.rank} has {it.marks} marks and {it.losses} losses in {it.results}"
                f" results, and a window of {it.packets} of {it.largest}",
                it.rank,
            )
    fastest = max(ranks, key=lambda it: it.goodput_bits_per_s)
    if cap.share_bits_per_s and fastest.goodput_bits_per_s >= FULL_SHARE * cap.share_bits_per_s:
        return Limit(
            "link",
            f"{_gbit(fastest.goodput_bits_per_s)} is the job's share{where},"
            f" {_gbit(cap.share_bits_per_s)}",
            fastest.rank,
        )
    for it in ranks:
        if it.shortest_s and it.mean_s >= LONG_ROUND_TRIP * it.shortest_s:
            return Limit(
                "link",
                f"rank {it.rank}'s round trips are {_us(it.mean_s)}, the shortest was"
                f" {_us(it.shortest_s)}: packets stand in a queue",
                it.rank,
            )
    return None


def _slots(ranks: Sequence[Between]) -> Limit | None:
    if any(it.packets < it.largest or not it.mean_s for it in ranks):
        return None
    it = max(ranks, key=lambda it: it.mean_s)
    return Limit(
        "slots",
        f"all {it.largest} packets of the window are in flight, and round trips of"
        f" {_us(it.mean_s)} are short: more slots would make it faster",
    )


def _gbit(bits_per_s: float) -> str:
    return f"{bits_per_s / 1e9:.3g} Gbit/s"


def _us(time_s: float) -> str:
    return f"{time_s * 1e6:.0f} µs"
