"""Which host owns which rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ina.embed.errors import TableError
from ina.extension.embed import TableSpec

MAX_HOSTS = 64
MAX_DIM = 16_384
MAX_ROWS = 2**32 - 2
VALUE_BYTES = 4
MOST_OVER_MEAN = 1.2
"""Of rows' bytes on a host, where tables stay whole."""

Pooling = Literal["sum", "mean", "max"]
Spread = Literal["auto", "table", "row"]
_POOLINGS = ("sum", "mean", "max")


@dataclass(frozen=True)
class Table:
    """An embedding table: `rows` vectors of `dim` float32 values.

    Args:
        name: of the table among its module's.
        bag: how the vectors of a bag become one, as ``nn.EmbeddingBag``'s mode.
        shard: "table", it lies on one host; "row", its rows are spread over all; "auto", one of
            these, by what the hosts have.

    Raises TableError: a name that is empty, or a number out of range.
    """

    name: str
    rows: int
    dim: int
    bag: Pooling = "sum"
    shard: Spread = "auto"

    def __post_init__(self) -> None:
        """Check."""
        if not self.name:
            raise TableError("a table needs a name")
        if not 1 <= self.rows <= MAX_ROWS:
            raise TableError(f"table {self.name!r}: rows = {self.rows}: want 1 to {MAX_ROWS}")
        if not 1 <= self.dim <= MAX_DIM:
            raise TableError(f"table {self.name!r}: dim = {self.dim}: want 1 to {MAX_DIM}")
        if self.bag not in _POOLINGS:
            raise TableError(f"table {self.name!r}: bag = {self.bag!r}: want {_POOLINGS}")
        if self.shard not in ("auto", "table", "row"):
            raise TableError(f"table {self.name!r}: shard = {self.shard!r}: want auto, table, row")

    @property
    def bytes(self) -> int:
        """Of its rows, on all hosts together."""
        return self.rows * self.dim * VALUE_BYTES


def place(tables: Sequence[Table], hosts: int) -> list[TableSpec]:
    """Where each table lies, the same on every host that asks.

    The largest table is placed first. A table stays whole, on the host with the fewest bytes, where
    that gives no host more than 1.2 times the mean of all; else its rows are spread over all hosts.

    Raises TableError: too many hosts, no table, or two of a name.
    """
    if not 1 <= hosts <= MAX_HOSTS:
        raise TableError(f"{hosts} hosts: want 1 to {MAX_HOSTS}")
    names = [table.name for table in tables]
    if not names:
        raise TableError("no table")
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"two tables are called {name!r}")
    most = MOST_OVER_MEAN * sum(table.bytes for table in tables) / hosts
    load = [0.0] * hosts
    specs: dict[str, TableSpec] = {}
    for table in sorted(tables, key=lambda one: (-one.bytes, one.name)):
        host = min(range(hosts), key=load.__getitem__)
        is_whole = table.shard == "table" or (
            table.shard == "auto" and load[host] + table.bytes <= most
        )
        if is_whole or hosts == 1 or table.rows < hosts:
            load[host] += table.bytes
            specs[table.name] = TableSpec(
                rows=table.rows, dim=table.dim, first_owner=host, owners=1
            )
        else:
            load = [bytes_ + table.bytes / hosts for bytes_ in load]
            specs[table.name] = TableSpec(
                rows=table.rows, dim=table.dim, first_owner=0, owners=hosts
            )
    return [specs[name] for name in names]


def how(spec: TableSpec) -> str:
    """Where a table lies, in words."""
    return f"on host {spec.first_owner}" if spec.owners == 1 else f"on {spec.owners} hosts, by row"
