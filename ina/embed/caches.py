"""What of a trace a cache on each host would have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ina.embed.asked import Asked, Step, are_among
from ina.embed.hot import Rows
from ina.embed.sharding import VALUE_BYTES
from ina.embed.trace import Trace
from ina.extension.embed import RowCache, TableSpec


class Caches:
    """One of each host, of one size: what a service has, but for the values."""

    def __init__(self, share: float, specs: Sequence[TableSpec], hosts: int) -> None:
        """Empty ones, for this share of the rows."""
        self.share = share
        self.bytes = int(share * sum(spec.rows * spec.dim for spec in specs) * VALUE_BYTES)
        """Of each, as ``EmbeddingOptions(cache_bytes=)``."""
        slim = [TableSpec(rows=spec.rows, dim=1) for spec in specs]  # as large a share of each
        most_bytes = int(share * sum(spec.rows for spec in specs) * VALUE_BYTES)
        self._caches = [RowCache() for _ in range(hosts)]
        for cache in self._caches:
            cache.resize(slim, most_bytes)
        self.vectors = 0
        """That came to all hosts, as far as it was measured."""
        self._found = self._sought = 0

    @property
    def hits(self) -> float | None:
        """Of the rows of others that are looked for, the share that is here. None: no cache."""
        return self._found / self._sought if self.share and self._sought else None

    def replay(self, step: Step, is_measured: bool) -> None:
        """All hosts look their rows up; of those that come one by one they keep what has room."""
        for table, of_hosts in enumerate(step):
            for asked in of_hosts:
                is_here = self._look_up(table, asked)
                if is_measured:
                    self.vectors += asked.vectors(is_here)
                    self._found += int(np.count_nonzero(is_here))
                    self._sought += int(np.count_nonzero(asked.are_others))

    def _look_up(self, table: int, asked: Asked) -> NDArray[np.bool_]:
        cache = self._caches[asked.host]
        others = asked.rows[asked.are_others]
        found = np.zeros(others.size, np.bool_)
        cache.find_all(table, others.size, others.ctypes.data, found.ctypes.data)
        if asked.is_by_row:
            owners = asked.owners[asked.are_others][~found]
            came = others[~found][np.argsort(owners, kind="stable")]  # an answer from each
            values = np.zeros(came.size, np.float32)
            cache.put_all(table, came.size, came.ctypes.data, values.ctypes.data, 1)
        is_here = np.zeros(asked.rows.size, np.bool_)
        is_here[asked.are_others] = found
        return is_here


class MostAsked:
    """Of each table the rows that some samples ask for, those most first."""

    def __init__(self, trace: Trace, samples: int) -> None:
        """Of the first so many."""
        self._rows_of = [table.rows for table in trace.tables]
        self._rows: list[Rows] = []
        for table in trace.tables:
            rows, counts = np.unique(
                table.bags.rows[: table.bags.offsets[samples]], return_counts=True
            )
            self._rows.append(rows[np.argsort(-counts, kind="stable")])

    def vectors(self, share: float, steps: Sequence[Step]) -> int:
        """That come to all hosts, if each has this share of each table, those most asked for."""
        total = 0
        for table, (rows, most) in enumerate(zip(self._rows_of, self._rows, strict=True)):
            kept = np.sort(most[: int(share * rows)])
            for step in steps:
                total += sum(one.vectors(are_among(one.rows, kept)) for one in step[table])
        return total
