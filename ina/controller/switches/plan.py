"""What a job needs on the switch, as table entries and a multicast group. Pure.

``JobPlan.stages`` is the order of installing. Members come last: until a worker's member entry is
there, none of its packets reaches a slot. Removal goes backwards, so members go first.

A result goes to each worker, or once to all behind one port of the switch that listen to the job's
IP multicast address: one replica for them, whose ``worker`` is ``ALL_WORKERS``, and whose receiver
entry has that address. Every worker has a receiver entry of its own all the same: a finished sum
that is sent again goes to one worker alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ina.controller.job import Endpoint, Job
from ina.controller.switches.items import Entry, Group, Item
from ina.p4 import names
from ina.protocol.addresses import multicast_mac_of
from ina.protocol.spec import ALL_WORKERS, RESULTS_UDP_PORT

EPOCH_BITS = 16
"""Low bits of the epoch that the header carries and the tables match."""

FIRST_GROUP = 0x4000
"""Multicast group of job 0. Groups 0x4000..0x40ff are the controller's, others are left alone."""

MARK_JOB = 0
"""No job has this number: its job table entry keeps the last epoch issued."""


@dataclass(frozen=True)
class JobPlan:
    """A job's entries, by stage; within a stage the order does not matter."""

    stages: tuple[tuple[Item, ...], ...]
    endpoints: tuple[Endpoint, ...]
    """By rank: where its workers are that it was made for."""

    @property
    def group(self) -> Group:
        """The copies of each result."""
        group = self.stages[0][0]
        assert isinstance(group, Group)
        return group

    def member(self, rank: int) -> Entry:
        """The member entry of worker ``rank``."""
        entry = self.stages[-1][rank]
        assert isinstance(entry, Entry)
        return entry


def plan_job(job: Job) -> JobPlan:
    """Everything a complete job needs; it must have all its members and its epoch."""
    members = sorted(job.members.items())
    endpoints = tuple(endpoint for _, endpoint in members)
    sharing = sharing_ranks(endpoints)
    copies = (
        (endpoint.switch_port, 1 + (ALL_WORKERS if rank in sharing else rank))
        for rank, endpoint in members
    )
    group = Group(FIRST_GROUP + job.number, tuple(dict.fromkeys(copies)))  # each once, in order
    receivers = [_receiver(job, rank, endpoint) for rank, endpoint in members]
    if sharing:
        receivers.append(_shared_receiver(job, endpoints[min(sharing)]))
    admit = Entry(
        names.JOBS,
        (("job", job.number), ("epoch", _low(job.epoch))),
        names.ADMIT_JOB,
        (
            ("epoch", job.epoch),
            ("first_slot", job.memory.first),
            ("slots", job.memory.slots),
            ("full_bitmap", job.full_bitmap),
            ("group", group.number),
            ("job_index", job.number),
        ),
    )
    return JobPlan(
        (
            (group, *receivers),
            (admit,),
            tuple(_member(job, rank, endpoint) for rank, endpoint in members),
        ),
        endpoints,
    )


def sharing_ranks(endpoints: Sequence[Endpoint]) -> frozenset[int]:
    """Ranks that get one copy of a result together; ``endpoints`` are all of a job, by rank.

    One alone behind its port gets a copy of its own, which every network carries.
    """
    group = next((at.results_group for at in endpoints if at.results_group is not None), None)
    if group is None:
        return frozenset()
    # There is one entry for all of them, so one address: whoever has another gets its own.
    listening = [rank for rank, at in enumerate(endpoints) if at.results_group == group]
    behind = Counter(endpoints[rank].switch_port for rank in listening)
    return frozenset(rank for rank in listening if behind[endpoints[rank].switch_port] > 1)


def _member(job: Job, rank: int, endpoint: Endpoint) -> Entry:
    """The entry that lets this worker's packets reach the job's slots."""
    return Entry(
        names.MEMBERS,
        (
            ("ingress_port", endpoint.switch_port),
            ("src_addr", int(endpoint.address)),
            ("src_port", endpoint.udp_port),
            ("job", job.number),
            ("epoch", _low(job.epoch)),
            ("worker", rank),
        ),
        names.ADMIT_MEMBER,
        (("worker_bit", 1 << rank),),
    )


def _receiver(job: Job, rank: int, endpoint: Endpoint) -> Entry:
    return Entry(
        names.RECEIVERS,
        (("job", job.number), ("worker", rank)),
        names.ADDRESS,
        (
            ("dst_mac", endpoint.mac_address),
            ("dst_addr", int(endpoint.address)),
            ("dst_port", endpoint.udp_port),
        ),
    )


def _shared_receiver(job: Job, endpoint: Endpoint) -> Entry:
    """Where one copy reaches all workers that share it."""
    assert endpoint.results_group is not None
    return Entry(
        names.RECEIVERS,
        (("job", job.number), ("worker", ALL_WORKERS)),
        names.ADDRESS,
        (
            ("dst_mac", multicast_mac_of(endpoint.results_group)),
            ("dst_addr", int(endpoint.results_group)),
            ("dst_port", RESULTS_UDP_PORT),
        ),
    )


def epoch_mark(epoch: int) -> Entry:
    """The entry that keeps the last epoch issued. It has no slots and no members."""
    return Entry(
        names.JOBS,
        (("job", MARK_JOB), ("epoch", 0)),
        names.ADMIT_JOB,
        (
            ("epoch", epoch),
            ("first_slot", 0),
            ("slots", 0),
            ("full_bitmap", 0),
            ("group", 0),
            ("job_index", 0),
        ),
    )


def _low(epoch: int) -> int:
    return epoch & ((1 << EPOCH_BITS) - 1)
