"""A switch of the controller's that does all it is told, and remembers it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ina.controller.switches.plan import JobPlan
from ina.controller.switches.reconcile import SwitchState
from ina.tables.values import Count, Counter, Entry, Group, Item, Match, PortDrop, PortState


class ObedientSwitch:
    """A :class:`~ina.controller.switches.writer.JobWriter`."""

    def __init__(self) -> None:
        self.items: set[Item] = set()
        """Of plans; entries of single workers stay until their job goes."""
        self.mark: int | None = None

    async def install(self, plan: JobPlan, cleared: Sequence[int], epoch: int) -> None:
        """Remembers what is in the plan."""
        self.items.update(plan.items)

    async def remove(self, plan: JobPlan) -> None:
        """Forgets it; what is off already is no error."""
        self.items.difference_update(plan.items)

    async def remove_entry(self, entry: Entry) -> None:
        """The rest of the plan stays."""

    async def read_state(self) -> SwitchState:
        """Nothing of anybody else's."""
        return SwitchState(self.mark, ())

    async def put_mark(self, epoch: int, former: int | None) -> None:
        """Remembers it."""
        self.mark = epoch

    async def put_passing(self, wanted: Sequence[Entry], former: Sequence[Entry]) -> None:
        """Not needed: no packet comes."""

    async def put_addresses(
        self, wanted: Iterable[int | str], former: Container[int | str]
    ) -> None:
        """Not needed: no packet comes."""

    async def insert(self, items: Iterable[Item]) -> None:
        """Not needed: nothing is to be mended."""

    async def modify(self, items: Iterable[Item]) -> None:
        """Results groups: nothing to remember."""

    async def delete(self, items: Iterable[Item]) -> None:
        """Not needed: nothing is foreign."""

    async def read_entries(self) -> list[Entry]:
        """None."""
        return []

    async def read_groups(self) -> list[Group]:
        """None."""
        return []

    async def read_job_counters(self, job_numbers: Sequence[int]) -> list[tuple[Counter, Count]]:
        """None."""
        return []

    async def read_drops(self) -> list[tuple[Counter, Count]]:
        """None."""
        return []

    async def read_worker_counters(self, table: str) -> list[tuple[Match, Count]]:
        """None."""
        return []

    async def read_ports(self) -> list[PortState]:
        """None."""
        return []

    async def read_port_drops(self) -> list[PortDrop]:
        """None."""
        return []
