"""Puts job plans on a switch and takes them off, and reads back what is there."""

from __future__ import annotations

import contextlib
import logging
from typing import Protocol

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

from ina.controller.errors import SwitchError
from ina.controller.plan import FIRST_GROUP, MARK_JOB, Entry, Item, JobPlan, epoch_mark
from ina.controller.southbound import P4RuntimeSession
from ina.p4 import names

_log = logging.getLogger(__name__)

JOB_TABLES = (names.MEMBERS, names.JOBS, names.RECEIVERS)
"""The tables that only the controller fills, in the order of removal."""

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


class SwitchWriter:
    """The :class:`JobWriter` of a P4Runtime session."""

    def __init__(self, session: P4RuntimeSession) -> None:
        self.session = session

    async def prepare(self, *, fresh: bool) -> int | None:
        """Makes the switch ready and returns the last epoch issued on it, or None if unknown.

        Entries that an earlier controller left in the INA tables and groups are removed: their jobs
        are known to nobody. Tables and groups of others are left alone.
        """
        if fresh:
            await self.session.insert([_encode(epoch_mark(0))])
            return None
        mark: int | None = None
        leftover: list[P4Entity] = []
        for table in JOB_TABLES:
            for entry in await self.session.read([P4TableEntry(table)]):
                if entry.is_default_action:
                    continue
                if table == names.JOBS and entry.match["job"] == MARK_JOB:
                    mark = entry.action.args["epoch"]
                else:
                    leftover.append(P4TableEntry(table, match=entry.match, priority=entry.priority))
        leftover += [
            P4MulticastGroupEntry(group.multicast_group_id)
            for group in await self.session.read([P4MulticastGroupEntry()])
            if group.multicast_group_id in GROUPS
        ]
        if leftover:
            _log.warning("removing %d entries of jobs of an earlier controller", len(leftover))
            await self.session.delete(leftover)
        if mark is None:
            await self.session.insert([_encode(epoch_mark(0))])
        return mark

    async def install(self, plan: JobPlan, job_number: int, epoch: int) -> None:
        """See :meth:`JobWriter.install`. The job's counters start at 0."""
        try:
            # First: should this controller die now, its successor must not use the epoch again.
            await self.session.modify([_encode(epoch_mark(epoch))])
            await self.session.modify(
                [
                    P4CounterEntry(name, index=job_number, data=P4CounterData())
                    for name in names.JOB_COUNTERS
                ]
            )
            for stage in plan.stages:
                await self.session.insert([_encode(item) for item in stage])
        except BaseException:
            with contextlib.suppress(SwitchError):
                await self.remove(plan)
            raise

    async def remove(self, plan: JobPlan) -> None:
        """See :meth:`JobWriter.remove`."""
        for stage in reversed(plan.stages):
            await self.session.delete([_encode(item) for item in stage])

    async def remove_entry(self, entry: Entry) -> None:
        """See :meth:`JobWriter.remove_entry`."""
        await self.session.delete([_encode(entry)])

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


def _encode(item: Item) -> P4Entity:
    if isinstance(item, Entry):
        return P4TableEntry(
            item.table,
            match=P4TableMatch(item.match),
            action=P4TableAction(item.action, **dict(item.params)),
        )
    return P4MulticastGroupEntry(item.number, replicas=item.replicas)
