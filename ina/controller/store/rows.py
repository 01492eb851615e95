"""Jobs and members as rows. Every function runs in its caller's transaction."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import NamedTuple

from ina.controller.job import Departure, Endpoint, Job, JobState
from ina.controller.memory import SlotRange
from ina.controller.store.interface import Transaction
from ina.protocol.verify import checked_verify

_JOB_COLUMNS = (
    "number, name, state, epoch, world_size, first_slot, slots, reserved_slots, tenant, priority,"
    " window_packets, created_unix_s, token_hash, key_seed, switch_name, verify"
)
_MEMBER_COLUMNS = "rank, address, udp_port, switch_port, mac, results_group"
_MEMBER_UPDATE = ", ".join(f"{name} = excluded.{name}" for name in _MEMBER_COLUMNS.split(", ")[1:])


class MemberRow(NamedTuple):
    """A worker of a job, here or not."""

    where: Endpoint
    is_here: bool
    left: Departure | None
    """How far it had come when it left, if it said so."""


def put_epoch(db: Transaction, last: int) -> None:
    """Sets the last epoch issued."""
    db.execute(
        "INSERT INTO last_epoch VALUES (1, ?)"
        " ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch",
        (last,),
    )


def put_job(db: Transaction, job: Job) -> None:
    """Inserts or updates a job and its members; see ``Store.save``."""
    db.execute(
        f"INSERT INTO jobs ({_JOB_COLUMNS}) VALUES ({', '.join('?' * 16)})"
        " ON CONFLICT (number) DO UPDATE SET state = excluded.state, epoch = excluded.epoch,"
        " switch_name = excluded.switch_name, verify = excluded.verify",
        (
            job.number,
            job.name,
            job.state.value,
            job.epoch,
            job.world_size,
            job.memory.first,
            job.memory.slots,
            job.memory.reserved,
            job.tenant,
            job.priority,
            job.window,
            job.created_unix_s,
            job.token_hash,
            job.key_seed,
            job.switch,
            job.verify or "",
        ),
    )
    if job.state is JobState.JOINING:
        db.execute("DELETE FROM members WHERE job = ?", (job.number,))
    else:
        db.execute("UPDATE members SET here = 0 WHERE job = ?", (job.number,))
    db.executemany(
        f"INSERT INTO members ({_MEMBER_COLUMNS}, job, here) VALUES (?, ?, ?, ?, ?, ?, ?, 1)"
        f" ON CONFLICT (job, rank) DO UPDATE SET {_MEMBER_UPDATE}, here = 1",
        [
            (
                rank,
                str(at.address),
                at.udp_port,
                at.switch_port,
                at.mac,
                None if at.results_group is None else str(at.results_group),
                job.number,
            )
            for rank, at in job.members.items()
        ],
    )
    db.executemany(
        "UPDATE members SET submitted = ?, finished = ? WHERE job = ? AND rank = ? AND here = 0",
        [
            (left.submitted, left.finished, job.number, rank)
            for rank, left in job.departures.items()
        ],
    )


def get_jobs(db: Transaction, now_s: float) -> list[Job]:
    """Every job by number, without its members."""
    return [
        Job(
            name=name,
            number=number,
            world_size=world_size,
            memory=SlotRange(first_slot, slots, reserved),
            created_s=now_s,
            epoch=epoch,
            state=JobState(state),
            tenant=tenant,
            priority=priority,
            window=window,
            created_unix_s=created_unix_s,
            token_hash=token_hash,
            key_seed=key_seed,
            switch=switch,
            verify=checked_verify("jobs.verify", verify) if verify else None,
        )
        for (
            number,
            name,
            state,
            epoch,
            world_size,
            first_slot,
            slots,
            reserved,
            tenant,
            priority,
            window,
            created_unix_s,
            token_hash,
            key_seed,
            switch,
            verify,
        ) in db.execute(f"SELECT {_JOB_COLUMNS} FROM jobs ORDER BY number")
    ]


def get_members(db: Transaction, now_s: float) -> dict[int, dict[int, MemberRow]]:
    """Of every job, by its number and by rank; ``now_s`` becomes when those left that have."""
    found: dict[int, dict[int, MemberRow]] = {}
    for (
        job,
        rank,
        address,
        udp_port,
        switch_port,
        mac,
        group,
        here,
        submitted,
        finished,
    ) in db.execute(
        f"SELECT job, {_MEMBER_COLUMNS}, here, submitted, finished FROM members ORDER BY job, rank"
    ):
        where = Endpoint(
            IPv4Address(address),
            udp_port,
            switch_port,
            mac,
            None if group is None else IPv4Address(group),
        )
        has_said = not here and submitted is not None
        left = Departure(str(where), submitted, finished, now_s) if has_said else None
        found.setdefault(job, {})[rank] = MemberRow(where, bool(here), left)
    return found
