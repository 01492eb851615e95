"""Jobs and what is on the switch, for people; the latter is read back from the switch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address

from ina import modes
from ina.controller.change import Stage
from ina.controller.config import SwitchConfig
from ina.controller.job import Job
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.switches.plan import FIRST_GROUP
from ina.controller.switches.switch import Switch
from ina.controller.switches.writer import GROUPS, is_mark
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.watch.leases import Member
from ina.p4 import names
from ina.p4.catalogue import capabilities
from ina.protocol.spec import ALL_WORKERS, PARENT, Kind
from ina.rpc import controller_pb2 as pb2
from ina.tables.values import Entry, Group, Item, MatchValue, PortState
from ina.trees.mapping import Mapping as JobMapping

GROUPS_TABLE, PORTS_TABLE = "multicast group", "port"
"""Stand in the ``table`` column for a multicast group and for a port."""

PORT_DROPS = "port_drops"
"""Stands in the ``counter`` column, with the port as its index."""

_SHARED = "IP multicast"
"""Who receives what is for several workers at once, in place of a rank."""

_WORKERS: dict[MatchValue, str] = {ALL_WORKERS: "all", PARENT: "parent"}
_KINDS = {kind.value: kind.name.lower() for kind in Kind}
"""In place of numbers that stand for something."""

_WORKER_COUNTERS = {names.MEMBERS: "member_packets", names.RECEIVERS: "receiver_results"}
"""The direct counters' names, which not every protocol tells, by table."""


def show_job(job: Job, detector: FailureDetector) -> pb2.Job:
    """A job; of its members' progress only what adds up."""
    shown = pb2.Job(
        name=job.name,
        job=job.number,
        epoch=job.epoch,
        world_size=job.world_size,
        joined=sorted(job.members),
        first_slot=0 if job.placed is None else _first_slot(job.placed),
        slots=job.slots,
        state=job.state.value,
        tenant=job.tenant,
        priority=job.priority,
        created_unix_s=job.created_unix_s,
        window=job.window,
        mode=job.mode,
        switch=job.switch,
        switches=job.switches,
        mapping_epoch=0 if job.placed is None else job.placed.epoch,
        remapping=_show_change(job),
        has_shapes=job.forest is not None and not job.lacks_shapes,
        lacks_shapes=job.lacks_shapes,
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
                unsure=stall.unsure,
            )
        )
    reports = [detector.report(Member(job.epoch, rank)) for rank in job.members]
    for progress in (report.progress for report in reports if report is not None):
        shown.traffic.packets_sent += progress.packets_sent
        shown.traffic.losses += progress.losses
        shown.traffic.spurious_resends += progress.spurious_resends
        shown.traffic.probes += progress.probes
    return shown


def _show_change(job: Job) -> pb2.Remapping | None:
    change = job.change
    if change is None:
        return None
    new = job.newest_mapping
    waits_for = change.not_done(job.members) if change.stage is Stage.DECIDED else []
    if change.stage is Stage.ASKED:
        waits_for = change.not_asked(job.members) or [0]
    return pb2.Remapping(
        epoch=new.epoch,
        slots=new.slots,
        window=new.window,
        first_slot=_first_slot(new),
        mode=new.mode,
        first_operation=change.first_operation,
        waits_for=waits_for,
        in_place=change.in_place,
        since_unix_s=change.since_unix_s,
        why=change.why,
        stage=change.stage.value,
    )


def _first_slot(by: JobMapping) -> int:
    """Where its slots begin at the switch that makes its results, of several trees in the first."""
    taken = by.parts[0].memory_at(by.forest.root)
    return 0 if taken is None else taken.first


def show_tenants(admission: Admission, jobs: Iterable[Job]) -> list[pb2.Tenant]:
    """What each uses and may use."""
    return [
        pb2.Tenant(
            name=name,
            configured=limits is not None,
            jobs=has.jobs,
            slots=has.slots,
            workers=has.workers,
            jobs_limit=limits.jobs if limits else 0,
            slots_limit=limits.slots if limits else 0,
            workers_limit=limits.workers if limits else 0,
            max_priority=limits.max_priority if limits else 0,
        )
        for name, has, limits in admission.tenants(jobs)
    ]


def show_member(job: Job, rank: int, detector: FailureDetector) -> pb2.Member:
    """A worker, and what it said last."""
    at, member = job.members[rank], Member(job.epoch, rank)
    host, udp_port = at.peer.place
    report = detector.report(member)
    return pb2.Member(
        rank=rank,
        host=host,
        udp_port=udp_port,
        switch_port=at.switch_port,
        lease_left_s=detector.lease_left_s(member),
        watching=detector.leases.is_watching(member),
        progress=None if report is None else report.progress,
        progress_unix_s=0.0 if report is None else report.unix_s,
        process=at.process,
        switch=_first_switches(job, rank),
    )


def _first_switches(job: Job, rank: int) -> str:
    return ", ".join(dict.fromkeys(tree.first_node(rank).switch for tree in job.trees))


async def job_counters(switch: Switch, jobs: dict[int, Job]) -> list[pb2.Counter]:
    """Counters of these jobs (by number) and of their workers. Raises :class:`SwitchError`."""
    counters = await pool_counters(switch, jobs) + await _worker_counters(switch, jobs)
    names_shown = {job.name for job in jobs.values()}
    return [counter for counter in counters if counter.job in names_shown]


async def show_switch(coordinator: Coordinator, switch: Switch) -> pb2.ShowSwitchReply:
    """Reads everything back. Raises :class:`SwitchError`."""
    writer = switch.writer
    jobs = jobs_on(coordinator, switch)
    entries, groups = await writer.read_entries(), await writer.read_groups()
    # What began or ended while the switch was read is not foreign.
    jobs |= jobs_on(coordinator, switch)
    counters = await pool_counters(switch, jobs) + await _worker_counters(switch, jobs)
    return pb2.ShowSwitchReply(
        switch=switch.name,
        program=str(switch.config.runs),
        runs=program_of(switch.config),
        device_id=switch.config.device_id,
        slots_total=switch.capacity.total,
        slots_used=switch.capacity.used(),
        slots_shared=0 if switch.capacity.shared is None else switch.capacity.shared.total,
        holds=[
            _hold(job, by, switch.name)
            for job in dict.fromkeys(jobs.values())
            for by in job.mappings
            if switch.name in by.memory
        ],
        entries=_entries(entries, jobs, switch)
        + _groups(groups, jobs)
        + _ports(await writer.read_ports()),
        counters=counters + await drop_counters(switch) + await _port_drops(switch),
    )


def _hold(job: Job, by: JobMapping, switch: str) -> pb2.SlotHold:
    taken, is_shared = by.memory[switch], by.shares_slots_of(switch)
    slots = taken.reserved if is_shared else taken.slots
    return pb2.SlotHold(job=job.name, first_slot=taken.first, slots=slots, shared=is_shared)


def program_of(switch: SwitchConfig) -> pb2.Program:
    """What it runs, and what that has room for."""
    runs, can = switch.runs, capabilities(switch.runs)
    return pb2.Program(
        mode=runs.mode,
        target=runs.target,
        values=runs.values,
        slots=can.slots,
        jobs=can.jobs,
        members=can.members,
        workers=can.workers,
    )


def jobs_on(coordinator: Coordinator, switch: Switch) -> dict[int, Job]:
    """The jobs that it sums, by number."""
    here = (job for job in coordinator.jobs() if switch.name in job.switches)
    return {number: job for job in here for number in job.numbers}


def show_item(item: Item) -> pb2.TableEntry:
    """What was found on the switch and is nobody's."""
    if isinstance(item, Group):
        return pb2.TableEntry(
            table=GROUPS_TABLE,
            match=f"group={item.number}",
            action=_copies(item),
            foreign=True,
        )
    return pb2.TableEntry(
        table=_alias(item.table),
        match=_fields(dict(item.match)),
        action=f"{_alias(item.action)}({_fields(dict(item.params), ', ')})",
        foreign=True,
    )


def _entries(entries: list[Entry], jobs: dict[int, Job], switch: Switch) -> list[pb2.TableEntry]:
    shown = []
    for entry in entries:
        if is_mark(entry):
            continue
        ours = entry.table in names.ALL_JOB_TABLES
        match, params = dict(entry.match), dict(entry.params)
        call = f"{_alias(entry.action)}({_fields(params, ', ')})" if entry.action else ""
        said = match if "job" in match else params  # who lost a slot is looked up by its epoch
        owner = jobs.get(int(said["job"])) if ours else None
        who = ""
        if owner is not None and "worker" in match:
            who = f" ({_who(switch, owner, match)})"
        shown.append(
            pb2.TableEntry(
                table=_alias(entry.table),
                match=_fields(match) + who,
                action=call,
                job=owner.name if owner else "",
                foreign=owner is None and ours,
            )
        )
    return shown


def _groups(groups: list[Group], jobs: dict[int, Job]) -> list[pb2.TableEntry]:
    rows = []
    for group in groups:
        job = jobs.get(group.number - FIRST_GROUP)
        label = f" (job {job.name})" if job else ""
        rows.append(
            pb2.TableEntry(
                table=GROUPS_TABLE,
                match=f"group={group.number}{label}",
                action=_copies(group),
                job=job.name if job else "",
                foreign=job is None and group.number in GROUPS,
            )
        )
    return rows


def _ports(ports: list[PortState]) -> list[pb2.TableEntry]:
    return [
        pb2.TableEntry(
            table=PORTS_TABLE,
            match=f"port={port.number}" + (f" ({port.name})" if port.name else ""),
            action=f"{port.speed}, fec {port.fec}, autoneg {port.autoneg}, loopback"
            f" {port.loopback}, {'up' if port.up else 'down' if port.enabled else 'disabled'}",
        )
        for port in ports
    ]


async def pool_counters(switch: Switch, jobs: dict[int, Job]) -> list[pb2.Counter]:
    """What the program counts of these jobs (by number). Raises :class:`SwitchError`."""
    return [
        pb2.Counter(
            name=_alias(cell.name),
            index=cell.index,
            label=f"job {jobs[cell.index].name}",
            job=jobs[cell.index].name,
            switch=switch.name,
            packets=count.packets,
            bytes=count.bytes,
        )
        for cell, count in await switch.writer.read_job_counters(list(jobs))
    ]


def _child(switch: Switch, job: Job | None, number: int, index: int) -> str:
    """Who has this index there, in the tree with this job number, for people."""
    if index == ALL_WORKERS:
        return _SHARED
    parts = (it for by in (() if job is None else job.mappings) for it in by.parts)
    tree = next((it.tree for it in parts if it.number == number and switch.name in it.tree), None)
    if tree is None:
        return f"rank {index}"
    node = tree[switch.name]
    if index < len(node.ranks):
        return f"rank {node.ranks[index]}"
    below = node.nodes[index - len(node.ranks) :]
    if not below:
        return f"number {index}"
    return below[0] if tree[below[0]].host else f"switch {below[0]}"


def _who(switch: Switch, job: Job, match: Mapping[str, MatchValue]) -> str:
    """Whom an entry is about, for people."""
    number, index = int(match["job"]), int(match["worker"])
    is_parent = index == PARENT or match.get("kind") == Kind.RESULT
    return "its parent" if is_parent else _child(switch, job, number, index)


async def _worker_counters(switch: Switch, jobs: dict[int, Job]) -> list[pb2.Counter]:
    rows = []
    for table, counter in _WORKER_COUNTERS.items():
        for keys, count in await switch.writer.read_worker_counters(table):
            match = dict(keys)
            number, index = int(match["job"]), int(match["worker"])
            name = jobs[number].name if number in jobs else f"number {number}"
            is_parent = index == PARENT or match.get("kind") == Kind.RESULT
            who = "its parent" if is_parent else _child(switch, jobs.get(number), number, index)
            rows.append(
                pb2.Counter(
                    name=counter,
                    index=PARENT if is_parent else index,
                    label=f"job {name} {who}",
                    job=jobs[number].name if number in jobs else "",
                    switch=switch.name,
                    packets=count.packets,
                    bytes=count.bytes,
                )
            )
    return rows


async def drop_counters(switch: Switch) -> list[pb2.Counter]:
    """Dropped packets by reason. Raises :class:`SwitchError`."""
    return [
        pb2.Counter(
            name=_alias(cell.name),
            index=cell.index,
            label=modes.of(switch.config.mode).drop_reasons[cell.index],
            switch=switch.name,
            packets=count.packets,
            bytes=count.bytes,
        )
        for cell, count in await switch.writer.read_drops()
    ]


async def _port_drops(switch: Switch) -> list[pb2.Counter]:
    return [
        pb2.Counter(
            name=PORT_DROPS,
            index=drop.port,
            label=drop.reason,
            switch=switch.name,
            packets=drop.packets,
        )
        for drop in await switch.writer.read_port_drops()
    ]


def _copies(group: Group) -> str:
    copies = [f"{port}#{instance}" if instance else f"{port}" for port, instance in group.replicas]
    return f"replicate({' '.join(copies)})"


def _alias(name: str) -> str:
    return name.rpartition(".")[2]


def _fields(values: Mapping[str, MatchValue], separator: str = " ") -> str:
    return separator.join(f"{name}={_readable(name, value)}" for name, value in values.items())


def _readable(name: str, value: MatchValue) -> str:
    if name.endswith("_addr"):
        return str(IPv4Address(value)) if isinstance(value, int) else str(value)
    if name == "worker" and value in _WORKERS:
        return _WORKERS[value]
    if name == "kind" and isinstance(value, int) and value in _KINDS:
        return _KINDS[value]
    if name.endswith("_mac") and isinstance(value, int):
        return value.to_bytes(6, "big").hex(":")
    return str(value)
