"""What a job needs on the switch, as table entries and a multicast group. Pure.

``JobPlan.stages`` is the order of installing. Members come last: until a worker's member entry is
there, none of its packets reaches a slot. Removal goes backwards, so members go first.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.controller.items import Entry, Group, Item
from ina.controller.jobs import Endpoint, Job
from ina.p4 import names

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

    def member(self, rank: int) -> Entry:
        """The member entry of worker ``rank``."""
        entry = self.stages[-1][rank]
        assert isinstance(entry, Entry)
        return entry


def plan_job(job: Job) -> JobPlan:
    """Everything a complete job needs; it must have all its members and its epoch."""
    members = sorted(job.members.items())
    group = Group(
        FIRST_GROUP + job.number,
        tuple((endpoint.switch_port, rank + 1) for rank, endpoint in members),
    )
    admit = Entry(
        names.JOBS,
        (("job", job.number), ("epoch", _low(job.epoch))),
        names.ADMIT_JOB,
        (
            ("epoch", job.epoch),
            ("first_slot", job.memory.first),
            ("slots", job.memory.slots),
            ("full_bitmap", (1 << job.world_size) - 1),
            ("group", group.number),
            ("job_index", job.number),
        ),
    )
    return JobPlan(
        (
            (group, *(_receiver(job, rank, endpoint) for rank, endpoint in members)),
            (admit,),
            tuple(_member(job, rank, endpoint) for rank, endpoint in members),
        )
    )


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
