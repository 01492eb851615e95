"""What is on the switch, for people: entries, groups and counters read over P4Runtime."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from ina.controller.coordinator import Coordinator
from ina.controller.jobs import Job
from ina.controller.plan import FIRST_GROUP, MARK_JOB
from ina.controller.switch_writer import SwitchWriter
from ina.p4 import names
from ina.protocol.spec import DropReason
from ina.rpc import controller_pb2 as pb2

GROUPS_TABLE = "multicast group"
"""Stands in the ``table`` column for a multicast group."""


async def show_switch(
    coordinator: Coordinator, writer: SwitchWriter, program: str
) -> pb2.ShowSwitchReply:
    """Reads everything back. Raises :class:`SwitchError`."""
    jobs = {job.number: job for job in coordinator.jobs()}
    memory = coordinator.registry.memory
    entries = await _entries(writer) + await _groups(writer, jobs)
    counters = await _job_counters(writer, jobs) + await _worker_counters(writer, jobs)
    return pb2.ShowSwitchReply(
        program=program,
        device_id=writer.session.device_id,
        slots_total=memory.total,
        slots_used=memory.used(),
        entries=entries,
        counters=counters + await _drops(writer),
    )


async def _entries(writer: SwitchWriter) -> list[pb2.TableEntry]:
    rows = []
    for entry in await writer.read_entries():
        action: Any = entry.action
        match = dict(entry.match or {})
        if entry.table_id == _alias(names.JOBS) and match.get("job") == MARK_JOB:
            continue  # the epoch mark: see ina.controller.epochs
        args = {} if action is None else action.args
        rows.append(
            pb2.TableEntry(
                table=entry.table_id,
                match=_fields(match),
                action="" if action is None else f"{action.name}({_fields(args, ', ')})",
            )
        )
    return rows


async def _groups(writer: SwitchWriter, jobs: dict[int, Job]) -> list[pb2.TableEntry]:
    rows = []
    for group in await writer.read_groups():
        number = group.multicast_group_id
        job = jobs.get(number - FIRST_GROUP)
        label = f" (job {job.name})" if job else ""
        rows.append(
            pb2.TableEntry(
                table=GROUPS_TABLE,
                match=f"group={number}{label}",
                action=f"replicate({group.replicas_str()})",
            )
        )
    return rows


async def _job_counters(writer: SwitchWriter, jobs: dict[int, Job]) -> list[pb2.Counter]:
    return [
        pb2.Counter(
            name=counter.counter_id,
            index=counter.index or 0,
            label=f"job {jobs[counter.index or 0].name}",
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
                packets=counter.packet_count,
                bytes=counter.byte_count,
            )
        )
    return rows


async def _drops(writer: SwitchWriter) -> list[pb2.Counter]:
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
