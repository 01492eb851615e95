"""What a :class:`~ina.sim.windows.watch.Watch` saw: numbers over virtual time, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JobHistory:
    """Of one job. All but ``windows`` of shape (looks,); counts are since it began."""

    done_bytes: Floats
    """Of rank 0: values that have been summed."""
    windows: Floats
    """(looks, ranks): packets that a rank may have in flight."""
    sent: Floats
    """Packets of all ranks, as the rest."""
    resent: Floats
    probes: Floats
    """Sent again because nothing was heard, and not needed."""
    timeouts: Floats
    marked: Floats


@dataclass(frozen=True)
class PortHistory:
    """Of one way of a cable, of shape (looks,)."""

    waiting_bytes: Floats
    """As on the wire, without the frame that is being sent."""
    sent_bytes: Floats
    offered: Floats
    """Packets."""
    dropped: Floats
    """Packets that found the queue full."""


@dataclass(frozen=True)
class History:
    """Of one run."""

    at_s: Floats
    """(looks,): since the first packet of the jobs that were watched."""
    began_s: float
    """When that was, in virtual time of the run."""
    jobs: Mapping[str, JobHistory]
    ports: Mapping[str, PortHistory]
    flows: Mapping[str, Floats]
    """By traffic: (looks, flows), bytes that receivers have; flows that end stay as they were."""
    slots: Mapping[str, Floats]
    """By job: (looks,), slots that it holds of those that jobs share at the first switch."""

    def first_at(self, at_s: float) -> int:
        """The first look at that time or later; the last one where there is none."""
        return min(int(np.searchsorted(self.at_s, at_s)), len(self.at_s) - 1)
