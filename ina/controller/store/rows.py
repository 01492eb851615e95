"""Jobs and members as rows. Every function runs in its caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

from ina.controller.job import Departure, Job, JobState
from ina.controller.store.changes import SavedChange, get_changes, put_change, saved_change
from ina.controller.store.interface import Transaction
from ina.controller.store.trees import (
    get_nodes,
    numbers_of,
    numbers_text,
    put_forest,
    stored_forest,
)
from ina.protocol.verify import checked_verify
from ina.trees.endpoint import Endpoint
from ina.trees.forest import Forest
from ina.trees.slots import SlotRange
from ina.trees.tree import HostNode

_JOB_COLUMNS = (
    "number, name, state, epoch, world_size, slots_asked, tenant, priority, window_packets,"
    " created_unix_s, token_hash, key_seed, verify, mode, mapping_epoch, mapping_number,"
    " first_operation, host_first, further_numbers"
)
_FORMER_COLUMNS = "first_slot, slots, reserved_slots, switch_name"
"""Of the table of jobs: they are the nodes' now."""
_MEMBER_COLUMNS = (
    "rank, address, udp_port, switch_port, mac, results_group, aggregator_address,"
    " aggregator_udp_port, aggregator_mac, aggregator_switch_port, aggregator_uplink_port"
)
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


@dataclass(frozen=True)
class Saved:
    """What the store has of a job, but for its own row."""

    members: Mapping[int, Endpoint]
    departures: Mapping[int, Departure]
    forest: Forest | None
    memory: Mapping[str, SlotRange]
    change: SavedChange | None


def saved(job: Job) -> Saved:
    """What it has once the job was put there as it is."""
    change = saved_change(job)
    return Saved(dict(job.members), dict(job.departures), job.forest, dict(job.memory), change)


def put_job(db: Transaction, job: Job, former: Saved | None = None) -> None:
    """Inserts or updates a job and its members; see ``Store.save``.

    ``former``: what is there; then only what differs is written, for a thousand ranks join one
    after the other. None: it is not known.
    """
    db.execute(
        f"INSERT INTO jobs ({_JOB_COLUMNS}, {_FORMER_COLUMNS})"
        f" VALUES ({', '.join('?' * 19)}, 0, 0, 0, '')"
        " ON CONFLICT (number) DO UPDATE SET name = excluded.name, state = excluded.state,"
        " epoch = excluded.epoch,"
        " window_packets = excluded.window_packets, verify = excluded.verify,"
        " mapping_epoch = excluded.mapping_epoch, mapping_number = excluded.mapping_number,"
        " first_operation = excluded.first_operation, host_first = excluded.host_first,"
        " mode = excluded.mode, further_numbers = excluded.further_numbers",
        (
            job.number,
            job.name,
            job.state.value,
            job.epoch,
            job.world_size,
            job.slots_asked,
            job.tenant,
            job.priority,
            job.window,
            job.created_unix_s,
            job.token_hash,
            job.key_seed,
            job.verify or "",
            job.mode,
            job.mapping_epoch,
            job.mapping_numbers[0] if job.mapping_numbers else 0,
            job.first_operation,
            job.host_first,
            numbers_text(job.mapping_numbers[1:]),
        ),
    )
    is_other = former is None or (former.forest, former.memory) != (job.forest, job.memory)
    if job.forest is not None and is_other:
        put_forest(db, job.number, job.forest, job.memory)
    had = None if former is None else former.change
    put_change(db, job, had, is_known=former is not None)
    _put_members(db, job, former)


def _put_members(db: Transaction, job: Job, former: Saved | None) -> None:
    is_joining = job.state is JobState.JOINING
    had = {} if former is None else former.members
    gone = had.keys() - job.members.keys()
    if former is None:
        change = "DELETE FROM members" if is_joining else "UPDATE members SET here = 0"
        db.execute(f"{change} WHERE job = ?", (job.number,))
    elif gone:
        change = "DELETE FROM members" if is_joining else "UPDATE members SET here = 0"
        ranks = [(job.number, rank) for rank in sorted(gone)]
        db.executemany(f"{change} WHERE job = ? AND rank = ?", ranks)
    db.executemany(
        f"INSERT INTO members ({_MEMBER_COLUMNS}, job, here)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)"
        f" ON CONFLICT (job, rank) DO UPDATE SET {_MEMBER_UPDATE}, here = 1",
        [
            (
                rank,
                str(at.address),
                at.udp_port,
                at.switch_port,
                at.mac,
                None if at.results_group is None else str(at.results_group),
                *_aggregator_columns(at.aggregator),
                job.number,
            )
            for rank, at in job.members.items()
            if had.get(rank) != at
        ],
    )
    said = {} if former is None else former.departures
    db.executemany(
        "UPDATE members SET submitted = ?, finished = ? WHERE job = ? AND rank = ? AND here = 0",
        [
            (left.submitted, left.finished, job.number, rank)
            for rank, left in job.departures.items()
            if rank in gone or said.get(rank) != left
        ],
    )


_AggregatorColumns = tuple[str | None, int | None, int | None, int | None, int | None]


def _aggregator_columns(runs: HostNode | None) -> _AggregatorColumns:
    if runs is None:
        return None, None, None, None, None
    return str(runs.address), runs.udp_port, runs.mac, runs.switch_port, runs.uplink_port


def _aggregator(address: str | None, *numbers: int) -> HostNode | None:
    return None if address is None else HostNode(0, IPv4Address(address), *numbers)


def get_jobs(db: Transaction, now_s: float) -> list[Job]:
    """Every job by number, without its members."""
    nodes = get_nodes(db)
    found = []
    for (
        number,
        name,
        state,
        epoch,
        world_size,
        slots_asked,
        tenant,
        priority,
        window,
        created_unix_s,
        token_hash,
        key_seed,
        verify,
        mode,
        mapping_epoch,
        mapping_number,
        first_operation,
        host_first,
        further,
    ) in db.execute(f"SELECT {_JOB_COLUMNS} FROM jobs ORDER BY number"):
        job = Job(
            name=name,
            number=number,
            world_size=world_size,
            created_s=now_s,
            slots_asked=slots_asked,
            epoch=epoch,
            state=JobState(state),
            tenant=tenant,
            priority=priority,
            window=window,
            created_unix_s=created_unix_s,
            token_hash=token_hash,
            key_seed=key_seed,
            verify=checked_verify("jobs.verify", verify) if verify else None,
            mode=mode,
            mapping_epoch=mapping_epoch,
            mapping_numbers=_numbers(number, mapping_number, numbers_of(further)),
            first_operation=first_operation,
            host_first=host_first,
        )
        if number in nodes:
            stored = stored_forest(nodes[number], world_size)
            job.forest, job.memory = stored.forest, stored.memory
        found.append(job)
    changes = get_changes(db, now_s, {job.number: job.world_size for job in found})
    for job in found:
        job.change = changes.get(job.number)
    return found


def _numbers(number: int, first: int, further: tuple[int, ...]) -> tuple[int, ...]:
    return (first or number, *further) if first or further else ()


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
        *aggregator,
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
            aggregator=_aggregator(*aggregator),
        )
        has_said = not here and submitted is not None
        left = Departure(str(where), submitted, finished, now_s) if has_said else None
        found.setdefault(job, {})[rank] = MemberRow(where, bool(here), left)
    return found
