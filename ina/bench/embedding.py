"""Gradients of an embedding, summed as sparse and as dense tensors, by ina and by Gloo: as rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ina.bench import limits
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.testbed import Testbed, own_switch, records

_WORKER = "ina.bench.torch.embedding"
_START_UP_S = 300.0
WAYS = ("ina sparse", "gloo sparse", "ina dense", "gloo dense")


@dataclass(frozen=True)
class EmbeddingOrder:
    """What the ranks are asked for."""

    rows: int
    columns: int
    lookups: int
    """Of a rank's batch."""
    zipf: float
    """The k-th most frequent row is looked up k to the power of this times less often."""
    repeats: int
    seconds: float
    """Upper bound of all samples."""
    spoil: int


@dataclass(frozen=True)
class EmbeddingRow:
    """One way to sum."""

    workers: int
    way: str
    """One of WAYS."""
    density: float
    """Of the rows, those that rank 0 has."""
    union: float
    """Of the rows, those that some rank has."""
    time_s: float
    """Median of the samples; each is of the slowest rank."""
    time_low_s: float
    """First quartile."""
    time_high_s: float
    samples: int
    sent_bytes: float | None
    """By a worker's link for one sum, with all headers; mean of the ranks. None: on loopback."""
    received_bytes: float | None
    limit_s: float | None
    """The least that this way's values, and counters, take on the links; None: not known."""
    limit_share: float | None
    gain: float
    """This way's time / ina's with sparse tensors."""
    wrong: int
    """Values of a checked sum that were wrong, all ranks."""


def measure(testbed: Testbed, order: EmbeddingOrder, values: int) -> list[EmbeddingRow]:
    """A row of each way. Raises InaError."""
    (record,) = records(
        testbed,
        _WORKER,
        order,
        count=1,
        timeout_s=_START_UP_S + 8 * order.seconds,
        environ=own_switch(testbed, values=values),
    )
    return [_row(testbed, order, values, record, way) for way in WAYS]


def _row(
    testbed: Testbed, order: EmbeddingOrder, values: int, record: dict[str, Any], way: str
) -> EmbeddingRow:
    found = record["ways"][way]
    times = spread(found["times_s"])
    wire = _wire_bytes(order, values, testbed.workers, record["union_rows"], way)
    limit_s = None
    if testbed.rate_bit_s is not None and wire is not None:
        limit_s = limits.link_s(wire, testbed.rate_bit_s)
    return EmbeddingRow(
        workers=testbed.workers,
        way=way,
        density=record["own_rows"] / order.rows,
        union=record["union_rows"] / order.rows,
        time_s=times.median,
        time_low_s=times.low,
        time_high_s=times.high,
        samples=times.count,
        sent_bytes=found["sent_bytes"],
        received_bytes=found["received_bytes"],
        limit_s=limit_s,
        limit_share=None if limit_s is None else limit_s / times.median,
        gain=times.median / spread(record["ways"][WAYS[0]]["times_s"]).median,
        wrong=found["wrong"],
    )


def _wire_bytes(
    order: EmbeddingOrder, values: int, workers: int, union_rows: int, way: str
) -> float | None:
    elems = order.rows * order.columns
    if way == "ina sparse":
        counters = math.ceil(order.rows / (32 // workers.bit_length()))
        rows = limits.ina_wire_bytes(union_rows * order.columns, values)
        return rows + limits.ina_wire_bytes(counters, values)
    if way == "ina dense":
        return limits.ina_wire_bytes(elems, values)
    if way == "gloo dense":
        return limits.ring_wire_bytes(4 * elems, workers)
    return None


def ratios(rows: Sequence[EmbeddingRow], link: str) -> list[Ratio]:
    """The others' times over that of ina with sparse tensors."""
    return [
        Ratio(f"{link} n={row.workers} {row.way}/ina sparse", row.gain)
        for row in rows
        if row.way != WAYS[0]
    ]
