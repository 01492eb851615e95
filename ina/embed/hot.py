"""Which rows every host is to have a replica of.

A row that is asked for by k of H hosts in a step costs, on its way down and as a gradient, 2 k
vectors less those between a host and itself, (H - 1) / H of them. As a replica it costs each host
the vector that the all-reduce of its gradient brings. So it is hot from k = H^2 / (2 (H - 1)) on,
about H / 2: arithmetic, and not a share of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.uint32]
MOST_HOT_BYTES = 64 << 20
"""Of replicas on each host, where nothing else is said."""


def least_asks(hosts: int) -> float:
    """A step, of all hosts together, from which on a row is hot."""
    return hosts**2 / (2 * (hosts - 1)) if hosts > 1 else np.inf


class Asks:
    """How often this host has asked for each row of a table, once a step at most."""

    def __init__(self) -> None:
        """None so far."""
        self._seen: list[Rows] = []

    def add(self, rows: Rows) -> None:
        """A step's, each once."""
        self._seen.append(rows)

    def counts(self) -> tuple[Rows, NDArray[np.int64]]:
        """Rows in order, and of each how often; forgets them."""
        seen, self._seen = self._seen, []
        if not seen:
            return np.empty(0, np.uint32), np.empty(0, np.int64)
        rows, counts = np.unique(np.concatenate(seen), return_counts=True)
        return rows, counts.astype(np.int64)


def candidates(counts: tuple[Rows, NDArray[np.int64]], hosts: int, steps: int) -> Rows:
    """Rows that this host has asked for often enough that they may be hot.

    Of what is asked often enough by all, one host at least has its share.
    """
    rows, asks = counts
    return rows[asks * hosts >= least_asks(hosts) * steps]


def counts_of(counts: tuple[Rows, NDArray[np.int64]], rows: Rows) -> NDArray[np.int64]:
    """How often this host has asked for these."""
    known, asks = counts
    if known.size == 0:
        return np.zeros(rows.size, np.int64)
    at = np.minimum(np.searchsorted(known, rows), known.size - 1)
    return np.where(known[at] == rows, asks[at], 0)


def hottest(
    tables: Sequence[tuple[Rows, NDArray[np.int64]]],
    row_bytes: Sequence[int],
    *,
    hosts: int,
    steps: int,
    most_bytes: int,
) -> list[Rows]:
    """Of each table the rows that are hot, in order, by the asks of all hosts together.

    The same on all hosts that are given the same. Where they are more than `most_bytes`, those that
    are asked for least are left out.
    """
    least = least_asks(hosts) * steps
    found = [
        (-int(count), table, int(row))
        for table, (rows, counts) in enumerate(tables)
        for row, count in zip(rows[counts >= least], counts[counts >= least], strict=True)
    ]
    taken: list[list[int]] = [[] for _ in tables]
    used = 0
    for _, table, row in sorted(found):
        used += row_bytes[table]
        if used > most_bytes:
            break
        taken[table].append(row)
    return [np.array(sorted(rows), np.uint32) for rows in taken]
