"""Inference over nodes that packets lead through, and conducted by processes over Gloo: as rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ina.bench.report import Ratio
from ina.bench.spread import percentile, spread
from ina.bench.testbed import Testbed, records

_WORKER = "ina.bench.torch.inference"
_START_UP_S = 600.0


@dataclass(frozen=True)
class InferenceOrder:
    """What the ranks are asked for."""

    plan: str
    block: int
    sizes: tuple[int, ...]
    """Samples of a request."""
    repeats: int
    """Requests one after the other, a turn."""
    burst: int
    """Requests of a round, `window` at a time."""
    window: int
    rounds: int
    turns: int
    """ina and Gloo, so often in turns."""
    warm: int = 20
    """Requests before each turn that do not count."""


@dataclass(frozen=True)
class InferenceRow:
    """One way, with requests of one size."""

    nodes: int
    size: int
    way: str
    time_s: float
    """Of a request alone, median."""
    time_low_s: float
    """First quartile."""
    time_high_s: float
    worst_s: float
    """99 of 100 are no longer."""
    rate: float
    """Requests a second, `window` at a time: median of the rounds."""
    rate_low: float
    rate_high: float
    samples_per_s: float
    limit_per_s: float | None
    """Samples a second that the machine's cores could compute, if nothing had to be sent."""
    speed: float | None
    """Gloo's time over this way's."""
    gain: float | None
    """This way's rate over Gloo's."""
    wrong: int
    """Values that differ from one process's."""


def measure(testbed: Testbed, order: InferenceOrder) -> list[InferenceRow]:
    """A row of each size and way, and one of a request that one node answers. Raises InaError."""
    (record,) = records(testbed, _WORKER, order, count=1, timeout_s=_START_UP_S)
    rows = []
    nodes = testbed.workers - 1
    for found in record["sizes"]:
        size = found["size"]
        if "hop" in found:
            rows.append(_row(1, size, "one hop", found["hop"], None, None))
            continue
        limit = (os.cpu_count() or 1) * size / found["kernels_s"]
        rows += [
            _row(nodes, size, way, found[way], found["gloo"], limit) for way in ("ina", "gloo")
        ]
    return rows


def _row(
    nodes: int, size: int, way: str, found: dict[str, Any], gloo: dict[str, Any] | None,
    limit: float | None,
) -> InferenceRow:  # fmt: skip
    times, rates = spread(found["times_s"]), spread(found["rates"])
    return InferenceRow(
        nodes=nodes,
        size=size,
        way=way,
        time_s=times.median,
        time_low_s=times.low,
        time_high_s=times.high,
        worst_s=percentile(found["times_s"], 0.99),
        rate=rates.median,
        rate_low=rates.low,
        rate_high=rates.high,
        samples_per_s=rates.median * size,
        limit_per_s=limit,
        speed=None if gloo is None else spread(gloo["times_s"]).median / times.median,
        gain=None if gloo is None else rates.median / spread(gloo["rates"]).median,
        wrong=found["wrong"],
    )


def ratios(rows: Sequence[InferenceRow]) -> list[Ratio]:
    """Of ina to Gloo."""
    found = []
    for row in rows:
        if row.way == "ina" and row.speed is not None and row.gain is not None:
            found.append(Ratio(f"n={row.nodes} size={row.size} latency gloo/ina", row.speed))
            found.append(Ratio(f"n={row.nodes} size={row.size} throughput ina/gloo", row.gain))
    return found
