"""Puts job plans on a switch and takes them off, and reads back what is there."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Protocol

from ina import modes
from ina.controller import faults
from ina.controller.switches.plan import FIRST_GROUP, MARK_JOB, JobPlan, epoch_mark, own_address
from ina.controller.switches.reconcile import SwitchState
from ina.p4 import names
from ina.tables.errors import SwitchError
from ina.tables.session import SwitchSession
from ina.tables.values import Count, Counter, Entry, Group, Item, Match, PortDrop, PortState

GROUPS = range(FIRST_GROUP, FIRST_GROUP + names.JOBS_TOTAL)


class JobWriter(Protocol):
    """What the coordinator needs of a switch. Every method raises :class:`SwitchError`."""

    async def install(self, plan: JobPlan, cleared: Sequence[int], epoch: int) -> None:
        """Puts everything in place, members last; takes off what it put if it fails midway.

        ``cleared``: numbers of jobs whose counters begin anew.
        """
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

    async def put_addresses(
        self, wanted: Iterable[int | str], former: Container[int | str]
    ) -> None:
        """Makes the switch take what is for these IPv4 addresses; ``former``: those it has."""
        ...

    async def put_passing(self, wanted: Sequence[Entry], former: Sequence[Entry]) -> None:
        """Lets through what these rows say, and nothing else; ``former``: those it has."""
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

    async def read_entries(self) -> list[Entry]:
        """Every entry of every table, ours and others', without default actions."""
        ...

    async def read_groups(self) -> list[Group]:
        """Every multicast group."""
        ...

    async def read_job_counters(self, job_numbers: Sequence[int]) -> list[tuple[Counter, Count]]:
        """The per-job counters of these jobs."""
        ...

    async def read_drops(self) -> list[tuple[Counter, Count]]:
        """Dropped packets by reason (index: ``Mode.drop_reasons`` of its program)."""
        ...

    async def read_worker_counters(self, table: str) -> list[tuple[Match, Count]]:
        """Packets of each member entry (from a worker) or receiver entry (to a worker)."""
        ...

    async def read_ports(self) -> list[PortState]:
        """The switch's ports, where its protocol tells of them."""
        ...

    async def read_port_drops(self) -> list[PortDrop]:
        """What they have dropped, where the switch tells."""
        ...


class SwitchWriter:
    """The :class:`JobWriter` of a session. Set ``session`` anew when it was lost."""

    def __init__(
        self,
        session: SwitchSession | None = None,
        mode: str = names.DEFAULT_MODE,
    ) -> None:
        """``mode``: of the program that it runs."""
        self._session = session
        self.drop_reasons = tuple(modes.of(mode).drop_reasons)
        self._closed = modes.of(mode).closed_tables
        self._counters = names.job_counters(mode)
        self._tables = names.job_tables(mode)

    @property
    def session(self) -> SwitchSession:
        """The newest; raises :class:`SwitchError` before the first."""
        if self._session is None:
            raise SwitchError("the switch has not been reached yet")
        return self._session

    @session.setter
    def session(self, session: SwitchSession) -> None:
        self._session = session

    async def read_state(self) -> SwitchState:
        """Everything in the controller's tables and groups."""
        mark: int | None = None
        items: list[Item] = []
        for table in self._tables:
            for entry in await self.session.read_entries(table):
                if is_mark(entry):
                    mark = entry.param("epoch")
                else:
                    items.append(entry)
        items += [group for group in await self.session.read_groups() if group.number in GROUPS]
        own = await self.session.read_entries(names.OWN_ADDRESSES)
        addresses = frozenset(dict(entry.match)["dst_addr"] for entry in own)
        passing: list[Entry] = []
        for table in self._closed:
            passing += await self.session.read_entries(table)
        return SwitchState(mark, tuple(items), addresses, tuple(passing))

    async def put_mark(self, epoch: int, former: int | None) -> None:
        """Writes the last epoch issued; ``former`` is what the switch has, None: nothing."""
        if former is None:
            await self.session.insert([epoch_mark(epoch)])
        elif former != epoch:
            await self.session.modify([epoch_mark(epoch)])

    async def put_addresses(
        self, wanted: Iterable[int | str], former: Container[int | str]
    ) -> None:
        """See :meth:`JobWriter.put_addresses`."""
        await self.insert(own_address(address) for address in wanted if address not in former)

    async def put_passing(self, wanted: Sequence[Entry], former: Sequence[Entry]) -> None:
        """See :meth:`JobWriter.put_passing`. What is too much goes first."""
        wants, has = ({(it.table, it.match) for it in them} for them in (wanted, former))
        await self.delete(it for it in former if (it.table, it.match) not in wants)
        await self.insert(it for it in wanted if (it.table, it.match) not in has)

    async def insert(self, items: Iterable[Item]) -> None:
        """Puts items in place: their order matters, but not within a table."""
        for run in _runs(items):
            await self.session.insert(run)

    async def modify(self, items: Iterable[Item]) -> None:
        """Gives items that are there these parameters."""
        await self.session.modify(list(items))

    async def delete(self, items: Iterable[Item]) -> None:
        """Takes items off, in their order; what is off already is no error."""
        for run in _runs(items):
            await self.session.delete(run)

    async def install(self, plan: JobPlan, cleared: Sequence[int], epoch: int) -> None:
        """See :meth:`JobWriter.install`."""
        try:
            # First: should this controller die now, its successor must not use the epoch again.
            await self.session.modify([epoch_mark(epoch)])
            faults.reach("install.epoch_marked")
            if cleared:
                await self.session.clear_counts(self._of_jobs(cleared))
            faults.reach("install.counters_cleared")
            for number, stage in enumerate(plan.stages):
                await self.session.insert(stage)
                faults.reach(f"install.stage_{number}")
        except BaseException:
            with contextlib.suppress(SwitchError):
                await self.remove(plan)
            raise

    async def remove(self, plan: JobPlan) -> None:
        """See :meth:`JobWriter.remove`."""
        for number, stage in reversed(list(enumerate(plan.stages))):
            await self.session.delete(stage)
            faults.reach(f"remove.stage_{number}")

    async def remove_entry(self, entry: Entry) -> None:
        """See :meth:`JobWriter.remove_entry`."""
        await self.session.delete([entry])
        faults.reach("leave.member_removed")

    async def read_entries(self) -> list[Entry]:
        """Every entry of every table, ours and others', without default actions."""
        return await self.session.read_entries()

    async def read_groups(self) -> list[Group]:
        """Every multicast group."""
        return await self.session.read_groups()

    async def read_job_counters(self, job_numbers: Sequence[int]) -> list[tuple[Counter, Count]]:
        """The per-job counters of these jobs."""
        return await self._read(self._of_jobs(job_numbers))

    async def read_drops(self) -> list[tuple[Counter, Count]]:
        """Dropped packets by reason (index: ``Mode.drop_reasons`` of its program)."""
        return await self._read([Counter(names.DROPS, reason) for reason in self.drop_reasons])

    async def read_worker_counters(self, table: str) -> list[tuple[Match, Count]]:
        """Packets of each member entry (from a worker) or receiver entry (to a worker)."""
        return await self.session.read_row_counts(table)

    async def read_ports(self) -> list[PortState]:
        """The switch's ports, where its protocol tells of them."""
        return await self.session.read_ports()

    async def read_port_drops(self) -> list[PortDrop]:
        """What they have dropped, where the switch tells."""
        return await self.session.read_port_drops()

    def _of_jobs(self, numbers: Iterable[int]) -> list[Counter]:
        return [Counter(name, number) for number in numbers for name in self._counters]

    async def _read(self, counters: Sequence[Counter]) -> list[tuple[Counter, Count]]:
        return list(zip(counters, await self.session.read_counts(counters), strict=True))


def is_mark(entry: Entry) -> bool:
    """Whether this is the epoch mark: see :mod:`ina.controller.jobs.numbers`."""
    return entry.table == names.JOBS and entry.exact("job") == MARK_JOB


def _runs(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Those of one table that follow each other: a message each, for switches may be far away."""
    for _, run in itertools.groupby(items, lambda it: it.table if isinstance(it, Entry) else ""):
        yield list(run)
