"""The network of a cell: what its links are, what they could carry at best, where they mark."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ina.p4.builds import frame_bytes
from ina.sim.scenario import ControllerSpec, JobSpec, LinkSpec, TensorSpec
from ina.sim.ways import WIRE_GAP_BYTES

_MARKED_SHARE = 7
"""DCTCP (SIGCOMM 2010, section 3.3): a threshold above a seventh of what a round trip holds keeps
a link busy."""
_LEAST_MARK_PACKETS = 8
"""A result goes to each worker at once, and what jobs and hosts send meets: so much is chance."""
_JITTER_SHARE = 0.01
"""Of the round trip, at each link: without chance runs of all seeds would be one."""
_TENSOR_BYTES = 4 << 20


@dataclass(frozen=True)
class Net:
    """Links of one kind, between hosts and the switch where sums are made."""

    rate_gbit: float
    round_trip_us: float
    """What signals take from a host to that switch and back, without packets' own time."""
    buffer_kib: float
    """Of each queue."""
    values: int
    """Of a packet; a build of the P4 program has as many."""
    cables: int = 1
    """From a host to that switch."""

    @property
    def text(self) -> str:
        """As "10 Gbit/s, 100 us, 64 KiB"."""
        return f"{self.rate_gbit:g} Gbit/s, {self.round_trip_us:g} us, {self.buffer_kib:g} KiB"

    @property
    def frame_bytes(self) -> int:
        """A packet on the wire, with all that it takes there."""
        return frame_bytes(self.values) + WIRE_GAP_BYTES

    @property
    def payload_bytes(self) -> int:
        """Values of a packet."""
        return 4 * self.values

    @property
    def base_s(self) -> float:
        """A round trip on empty links: signals, their mean jitter, and the packet at each link."""
        ways = 2 * self.cables
        jitter_s = ways * self.jitter_us / 2 * 1e-6
        return self.round_trip_us * 1e-6 + jitter_s + ways * self.frame_s

    @property
    def frame_s(self) -> float:
        """A packet at one link."""
        return self.frame_bytes * 8e-9 / self.rate_gbit

    @property
    def jitter_us(self) -> float:
        """Of each link, at most."""
        return _JITTER_SHARE * self.round_trip_us

    @property
    def product_packets(self) -> float:
        """What is in flight on busy links with empty queues: bandwidth times delay."""
        return self.base_s / self.frame_s

    @property
    def threshold_packets(self) -> int:
        """Queues longer than this are marked."""
        most = self.buffer_kib * 1024 / self.frame_bytes / 2
        wanted = max(self.product_packets / _MARKED_SHARE, _LEAST_MARK_PACKETS)
        return max(math.ceil(min(wanted, most)), 1)

    @property
    def threshold_bytes(self) -> int:
        """The same, as on the wire."""
        return self.threshold_packets * self.frame_bytes

    def goodput_gbit(self, rate_gbit: float | None = None) -> float:
        """Of values at a link's rate, its own or ``rate_gbit``, less headers and gaps."""
        return (rate_gbit or self.rate_gbit) * self.payload_bytes / self.frame_bytes

    def link(self, *, marks: bool = True, rate_gbit: float = 0.0) -> LinkSpec:
        """``marks``: itself; not where a P4 program does. ``rate_gbit``: other than its own."""
        return LinkSpec(
            rate_gbit=rate_gbit or self.rate_gbit,
            delay_us=self.round_trip_us / 2 / self.cables,
            jitter_us=self.jitter_us,
            queue_kib=self.buffer_kib,
            marking="step" if marks else "none",
            mark_kib=self.threshold_bytes / 1024,
        )

    def endless(self, for_s: float, jobs: int = 1) -> list[TensorSpec]:
        """Tensors of one step that last longer than that, if ``jobs`` share the link."""
        wanted_bytes = self.goodput_gbit() * 1e9 / 8 * for_s / jobs
        return [
            TensorSpec(elems=_TENSOR_BYTES // 4, count=2 + math.ceil(wanted_bytes / _TENSOR_BYTES))
        ]

    def training(self, workers: int, slots: int, for_s: float) -> JobSpec:
        """A job that lasts longer than that: one step, for time alone."""
        return JobSpec(
            name="train",
            workers=workers,
            steps=1,
            slots=slots,
            tensors=self.endless(for_s),
            check=False,
        )


@dataclass(frozen=True)
class Limit:
    """What no algorithm can exceed, and why."""

    goodput_gbit: float
    """Of values, a worker's."""
    by: str
    """``link``: its rate less headers. ``slots``: the job's, a packet each for a round trip."""


def limit(net: Net, slots_packets: int, rate_gbit: float | None = None) -> Limit:
    """Of one job. ``slots_packets``: W. ``rate_gbit``: of its slowest link, if they differ.

    A buffer limits no rate: what comes at the pace of a link needs room for one packet.
    """
    link_gbit = net.goodput_gbit(rate_gbit)
    slots_gbit = slots_packets * net.payload_bytes * 8e-9 / net.base_s
    return Limit(link_gbit, "link") if link_gbit <= slots_gbit else Limit(slots_gbit, "slots")


ASKED = ControllerSpec(sizing="asked")
"""Jobs get the slots that they ask for."""
