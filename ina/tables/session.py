"""What is asked of a switch, whatever protocol it speaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ina.tables.values import (
    AnyItem,
    Count,
    Counter,
    CounterRef,
    Entry,
    Group,
    Match,
    PortDrop,
    PortState,
)


class SwitchSession(Protocol):
    """A connected session. It ends once, and does not connect again.

    Every method that talks to the switch has a deadline and raises
    :class:`~ina.tables.errors.SwitchError`, whose ``refused`` says that the switch answered.
    """

    @property
    def address(self) -> str:
        """host:port of the switch's server."""
        ...

    @property
    def device_id(self) -> int:
        """The server's number of the device."""
        ...

    @property
    def election_id(self) -> int:
        """What this client calls itself towards the switch."""
        ...

    @property
    def is_primary(self) -> bool:
        """Whether the switch takes this client's writes."""
        ...

    @property
    def lost(self) -> str | None:
        """Why it is of no use any more; None: it works."""
        ...

    @property
    def heard_s(self) -> float:
        """When the switch answered last; the event loop's clock, which is the monotonic one."""
        ...

    def who_is_primary(self) -> str:
        """For people: why this one is not."""
        ...

    async def close(self) -> None:
        """Ends the session; the switch keeps its entries."""
        ...

    async def until_primary(self) -> None:
        """Returns when this client is primary."""
        ...

    async def until_backup(self) -> None:
        """Returns when another client is primary."""
        ...

    async def set_pipeline(self) -> bool:
        """Makes sure that the switch runs the program and has its ports set as configured.

        Returns whether the program was set just now, which clears tables, groups, counters and
        registers.
        """
        ...

    def port_number(self, name: str) -> int:
        """The number of the port with this name on the front panel, after :meth:`set_pipeline`."""
        ...

    async def insert(self, items: Sequence[AnyItem]) -> None:
        """Inserts all; it is an error if some are there. Sets default actions."""
        ...

    async def modify(self, items: Sequence[AnyItem]) -> None:
        """Gives items that are there these parameters; it is an error if some are not there."""
        ...

    async def delete(self, items: Sequence[AnyItem]) -> None:
        """Deletes all that are there; it is no error if some are not.

        Default actions are the program's own again.
        """
        ...

    async def read_entries(self, table: str = "") -> list[Entry]:
        """The entries of one table, or of all, without default actions."""
        ...

    async def read_groups(self) -> list[Group]:
        """Every multicast group."""
        ...

    async def read_counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """What these counters have seen, in their order."""
        ...

    async def clear_counts(self, counters: Sequence[Counter]) -> None:
        """Sets these cells of indirect counters to 0."""
        ...

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        """What each entry of a table with a direct counter has seen."""
        ...

    async def read_port_drops(self) -> list[PortDrop]:
        """What ports have dropped, where the switch tells; else nothing."""
        ...

    async def read_ports(self) -> list[PortState]:
        """The switch's ports, where the protocol tells of them; else nothing."""
        ...
