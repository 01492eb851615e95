"""What a simulation found, for programs (JSON) and for people."""

from __future__ import annotations

from dataclasses import dataclass, field

from ina.sim.flows import Slowdowns


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept."""

    kind: str
    """Which: ``wrong sum``, ``no end``, ``left behind`` ..."""
    what: str
    """One line: where, and how it should have been."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


@dataclass(frozen=True)
class JobReport:
    """One incarnation of a job."""

    name: str
    workers: int
    ended: str
    """Why; empty: all steps are done."""
    cause: str
    """Which fault of the scenario may have ended it; empty: none, or it has not ended."""
    steps_done: int
    began_s: float
    """Virtual time."""
    took_s: float
    step_mean_s: float
    step_p99_s: float
    tensor_bytes: int
    """Of one worker, in all steps done."""
    goodput_gbit_s: float
    """Of one worker: those bytes over the time in which it reduced."""
    window_packets: int
    """W, of the job's slots."""
    in_flight_limit_min: int
    """The least that any window was."""
    slots_used_max: int
    """Packets in flight of a rank, at most: slots of one version in use."""
    packets_sent: int
    resends_lost: int
    resends_overtaken: int
    """Not needed: a later packet had been answered before."""
    resends_probes: int
    """Not needed: a peer was late."""
    ecn_marked: int


@dataclass(frozen=True)
class PortReport:
    """One way of a cable."""

    name: str
    packets: int
    utilisation: float
    longest_queue_bytes: int
    mean_wait_s: float
    full_packets: int
    lost_packets: int
    marked_packets: int


@dataclass(frozen=True)
class TrafficReport:
    """Other traffic than ina's."""

    name: str
    flows_done: int
    """Of TCP."""
    flows_given_up: int
    flows_active: int
    """When the run ended."""
    completion_mean_s: float
    completion_p99_s: float
    slowdowns: list[Slowdowns]
    """By size: completion times over those alone on the network."""
    datagrams_sent: int
    """Of UDP, as the rest."""
    datagrams_received: int
    datagram_mean_s: float


@dataclass(frozen=True)
class Samples:
    """Over time, for the plot: seconds of virtual time, and a row of numbers each."""

    at_s: list[float] = field(default_factory=list)
    windows: dict[str, list[float]] = field(default_factory=dict)
    """Packets that a job's ranks may have in flight, on average."""
    queues: dict[str, list[float]] = field(default_factory=dict)
    """Bytes that wait, of the ports whose queues were longest."""
    goodput: dict[str, list[float]] = field(default_factory=dict)
    """Gbit/s of a job's worker, since the sample before."""


@dataclass(frozen=True)
class Report:
    """All of a run."""

    scenario: str
    seed: int
    virtual_s: float
    wall_s: float
    packet_hops: int
    jobs: list[JobReport]
    ports: list[PortReport]
    traffic: list[TrafficReport]
    events: list[str]
    """What went wrong and what followed, a line each, with its time."""
    violations: list[Violation]
    samples: Samples
    sums_checked: int

    @property
    def ended_unasked(self) -> list[JobReport]:
        """That ended with an error, though nothing in the scenario was done to them."""
        return [job for job in self.jobs if job.ended and not job.cause]

    @property
    def hops_per_s(self) -> float:
        """Of wall time."""
        return self.packet_hops / self.wall_s if self.wall_s else 0.0
