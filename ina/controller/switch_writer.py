"""Puts job plans on a switch and takes them off, and reads back what is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Protocol

from finsy import (
    P4CounterData,
    P4CounterEntry,
    P4DirectCounterEntry,
    P4MulticastGroupEntry,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4entity import P4Entity

from ina.controller import faults
from ina.controller.errors import SwitchError
from ina.controller.plan import FIRST_GROUP, MARK_JOB, Entry, Group, Item, JobPlan, epoch_mark
from ina.controller.reconcile import SwitchState
from ina.controller.southbound import P4RuntimeSession
from ina.p4 import names

JOB_TABLES = (names.MEMBERS, names.JOBS, names.RECEIVERS)
"""The tables that only the controller fills, in the order of removal."""

_ACTIONS = {
    name.rpartition(".")[2]: name for name in (names.ADMIT_JOB, names.ADMIT_MEMBER, names.ADDRESS)
}
"""By alias, which is what the switch's answers are decoded to."""

GROUPS = range(FIRST_GROUP, FIRST_GROUP + names.JOBS_TOTAL)


class JobWriter(Protocol):
    """What the coordinator needs of a switch. Every method raises :class:`SwitchError`."""

    async def install(self, plan: JobPlan, job_number: int, epoch: int) -> None:
        """Puts everything in place, members last; takes off what it put if it fails midway."""
        ...

    async def remove(self, plan: JobPlan) -> None:
        """Takes everything off, members first; what is off already is no error."""
        ...

    async def remove_entry(self, entry: Entry) -> None:
        """Takes one entry off, if it is there."""
        ...

    async def read_state(self) -> SwitchState:
        """Everything in the controller's tables and groups."""
        ...

    async def put_mark(self, epoch: int, former: int | None) -> None:
        """Writes the last epoch issued; ``former`` is what the switch has, None: nothing."""
        ...

    async def insert(self, items: Iterable[Item]) -> None:
        """Puts items in place, in their order."""
        ...

    async def modify(self, items: Iterable[Item]) -> None:
        """Gives items that are there these parameters."""
        ...

    async def delete(self, items: Iterable[Item]) -> None:
        """Takes items off, in their order, if they are there."""
        ...


class SwitchWriter:
    """The :class:`JobWriter` of a P4Runtime session. Set ``session`` anew when it was lost."""

    def __init__(self, session: P4RuntimeSession) -> None:
        self.session = session

    async def read_state(self) -> SwitchState:
        """Everything in the controller's tables and groups."""
        mark: int | None = None
        items: list[Item] = []
        for table in JOB_TABLES:
            for entry in await self.session.read([P4TableEntry(table)]):
                if entry.is_default_action:
                    continue
                if table == names.JOBS and entry.match["job"] == MARK_JOB:
                    mark = entry.action.args["epoch"]
                else:
                    items.append(_decode(table, entry))
        items += [
            Group(
                group.multicast_group_id,
                tuple((copy.port, copy.instance) for copy in group.replicas),
            )
            for group in await self.session.read([P4MulticastGroupEntry()])
            if group.multicast_group_id in GROUPS
        ]
        return SwitchState(mark, tuple(items))

    async def put_mark(self, epoch: int, former: int | None) -> None:
        """Writes the last epoch issued; ``former`` is what the switch has, None: nothing."""
        entry = _encode(epoch_mark(epoch))
        if former is None:
            await self.session.insert([entry])
        elif former != epoch:
            await self.session.modify([entry])

    async def insert(self, items: Iterable[Item]) -> None:
        """Puts items in place, one after the other: their order matters."""
        for item in items:
            await self.session.insert([_encode(item)])

    async def modify(self, items: Iterable[Item]) -> None:
        """Gives items that are there these parameters."""
        await self.session.modify([_encode(item) for item in items])

    async def delete(self, items: Iterable[Item]) -> None:
        """Takes items off, in their order; what is off already is no error."""
        for item in items:
            await self.session.delete([_encode(item)])

    async def install(self, plan: JobPlan, job_number: int, epoch: int) -> None:
        """See :meth:`JobWriter.install`. The job's counters start at 0."""
        try:
            # First: should this controller die now, its successor must not use the epoch again.
            await self.session.modify([_encode(epoch_mark(epoch))])
            faults.reach("install.epoch_marked")
            await self.session.modify(
                [
                    P4CounterEntry(name, index=job_number, data=P4CounterData())
                    for name in names.JOB_COUNTERS
                ]
            )
            faults.reach("install.counters_cleared")
            for number, stage in enumerate(plan.stages):
                await self.session.insert([_encode(item) for item in stage])
                faults.reach(f"install.stage_{number}")
        except BaseException:
            with contextlib.suppress(SwitchError):
                await self.remove(plan)
            raise

    async def remove(self, plan: JobPlan) -> None:
        """See :meth:`JobWriter.remove`."""
        for number, stage in reversed(list(enumerate(plan.stages))):
            await self.session.delete([_encode(item) for item in stage])
            faults.reach(f"remove.stage_{number}")

    async def remove_entry(self, entry: Entry) -> None:
        """See :meth:`JobWriter.remove_entry`."""
        await self.session.delete([_encode(entry)])
        faults.reach("leave.member_removed")

    async def read_entries(self) -> list[P4TableEntry]:
        """Every entry of every table, ours and others', without default actions."""
        entries = await self.session.read([P4TableEntry()])
        return [entry for entry in entries if not entry.is_default_action]

    async def read_groups(self) -> list[P4MulticastGroupEntry]:
        """Every multicast group."""
        return await self.session.read([P4MulticastGroupEntry()])

    async def read_job_counters(self, job_numbers: list[int]) -> list[P4CounterEntry]:
        """The per-job counters of these jobs."""
        wanted = [
            P4CounterEntry(name, index=number)
            for number in job_numbers
            for name in names.JOB_COUNTERS
        ]
        return await self.session.read(wanted) if wanted else []

    async def read_drops(self) -> list[P4CounterEntry]:
        """Dropped packets by reason (index: ``spec.DropReason``)."""
        return await self.session.read([P4CounterEntry(names.DROPS)])

    async def read_worker_counters(self) -> list[P4DirectCounterEntry]:
        """Packets of each member entry (from a worker) and receiver entry (to a worker)."""
        return await self.session.read(
            [
                P4DirectCounterEntry(table_entry=P4TableEntry(names.MEMBERS)),
                P4DirectCounterEntry(table_entry=P4TableEntry(names.RECEIVERS)),
            ]
        )


def _decode(table: str, entry: P4TableEntry) -> Entry:
    action: Any = entry.action
    return Entry(
        table,
        tuple(dict(entry.match or {}).items()),
        _ACTIONS.get(action.name, action.name),
        tuple(action.args.items()),
    )


def _encode(item: Item) -> P4Entity:
    if isinstance(item, Entry):
        return P4TableEntry(
            item.table,
            match=P4TableMatch(item.match),
            action=P4TableAction(item.action, **dict(item.params)),
        )
    return P4MulticastGroupEntry(item.number, replicas=item.replicas)
