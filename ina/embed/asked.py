"""What the hosts of a trace ask each other for, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ina.embed.hot import Rows
from ina.embed.sharding import Table
from ina.embed.trace import TableTrace
from ina.extension.embed import Batch, Placement, TableSpec

Hosts = NDArray[np.uint16]


@dataclass(frozen=True)
class Asked:
    """Of a table, by a host, in a step: rows of its batch, in the way that is taken."""

    host: int
    is_by_row: bool
    rows: Rows
    """By row: each once; else all of all bags, in order."""
    owners: Hosts
    """Of each of the rows."""
    bags: NDArray[np.int64]
    """Whose each row is; by row: its place."""

    @property
    def are_others(self) -> NDArray[np.bool_]:
        """Whether another host owns it, of each of the rows."""
        found: NDArray[np.bool_] = self.owners != self.host
        return found

    def vectors(self, is_here: NDArray[np.bool_] | None = None) -> int:
        """That come from other hosts, if of the rows those are here already."""
        is_asked = self.are_others if is_here is None else self.are_others & ~is_here
        if self.is_by_row:
            return int(np.count_nonzero(is_asked))
        pieces = self.bags[is_asked] << 16 | self.owners[is_asked]
        return int(np.unique(pieces).size)


def asked_of(
    table: TableTrace, placement: Placement, spec: TableSpec, host: int, samples: slice
) -> Asked:
    """What a host asks for, whose batch these samples are."""
    ends = table.bags.offsets[samples.start : samples.stop + 1]
    ids = table.bags.rows[ends[0] : ends[-1]].astype(np.int64)
    starts = ends[:-1] - ends[0]
    given = (table.name, 0, ids.size, ids.ctypes.data, starts.size, starts.ctypes.data)
    batch = Batch([spec], [(*given, 0, False, False)])
    by_row = batch.is_by_row(0)
    if by_row:
        rows = np.empty(batch.asked(0), np.uint32)
        batch.read_rows(0, rows.ctypes.data)
        bags = np.arange(rows.size)
    else:
        rows = ids.astype(np.uint32)
        bags = np.repeat(np.arange(starts.size), np.diff(ends))
    owners = np.empty(rows.size, np.uint16)
    placement.owners_of(rows.size, rows.ctypes.data, owners.ctypes.data)
    return Asked(host, by_row, rows, owners, bags)


Step = list[list[Asked]]
"""Of each table, of each host."""


def step_of(
    traces: Sequence[TableTrace], specs: Sequence[TableSpec], hosts: int, first: int, samples: int
) -> Step:
    """What all hosts ask for in a step, whose samples begin with `first`: `samples` of each."""
    found = []
    for trace, spec in zip(traces, specs, strict=True):
        placement = Placement(spec, hosts)
        parts = [first + host * samples for host in range(hosts)]
        found.append(
            [
                asked_of(trace, placement, spec, host, slice(part, part + samples))
                for host, part in enumerate(parts)
            ]
        )
    return found


def are_among(rows: Rows, some: Rows) -> NDArray[np.bool_]:
    """Of each of the rows whether it is among `some`, which are in order."""
    if some.size == 0:
        return np.zeros(rows.size, np.bool_)
    at = np.minimum(np.searchsorted(some, rows), some.size - 1)
    found: NDArray[np.bool_] = some[at] == rows
    return found


def tables_of(traces: Sequence[TableTrace], dim: int, shard: str) -> list[Table]:
    """Of a trace, as a module would have them. Raises TableError."""
    return [Table(trace.name, trace.rows, dim, shard=shard) for trace in traces]  # type: ignore[arg-type]
