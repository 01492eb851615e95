"""The exchange of a recommendation model's embeddings, by ina and by Gloo's all_to_all: as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ina.bench import limits
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.testbed import Testbed, own_switch, records
from ina.embed.generated import mlperf_tables

_WORKER = "ina.bench.torch.lookups"
_START_UP_S = 600.0
_STEP_S = 60.0
WAYS = ("ina", "gloo")
PHASES = ("training", "inference")
WARM_STEPS = 12
"""Of training: after the tenth the first rows are hot."""


@dataclass(frozen=True)
class LookupsOrder:
    """What the ranks are asked for."""

    most_rows: int
    """Of a table: longer ones are cut."""
    dim: int
    samples: int
    """Of a rank, in a step of training."""
    queries: int
    """Of a rank, in a batch of inference."""
    bags: bool
    """As many rows a sample as MLPerf's; else one of each table."""
    zipf: float
    repeats: int
    seconds: float
    spoil: int

    @property
    def tables(self) -> list[tuple[int, int]]:
        """Rows of each, and rows a bag."""
        return mlperf_tables(self.most_rows, bags=self.bags)


@dataclass(frozen=True)
class LookupsRow:
    """One way, in training or inference."""

    workers: int
    phase: str
    way: str
    time_s: float
    """Median of the samples; each is of the slowest rank."""
    time_low_s: float
    """First quartile."""
    time_high_s: float
    worst_s: float
    """Of a hundred samples, the second longest."""
    samples: int
    sent_bytes: float | None
    """By a worker's link for one step, with all headers; mean of the ranks. None: on loopback."""
    received_bytes: float | None
    limit_s: float | None
    """What the received bytes take on the link; None: not known."""
    gain: float
    """This way's time / ina's."""
    share: float | None
    """This way's received bytes / Gloo's."""
    wrong: int
    """Values of a checked step that differ between the ways, all ranks."""


def measure(testbed: Testbed, order: LookupsOrder, values: int) -> list[LookupsRow]:
    """A row of each phase and way. Raises InaError."""
    (record,) = records(
        testbed,
        _WORKER,
        order,
        count=1,
        timeout_s=_START_UP_S + 4 * (order.seconds + WARM_STEPS * _STEP_S),
        environ=own_switch(testbed, values=values),
    )
    return [_row(testbed, record[phase], phase, way) for phase in PHASES for way in WAYS]


def _row(testbed: Testbed, record: dict[str, Any], phase: str, way: str) -> LookupsRow:
    found, gloo = record[way], record["gloo"]
    times = spread(found["times_s"])
    received = found["received_bytes"]
    limit_s = None
    if testbed.rate_bit_s is not None and received is not None:
        limit_s = limits.link_s(received, testbed.rate_bit_s)
    return LookupsRow(
        workers=testbed.workers,
        phase=phase,
        way=way,
        time_s=times.median,
        time_low_s=times.low,
        time_high_s=times.high,
        worst_s=float(np.quantile(found["times_s"], 0.99)),
        samples=times.count,
        sent_bytes=found["sent_bytes"],
        received_bytes=received,
        limit_s=limit_s,
        gain=times.median / spread(record["ina"]["times_s"]).median,
        share=None if received is None else received / gloo["received_bytes"],
        wrong=found["wrong"],
    )


def ratios(rows: Sequence[LookupsRow], link: str) -> list[Ratio]:
    """Gloo's times over ina's."""
    return [
        Ratio(f"{link} n={row.workers} {row.phase} {row.way}/ina", row.gain)
        for row in rows
        if row.way != "ina"
    ]
