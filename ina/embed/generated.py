"""A trace whose look-ups follow Zipf's law."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ina.embed.bags import Bags
from ina.embed.trace import TableTrace, Trace
from ina.embed.zipf import MLPERF_BAGS, MLPERF_ROWS, Zipf


def mlperf_tables(most_rows: int, *, bags: bool) -> list[tuple[int, int]]:
    """Rows of each table, and rows that a sample has of it; longer tables are cut.

    `bags`: as many rows a sample as MLPerf's; else one of each table.
    """
    sizes = MLPERF_BAGS if bags else (1,) * len(MLPERF_ROWS)
    return [(min(rows, most_rows), bag) for rows, bag in zip(MLPERF_ROWS, sizes, strict=True)]


def generated(
    tables: Sequence[tuple[int, int]],
    samples: int,
    exponent: float,
    seed: int,
    told: Callable[[int], None] = lambda done: None,
) -> Trace:
    """So many samples of these tables; the same from the same seed. `told`: tables done."""
    found: list[TableTrace] = []
    for number, (rows, bag) in enumerate(tables):
        random = np.random.default_rng([seed, number])
        ids = Zipf(rows, exponent).draw(random, (samples * bag,))
        offsets = np.arange(samples, dtype=np.int64) * bag
        found.append(TableTrace(f"c{number + 1}", rows, Bags.of(ids, offsets, limit=rows)))
        told(number + 1)
    return Trace(found)
