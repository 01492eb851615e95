"""Jobs and what is on the switch, for people; the latter is read over P4Runtime."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from finsy import P4MulticastGroupEntry, P4TableEntry

from ina.controller.coordinator import Coordinator
from ina.controller.failure_detector import FailureDetector
from ina.controller.jobs import Job
from ina.controller.leases import Member
from ina.controller.plan import FIRST_GROUP, MARK_JOB, Group, Item
from ina.controller.switch_writer import GROUPS, JOB_TABLES, SwitchWriter
from ina.p4 import names
from ina.protocol.spec import DropReason
from ina.rpc import controller_pb2 as pb2

GROUPS_TABLE = "multicast group"
"""Stands in the ``table`` column for a multicast group."""


_OUR_TABLES = frozenset(table.rpartition(".")[2] for table in JOB_TABLES)


def show_job(job: Job, detector: FailureDetector) -> pb2.Job:
    """A job without its members' progress."""
    shown = pb2.Job(
        name=job.name,
        job=job.number,
        epoch=job.epoch,
        world_size=job.world_size,
        joined=sorted(job.members),
        first_slot=job.memory.first,
        slots=job.memory.slots,
        state=job.state.value,
        tenant=job.tenant,
        priority=job.priority,
        created_unix_s=job.created_unix_s,
        window=job.window,
    )
    stall = detector.stall(job)
    if stall is not None:
        shown.stall.CopyFrom(
            pb2.Stall(
                seq=stall.seq,
                slot=stall.slot,
                missing=stall.missing,
                waiting=stall.waiting,
                since_unix_s=detector.since_unix_s(stall),
            )
        )
    return shown


def show_member(job: Job, rank: int, detector: FailureDetector) -> pb2.Member:
    """A worker, and what it said last."""
    at, member = job.members[rank], Member(job.epoch, rank)
    report = detector.report(member)
    return pb2.Member(
        rank=rank,
        host=str(at.address),
        udp_port=at.udp_port,
        switch_port=at.switch_port,
        lease_left_s=detector.lease_left_s(member),
        watching=detector.leases.is_watching(member),
        progress=None if report is None else report.progress,
        progress_unix_s=0.0 if report is None else report.unix_s,
    )


async def job_counters(writer: SwitchWriter, jobs: dict[int, Job]) -> list[pb2.Counter]:
    """Counters of these jobs (by number) and of their workers. Raises :class:`SwitchError`."""
    counters = await pool_counters(writer, jobs) + await _worker_counters(writer, jobs)
    names_shown = {job.name for job in jobs.values()}
    return [counter for counter in counters if counter.job in names_shown]


async def show_switch(
    coordinator: Coordinator, writer: SwitchWriter, program: str
) -> pb2.ShowSwitchReply:
    """Reads everything back. Raises :class:`SwitchError`."""
    jobs = {job.number: job for job in coordinator.jobs()}
    memory = coordinator.registry.memory
    entries, groups = await writer.read_entries(), await writer.read_groups()
    # What began or ended while the switch was read is not foreign.
    jobs |= {job.number: job for job in coordinator.jobs()}
    counters = await pool_counters(writer, jobs) + await _worker_counters(writer, jobs)
    return pb2.ShowSwitchReply(
        program=program,
        device_id=writer.session.device_id,
        slots_total=memory.total,
        slots_used=memory.used(),
        entries=_entries(entries, jobs) + _groups(groups, jobs),
        counters=counters + await drop_counters(writer),
    )


def show_item(item: Item) -> pb2.TableEntry:
    """What was found on the switch and is nobody's."""
    if isinstance(item, Group):
        copies = " ".join(f"{port}#{instance}" for port, instance in item.replicas)
        return pb2.TableEntry(
            table=GROUPS_TABLE,
            match=f"group={item.number}",
            action=f"replicate({copies})",
            foreign=True,
        )
    return pb2.TableEntry(
        table=_alias(item.table),
        match=_fields(dict(item.match)),
        action=f"{_alias(item.action)}({_fields(dict(item.params), ', ')})",
        foreign=True,
    )


def _entries(entries: list[P4TableEntry], jobs: dict[int, Job]) -> list[pb2.TableEntry]:
    rows = []
    for entry in entries:
        action: Any = entry.action
        match = dict(entry.match or {})
        if entry.table_id == _alias(names.JOBS) and match.get("job") == MARK_JOB:
            continue  # the epoch mark: see ina.controller.epochs
        args = {} if action is None else action.args
        ours = entry.table_id in _OUR_TABLES
        owner = jobs.get(match["job"]) if ours else None
        rows.append(
            pb2.TableEntry(
                table=entry.table_id,
                match=_fields(match),
                action="" if action is None else f"{action.name}({_fields(args, ', ')})",
                job=owner.name if owner else "",
                foreign=owner is None and ours,
            )
        )
    return rows


def _groups(groups: list[P4MulticastGroupEntry], jobs: dict[int, Job]) -> list[pb2.TableEntry]:
    rows = []
    for group in groups:
        number = group.multicast_group_id
        job = jobs.get(number - FIRST_GROUP)
        label = f" (job {job.name})" if job else ""
        rows.append(
            pb2.TableEntry(
                table=GROUPS_TABLE,
                match=f"group={number}{label}",
                action=f"replicate({group.replicas_str()})",
                job=job.name if job else "",
                foreign=job is None and number in GROUPS,
            )
        )
    return rows


async def pool_counters(writer: SwitchWriter, jobs: dict[int, Job]) -> list[pb2.Counter]:
    """What the program counts of these jobs (by number). Raises :class:`SwitchError`."""
    return [
        pb2.Counter(
            name=counter.counter_id,
            index=counter.index or 0,
            label=f"job {jobs[counter.index or 0].name}",
            job=jobs[counter.index or 0].name,
            packets=counter.packet_count,
            bytes=counter.byte_count,
        )
        for counter in await writer.read_job_counters(list(jobs))
    ]


async def _worker_counters(writer: SwitchWriter, jobs: dict[int, Job]) -> list[pb2.Counter]:
    rows = []
    for counter in await writer.read_worker_counters():
        entry = counter.table_entry
        if entry is None or entry.match is None:
            continue
        number, rank = entry.match["job"], entry.match["worker"]
        name = jobs[number].name if number in jobs else f"number {number}"
        rows.append(
            pb2.Counter(
                name=counter.counter_id,
                index=rank,
                label=f"job {name} rank {rank}",
                job=jobs[number].name if number in jobs else "",
                packets=counter.packet_count,
                bytes=counter.byte_count,
            )
        )
    return rows


async def drop_counters(writer: SwitchWriter) -> list[pb2.Counter]:
    """Dropped packets by reason. Raises :class:`SwitchError`."""
    return [
        pb2.Counter(
            name=counter.counter_id,
            index=counter.index or 0,
            label=DropReason(counter.index or 0).name.lower(),
            packets=counter.packet_count,
            bytes=counter.byte_count,
        )
        for counter in await writer.read_drops()
    ]


def _alias(name: str) -> str:
    return name.rpartition(".")[2]


def _fields(values: dict[str, Any], separator: str = " ") -> str:
    return separator.join(f"{name}={_readable(name, value)}" for name, value in values.items())


def _readable(name: str, value: Any) -> str:
    if name.endswith("_addr"):
        return str(IPv4Address(value)) if isinstance(value, int) else str(value)
    if name.endswith("_mac") and isinstance(value, int):
        return value.to_bytes(6, "big").hex(":")
    return str(value)
