"""Switches of a controller that lives in the test: P4Runtime sessions, and what writes by them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Any

from ina.controller.switches.plan import JobPlan
from ina.controller.switches.reconcile import SwitchState, job_number
from ina.controller.switches.writer import SwitchWriter
from ina.p4 import names
from ina.tables.errors import SwitchError
from ina.tables.values import Counter, Entry, Group, Item


class Killed(BaseException):
    """The controller's process is gone."""


class FakeSession:
    """A switch that keeps items, one of whose calls fails now and then."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.trouble = 0.0
        """Probability that a write fails, after any number of its updates."""
        self.there: dict[object, Item] = {}
        self.lost = False
        """The connection is; only a new one helps, which begins by reconciling."""
        self.restarts = 0
        """A call that was under way at one gets no answer, though the connection is new."""
        self.unused = False
        """Whoever had the connection is dead."""
        self.epochs: set[int] = set()
        self.gone_epochs: set[int] = set()

    async def insert(self, items: Sequence[Item]) -> None:
        for item in await self._some(items):
            _refuse_if(_key(item) in self.there, f"there is an entry {item}")
            self.there[_key(item)] = item
            self._note_epoch(item)

    async def modify(self, items: Sequence[Item]) -> None:
        for item in await self._some(items):
            _refuse_if(_key(item) not in self.there, f"no entry {item}")
            self.there[_key(item)] = item

    async def delete(self, items: Sequence[Item]) -> None:
        for item in await self._some(items):
            self.there.pop(_key(item), None)

    async def clear_counts(self, counters: Sequence[Counter]) -> None:
        await self._some(())

    async def read_groups(self) -> list[Group]:
        await self._some(())
        return [item for item in self.there.values() if isinstance(item, Group)]

    async def read_entries(self, table: str) -> list[Entry]:
        await self._some(())
        return [
            item for item in self.there.values() if isinstance(item, Entry) and item.table == table
        ]

    def restart(self) -> None:
        """Tables and registers are empty, and the connection is lost."""
        self.there.clear()
        self.gone_epochs |= self.epochs
        self.epochs.clear()
        self.lost = True
        self.restarts += 1

    def _note_epoch(self, item: Item) -> None:
        """A worker may have sent something of this epoch, which is in the registers then."""
        if isinstance(item, Entry) and item.table == names.JOBS:
            params = dict(item.params)
            if params["slots"]:  # not the mark
                assert params["epoch"] not in self.gone_epochs, (
                    "its sums were in registers that are lost"
                )
                self.epochs.add(params["epoch"])

    async def _some(self, items: Sequence[Item]) -> Sequence[Item]:
        restarts = self.restarts
        await asyncio.sleep(0)
        if self.unused:
            raise Killed
        if not self.lost and self.restarts == restarts and self.dice.random() >= self.trouble:
            return items
        raise SwitchError("switch s: no answer")


def _refuse_if(wrong: bool, why: str) -> None:
    if wrong:
        error = SwitchError(why)
        error.refused = True
        raise error


def _key(item: Item) -> object:
    if isinstance(item, Group):
        return item.number
    return item.table, tuple(sorted(item.match))


class SlowSession(FakeSession):
    """Its writes wait for a gate."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))
        self.gate = asyncio.Event()
        self.gate.set()

    async def _some(self, items: Sequence[Item]) -> Sequence[Item]:
        await self.gate.wait()
        return await super()._some(items)

    @property
    def mark(self) -> int:
        """The last epoch that it knows of."""
        return next(
            dict(item.params)["epoch"]
            for item in self.there.values()
            if isinstance(item, Entry) and item.table == names.JOBS and dict(item.match)["job"] == 0
        )

    def of_jobs(self) -> list[Item]:
        """What it has of any job."""
        return [item for item in self.there.values() if not _is_its_own(item)]

    def rows_of(self, number: int) -> list[Entry]:
        """Its rows of the table of jobs that let this one in."""
        rows = (item for item in self.of_jobs() if isinstance(item, Entry))
        return [it for it in rows if it.table == names.JOBS and dict(it.match)["job"] == number]


def _is_its_own(item: Item) -> bool:
    if not isinstance(item, Entry):
        return False
    return item.table == names.OWN_ADDRESSES or job_number(item) == 0


class RecordingSwitch:
    """A JobWriter. ``gate`` holds back installing; ``refuse`` makes it fail."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuse: SwitchError | None = None
        self.keep = 0  # removals that are refused
        self.busy = False
        self.mark: int | None = None
        self.items: list[Item] = []
        self.addresses: tuple[int | str, ...] = ()

    async def put_passing(self, wanted: Sequence[Entry], former: Sequence[Entry]) -> None:
        self.passing = tuple(wanted)

    async def put_addresses(self, wanted: Iterable[int | str], former: Iterable[int | str]) -> None:
        self.addresses = tuple(wanted)

    async def install(self, plan: JobPlan, cleared: Sequence[int], epoch: int) -> None:
        (job_number,) = cleared
        assert not self.busy
        self.busy = True
        try:
            await self.gate.wait()
            self.log.append(f"install {job_number} epoch {epoch}")
            if self.refuse is not None:
                raise self.refuse
        finally:
            self.busy = False

    async def remove(self, plan: JobPlan) -> None:
        assert not self.busy
        self._maybe_keep()
        self.log.append("remove")

    async def remove_entry(self, entry: Entry) -> None:
        assert not self.busy
        self._maybe_keep()
        self.log.append(f"remove worker {dict(entry.match)['worker']}")

    async def read_state(self) -> SwitchState:
        return SwitchState(self.mark, tuple(self.items))

    async def put_mark(self, epoch: int, former: int | None) -> None:
        assert former == self.mark
        self.mark = epoch

    async def insert(self, items: Iterable[Item]) -> None:
        self.items += items

    async def modify(self, items: Iterable[Item]) -> None:
        assert not list(items), "not in these tests"

    async def delete(self, items: Iterable[Item]) -> None:
        for item in items:
            self.items.remove(item)

    def _maybe_keep(self) -> None:
        if self.keep:
            self.keep -= 1
            raise SwitchError("switch s: no answer")


class RefusingWriter(SwitchWriter):
    """Refuses to remove until told otherwise."""

    def __init__(self, writer: SwitchWriter) -> None:
        super().__init__(writer.session)
        self.refuse = True

    async def remove_entry(self, entry: Any) -> None:
        if self.refuse:
            raise SwitchError("not now")
        await super().remove_entry(entry)

    async def remove(self, plan: JobPlan) -> None:
        if self.refuse:
            raise SwitchError("not now")
        await super().remove(plan)
