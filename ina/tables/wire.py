"""What carries a P4Runtime session: gRPC, or the virtual network's messages."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from finsy.proto import U128, p4r, rpc_code

from ina.tables.values import AnyItem, Count, Counter, CounterRef, Entry, Group, Match, PortDrop


class Standing(Enum):
    """How a client stands towards the switch."""

    PRIMARY = "primary"
    BACKUP = "backup"
    NOBODY = "nobody is primary"


class News(NamedTuple):
    """What the switch says of who is primary."""

    standing: Standing
    highest_id: int
    """The primary's election id; where nobody is, the highest that the switch has ever seen."""


def news_of(update: p4r.MasterArbitrationUpdate) -> News:
    """As P4Runtime says it."""
    standing = Standing.BACKUP
    if update.status.code == rpc_code.OK:
        standing = Standing.PRIMARY
    elif update.status.code == rpc_code.NOT_FOUND:
        standing = Standing.NOBODY
    return News(standing, U128.decode(update.election_id))


class TableUpdate(Enum):
    """What becomes of items."""

    INSERT = "insert"
    MODIFY = "modify"
    DELETE = "delete"


class Wire(Protocol):
    """One connection. Calls have deadlines, and raise :class:`~ina.tables.errors.SwitchError`.

    ``as_id``: the election id that a write carries.
    """

    async def open(self) -> None:
        """Before all else; it does not wait for an answer."""
        ...

    async def close(self) -> None:
        """Ends it, and with it each call that waits. Idempotent."""
        ...

    async def trouble(self) -> str | None:
        """Why the switch may never answer, in one line; None: nothing is known."""
        ...

    async def elect(self, election_id: int) -> None:
        """Says under which id this client would be primary; 0: none, it is a backup."""
        ...

    async def news(self) -> News:
        """The next; raises when the stream has ended."""
        ...

    async def probe(self) -> None:
        """Asks for a sign of life."""
        ...

    async def runs_program(self) -> bool:
        """Whether the switch runs the session's program."""
        ...

    async def set_program(self, as_id: int) -> None:
        """Sets it, whatever runs: tables, groups, counters and registers are as at power-on."""
        ...

    async def write(self, change: TableUpdate, items: Sequence[AnyItem], as_id: int) -> None:
        """Does it to all, though some may fail. To delete what is not there is no error."""
        ...

    async def read_entries(self, table: str) -> list[Entry]:
        """Of one table, or all (""), without default actions."""
        ...

    async def read_groups(self) -> list[Group]:
        """All."""
        ...

    async def read_counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """In their order."""
        ...

    async def clear_counts(self, counters: Sequence[Counter], as_id: int) -> None:
        """Sets them to 0."""
        ...

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        """Of a table with a direct counter."""
        ...

    async def read_port_drops(self) -> list[PortDrop]:
        """Nothing, where the switch does not tell."""
        ...
