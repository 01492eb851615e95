"""Which workers are alive, as far as anybody can tell. No I/O; time is passed in.

A worker is dead when it has not been heard for a lease. It is heard by its heartbeats, which are
Python's; by its Watch stream, which the server pings, and gRPC's native threads answer whatever
holds Python up; and by sums that complete, as each rank is part of them.

The stream breaks at once when the process is killed, and when its pings are not answered; then a
shorter time is enough, in which a worker whose network hiccuped is heard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

HEARTBEATS_PER_LEASE = 5
MAX_HEARTBEAT_S = 2.0
"""However long the lease: stalls are found by heartbeats."""
OVERDUE = 2.0
"""A worker in good health is heard more often than once in so many heartbeats."""
BROKEN_S = 2.0
"""A worker whose Watch stream broke has at least so long to be heard again."""
MIN_PING_S = 1.0
"""gRPC pings no more often."""
AWAY_S = 2.0
"""Not asked for so long, the controller itself was stopped: heartbeats may lie unread."""

FIRST_S = 10.0
"""Workers that a controller finds when it starts have at least so long to find it."""


class Member(NamedTuple):
    """A worker of one incarnation of a job: epochs are never issued twice."""

    epoch: int
    rank: int


@dataclass
class _Lease:
    heard_s: float
    watches: int = 0
    broken_s: float | None = None
    """When its last Watch stream broke, if it has not been heard since."""
    is_heard: bool = True
    """Whether it has been, by this controller; a former one has left its word that it is there."""


class LeaseTable:
    """The leases of all workers. All times are of one monotonic clock, in seconds."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self.heartbeat_s = min(lease_s / HEARTBEATS_PER_LEASE, MAX_HEARTBEAT_S)
        # A worker in good health must have said a heartbeat before its time is over.
        self.broken_s = min(lease_s, max(BROKEN_S, 1.5 * self.heartbeat_s))
        # So that whoever is stopped is dead after a lease: its stream breaks, and nothing follows.
        self.ping_s = max(MIN_PING_S, self.heartbeat_s)
        self.ping_timeout_s = max(MIN_PING_S, lease_s - self.ping_s - self.broken_s)
        self._leases: dict[Member, _Lease] = {}
        self._asked_s: float | None = None

    def __contains__(self, member: Member) -> bool:
        return member in self._leases

    def renew(self, member: Member, now_s: float) -> None:
        """The worker was heard; its lease begins if it has none."""
        lease = self._leases.setdefault(member, _Lease(now_s))
        lease.heard_s = now_s
        lease.broken_s = None
        lease.is_heard = True

    def watch_begins(self, member: Member, now_s: float) -> None:
        """A Watch stream of the worker began; it may have several for a moment."""
        self.renew(member, now_s)
        self._leases[member].watches += 1

    def watch_ends(self, member: Member, now_s: float) -> None:
        """A Watch stream of the worker broke."""
        lease = self._leases.get(member)
        if lease is None:
            return  # its job has ended
        lease.watches -= 1
        if lease.watches == 0:
            lease.broken_s = now_s
            # It may have been stopped for as long as the answer to a ping may take.
            lease.heard_s = max(lease.heard_s, now_s - self.ping_s - self.ping_timeout_s)

    def took_part(self, epoch: int, at_s: float) -> None:
        """A sum of the job's incarnation has completed: all its workers were alive at that time."""
        for member, lease in self._leases.items():
            if member.epoch != epoch:
                continue
            lease.heard_s = max(lease.heard_s, at_s)
            if lease.broken_s is not None:
                lease.broken_s = max(lease.broken_s, at_s)

    def keep(self, members: Iterable[Member], now_s: float) -> None:
        """Forgets all workers but these; those who have no lease get one."""
        former = self._leases
        begin_s, are_new = now_s, self._asked_s is not None
        if not are_new:  # a former controller's workers say heartbeats at its pace
            begin_s += max(0.0, FIRST_S - self.lease_s)
        self._leases = {
            member: former.get(member) or _Lease(begin_s, is_heard=are_new) for member in members
        }

    def lost(self, now_s: float) -> dict[Member, str]:
        """Whose lease is over, and why. They stay until :meth:`keep` leaves them out."""
        if self._asked_s is not None and now_s - self._asked_s > AWAY_S:
            self._prolong(now_s - self._asked_s)
        self._asked_s = now_s
        found = {}
        for member, lease in self._leases.items():
            if lease.broken_s is not None:
                silent_s = now_s - lease.broken_s
                if silent_s >= self.broken_s or now_s - lease.heard_s >= self.lease_s:
                    found[member] = (
                        "has died, or is stopped: its connection broke and no heartbeat came for"
                        f" {silent_s:.0f} s"
                    )
            elif not lease.watches and now_s - lease.heard_s >= self.lease_s:
                found[member] = (
                    f"is dead, stopped or not running Python: no heartbeat for {self.lease_s:g} s"
                )
        return found

    def left_s(self, member: Member, now_s: float) -> float:
        """How long the worker may be silent yet; 0 without a lease."""
        lease = self._leases.get(member)
        if lease is None:
            return 0.0
        end_s = (now_s if lease.watches else lease.heard_s) + self.lease_s
        if lease.broken_s is not None:
            end_s = min(end_s, lease.broken_s + self.broken_s)
        return max(0.0, end_s - now_s)

    def is_overdue(self, member: Member, now_s: float) -> bool:
        """Whether the worker should have been heard: it may be dead, and that soon be sure."""
        lease = self._leases.get(member)
        if lease is None:
            return False
        if lease.broken_s is not None or not lease.is_heard:
            return True
        return now_s - lease.heard_s > OVERDUE * self.heartbeat_s

    def is_watching(self, member: Member) -> bool:
        """Whether a Watch stream of the worker is open."""
        lease = self._leases.get(member)
        return lease is not None and lease.watches > 0

    def _prolong(self, by_s: float) -> None:
        for lease in self._leases.values():
            lease.heard_s += by_s
            if lease.broken_s is not None:
                lease.broken_s += by_s
