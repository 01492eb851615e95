"""What a rank's last reports say of its windows: what there was between two of them. No clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ina.rpc import controller_pb2 as pb2

APART_S = 1.0
"""Between the two reports that are compared, at least, once there are such."""


@dataclass(frozen=True)
class Between:
    """Between two reports of a rank."""

    rank: int
    elapsed_s: float
    packets: int
    """That may be in flight now."""
    largest: int
    """W."""
    most_packets: int
    """The controller's cap, as the rank keeps it; 0: none."""
    shortest_s: float
    """Round trip; 0: not known, as is the next."""
    mean_s: float
    results: int
    """That came."""
    last: int
    """Of them, whose sum its packet completed."""
    marks: int
    losses: int
    timeouts: int
    busy_s: float | None
    """Operations were pending for so long; None: the rank does not say."""
    goodput_bits_per_s: float
    """Of packets of results, while operations were pending; 0: none came."""

    @property
    def last_share(self) -> float:
        """Of the results; 0 where none came."""
        return self.last / self.results if self.results else 0.0

    @property
    def busy_share(self) -> float | None:
        """Of the time; None: not known."""
        if self.busy_s is None or not self.elapsed_s > 0:
            return None
        return min(1.0, self.busy_s / self.elapsed_s)


class Seen:
    """Of one rank in one mapping of its job."""

    def __init__(self, mapping_epoch: int) -> None:
        self.mapping_epoch = mapping_epoch
        self.shortest_s = 0.0
        """The shortest round trip of all that it has told; 0: none so far."""
        self.least_packets = self.most_packets = 0
        """The smallest and the largest window that it has told."""
        # Of more than APART_S ago only the newest, if there is one that is so old.
        self._reports: deque[tuple[float, pb2.Progress]] = deque()

    def hear(self, progress: pb2.Progress, now_s: float) -> None:
        """A report that has ``windows``."""
        windows = progress.windows
        if windows.shortest_s > 0:
            self.shortest_s = min(self.shortest_s or windows.shortest_s, windows.shortest_s)
        if windows.packets:
            self.least_packets = min(self.least_packets or windows.packets, windows.packets)
            self.most_packets = max(self.most_packets, windows.packets)
        self._reports.append((now_s, progress))
        while len(self._reports) > 2 and self._reports[1][0] <= now_s - APART_S:
            self._reports.popleft()

    def between(self, rank: int, packet_bits: int) -> Between | None:
        """None: there are no two reports. ``packet_bits``: of a packet on a cable."""
        if len(self._reports) < 2:
            return None
        (base_s, base), (last_s, last) = self._reports[0], self._reports[-1]
        was, now = base.windows, last.windows
        results = _grown(was.results, now.results)
        # Who does not count it says 0 all along, also with results.
        is_told = last.busy_s > 0 or not now.results
        busy_s = max(0.0, last.busy_s - base.busy_s) if is_told else None
        elapsed_s = last_s - base_s
        over_s = elapsed_s if busy_s is None else busy_s
        return Between(
            rank=rank,
            elapsed_s=elapsed_s,
            packets=now.packets,
            largest=now.largest,
            most_packets=now.most_packets,
            shortest_s=self.shortest_s,
            mean_s=now.mean_s,
            results=results,
            last=_grown(was.last, now.last),
            marks=_grown(was.marks, now.marks),
            losses=_grown(base.losses, last.losses),
            timeouts=_grown(was.timeouts, now.timeouts),
            busy_s=busy_s,
            goodput_bits_per_s=results * packet_bits / over_s if over_s > 0 else 0.0,
        )


def _grown(before: int, after: int) -> int:
    return max(0, after - before)
