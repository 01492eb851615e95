"""What a job has of a star if all links are shared evenly (max-min), as by rates without packets.

A job sends and receives at one rate on the links of all hosts: the one that has the least for it
sets the rate on all. A bound for windows that share evenly, not for those that take more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Link = tuple[str, bool]
"""A host's, and whether to the switch."""


@dataclass
class Flow:
    """From a host to another."""

    starts_s: float
    source: str
    destination: str
    left_bytes: float
    """On the wire."""
    rate: float = 0.0
    """Bytes a second."""

    @property
    def links(self) -> tuple[Link, Link]:
        """That it crosses."""
        return (self.source, True), (self.destination, False)


def fair_rate(
    flows: Sequence[Flow], hosts: Sequence[str], capacity: float, from_s: float, to_s: float
) -> float:
    """The job's mean rate on a link between two times, in bytes a second, as is ``capacity``.

    It is there all along. Flows begin when they do, and end when they are served.
    """
    coming = sorted(flows, key=lambda flow: flow.starts_s, reverse=True)
    here: list[Flow] = []
    now_s = 0.0
    sent = 0.0
    while now_s < to_s:
        while coming and coming[-1].starts_s <= now_s:
            here.append(coming.pop())
        rate = _share(here, hosts, capacity)
        ends_s = min((flow.left_bytes / flow.rate for flow in here), default=math.inf) + now_s
        next_s = min(ends_s, coming[-1].starts_s if coming else math.inf, to_s)
        sent += rate * max(next_s - max(now_s, from_s), 0.0)
        for flow in here:
            flow.left_bytes -= flow.rate * (next_s - now_s)
        # A byte is less than what rounding leaves.
        here = [flow for flow in here if flow.left_bytes > 1.0]
        now_s = next_s
    return sent / (to_s - from_s)


def _share(flows: Sequence[Flow], hosts: Sequence[str], capacity: float) -> float:
    """Sets the flows' rates, and returns the job's: again and again, all on the link that has least
    for each get that (Bertsekas and Gallager, Data Networks, 6.5.2)."""
    left = {(host, is_up): capacity for host in hosts for is_up in (True, False)}
    waiting = list(flows)
    job_rate: float | None = None
    while waiting or job_rate is None:
        users = Counter(link for flow in waiting for link in flow.links)
        if job_rate is None:
            users.update(left.keys())
        narrowest = min(users, key=lambda link: left[link] / users[link])
        rate = left[narrowest] / users[narrowest]
        if job_rate is None:
            job_rate = rate
            for link in left:
                left[link] -= rate
        for flow in [flow for flow in waiting if narrowest in flow.links]:
            flow.rate = rate
            waiting.remove(flow)
            for link in flow.links:
                left[link] -= rate
    return job_rate
