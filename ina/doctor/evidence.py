"""What the switch itself counted of a probe: read by the controller over P4Runtime."""

from __future__ import annotations

from dataclasses import dataclass, field

from ina.protocol.spec import ALL_WORKERS
from ina.rpc import controller_pb2 as pb2


@dataclass(frozen=True)
class Evidence:
    """Packets counted by the switch. Subtract an earlier reading to see what a probe did."""

    from_worker: int = 0
    """Admitted: from the port, address and UDP port of the worker."""
    to_worker: int = 0
    """Results that left towards the worker: its own, and those that it shares with others."""
    results: int = 0
    unaddressed: int = 0
    drops: dict[str, int] = field(default_factory=dict)
    """By reason, of all jobs and of none: other people's packets are among them."""

    def __sub__(self, earlier: Evidence) -> Evidence:
        return Evidence(
            self.from_worker - earlier.from_worker,
            self.to_worker - earlier.to_worker,
            self.results - earlier.results,
            self.unaddressed - earlier.unaddressed,
            {name: count - earlier.drops.get(name, 0) for name, count in self.drops.items()},
        )

    def dropped(self, reason: str) -> int:
        """Packets dropped for a reason, as ``ina.protocol.spec.DropReason`` names it."""
        return self.drops.get(reason, 0)


def read_evidence(reply: pb2.ShowSwitchReply, job_name: str) -> Evidence:
    """The counters of a one-worker job in a ShowSwitch reply."""
    counts: dict[str, int] = {}
    drops: dict[str, int] = {}
    labels = (f"job {job_name}", f"job {job_name} rank 0")
    for counter in reply.counters:
        if counter.name == "drops":
            drops[counter.label] = counter.packets
        elif counter.label in labels or _is_shared(counter, job_name):
            counts[counter.name] = counts.get(counter.name, 0) + counter.packets
    return Evidence(
        from_worker=counts.get("member_packets", 0),
        to_worker=counts.get("receiver_results", 0),
        results=counts.get("job_results", 0),
        unaddressed=counts.get("job_unaddressed", 0),
        drops=drops,
    )


def _is_shared(counter: pb2.Counter, job_name: str) -> bool:
    """Whether it counts the results that go to several workers of the job at once."""
    return (
        counter.name == "receiver_results"
        and counter.job == job_name
        and counter.index == ALL_WORKERS
    )
