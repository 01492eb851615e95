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
_OVERTIME = 8.0
"""Times ``seconds``: the most that few samples may take."""
_SLOW = 10.0
"""Times the limit: a turn of a machine whose cores others use as well."""
_UNSHAPED_RATE = 1e9
"""Bits a second that a link without a rate has at least, for a deadline."""
LEAST_SAMPLES = 3
"""Of each way, where there is time for them."""
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
    """Upper bound of all samples, and of a first turn; eight times as long for the first three."""
    spoil: int

    def goes_on(self, turns: int, spent_s: float) -> bool:
        """Whether there is time for one more turn, of a sample of each way.

        ``turns``: those measured, after a first one, whose samples count where no other has time.
        ``spent_s``: on all of them.
        """
        turn_s = spent_s / (turns + 1)
        until_s = self.seconds * (1 if turns >= LEAST_SAMPLES else _OVERTIME)
        return turns < self.repeats and spent_s + turn_s <= until_s


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
        timeout_s=deadline_s(testbed, order, values),
        environ=own_switch(testbed, values=values),
    )
    return [_row(testbed, order, values, record, way) for way in WAYS]


def deadline_s(testbed: Testbed, order: EmbeddingOrder, values: int) -> float:
    """Of all samples: start-up, the time for few, and two turns of which nobody knew how long."""
    workers, lookups = testbed.workers, min(order.rows, order.lookups)
    union_rows = min(order.rows, workers * order.lookups)
    wires = [_wire_bytes(order, values, workers, union_rows, way) for way in WAYS]
    gathered = (workers - 1) * lookups * (4 * order.columns + 8)
    turn_bytes = sum(gathered if wire is None else wire for wire in wires)
    turn_s = _SLOW * limits.link_s(turn_bytes, testbed.rate_bit_s or _UNSHAPED_RATE)
    return _START_UP_S + _OVERTIME * order.seconds + 2 * turn_s


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


def why_few(rows: Sequence[EmbeddingRow], seconds: float) -> list[str]:
    """Where there was no time for LEAST_SAMPLES: a line for each number of workers."""
    found = []
    for workers in dict.fromkeys(row.workers for row in rows):
        ways = [row for row in rows if row.workers == workers]
        samples, turn_s = min(row.samples for row in ways), sum(row.time_s for row in ways)
        if samples < LEAST_SAMPLES:
            found.append(
                f"samples: {samples} of each way with {workers} workers, where {LEAST_SAMPLES} are"
                f" wanted: one of each takes {turn_s:.1f} s, and --seconds is {seconds:g}"
            )
    return found


def ratios(rows: Sequence[EmbeddingRow], link: str) -> list[Ratio]:
    """The others' times over that of ina with sparse tensors."""
    return [
        Ratio(f"{link} n={row.workers} {row.way}/ina sparse", row.gain)
        for row in rows
        if row.way != WAYS[0]
    ]
