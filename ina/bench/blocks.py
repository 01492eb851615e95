"""Sparse sums beside dense ones, by density: what the workers measured, as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ina.bench import limits
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.testbed import Record, Testbed, records

_START_UP_S = 120.0
_WORKER = "ina.bench.blocks_worker"
SAME, INDEPENDENT = "same", "independent"


@dataclass(frozen=True)
class BlocksOrder:
    """What the ranks are asked for."""

    dtype: str
    elems: int
    """Of all arrays of a sum together."""
    arrays: int
    """That are given together: each agrees while the one before is summed."""
    block_elems: int
    values: int
    """A packet."""
    densities: Sequence[float]
    """Of a rank's blocks: the share that is not zero."""
    choices: Sequence[str]
    """``SAME``: all ranks have the same blocks; ``INDEPENDENT``."""
    repeats: int
    seconds: float
    spoil: int = 0
    """So many checked values are made wrong on each rank, to see that they are noticed."""


@dataclass(frozen=True)
class BlocksRow:
    """One density and choice of blocks."""

    workers: int
    blocks: str
    """``SAME`` or ``INDEPENDENT``."""
    density: float
    """Of the blocks of rank 0 that are not zero, as it came out."""
    union: float
    """Of the blocks: the share that is not zero on some rank."""
    size_bytes: int
    time_s: float
    """Median of the samples; each is of the slowest rank."""
    time_low_s: float
    time_high_s: float
    samples: int
    dense_s: float
    """Of the same arrays, summed as they are, in turns."""
    memory_s: float
    """Of that time, what rank 0 needs to find, gather and spread its blocks if nothing else does
    so at the same time."""
    limit_s: float | None
    """What the union's values and the counters take on a link."""
    limit_share: float | None
    """limit_s / time_s."""
    gain: float
    """dense_s / time_s."""
    wrong: int
    """Values that were wrong in a checked operation, of all ranks; sparse and dense."""


def measure(testbed: Testbed, order: BlocksOrder, on_row: Callable[[BlocksRow], None]) -> None:
    """All densities, in one run of the workers. Raises InaError, DeadlineError."""

    def on_record(record: Record) -> None:
        on_row(_row(testbed, order, record))

    count = len(order.densities) * len(order.choices)
    records(
        testbed,
        _WORKER,
        order,
        count=count,
        timeout_s=_START_UP_S + count * (6 * order.seconds + 60),
        environ={},
        on_record=on_record,
    )


def _row(testbed: Testbed, order: BlocksOrder, record: Record) -> BlocksRow:
    times, dense = spread(record["times_s"]), spread(record["dense_times_s"])
    limit_s = None
    if testbed.rate_bit_s is not None:
        senders = testbed.workers // testbed.hosts
        wire_bytes = sum(
            limits.ina_wire_bytes(words, order.values) for words in record["words"] if words
        )
        limit_s = limits.link_s(senders * wire_bytes, testbed.rate_bit_s)
    return BlocksRow(
        workers=testbed.workers,
        blocks=record["choice"],
        density=record["own"] / record["blocks"],
        union=record["union"] / record["blocks"],
        size_bytes=record["size_bytes"],
        time_s=times.median,
        time_low_s=times.low,
        time_high_s=times.high,
        samples=times.count,
        dense_s=dense.median,
        memory_s=record["memory_s"],
        limit_s=limit_s,
        limit_share=None if limit_s is None else limit_s / times.median,
        gain=dense.median / times.median,
        wrong=record["wrong"],
    )


def ratios(rows: Sequence[BlocksRow]) -> list[Ratio]:
    """The limit's time over that of a sparse sum, and a dense sum's."""
    found = []
    for row in rows:
        what = f"n={row.workers} {row.blocks} {row.density:.2%}"
        if row.limit_share is not None:
            found.append(Ratio(f"limit/sparse {what}", row.limit_share))
        found.append(Ratio(f"dense/sparse {what}", row.gain))
    return found
