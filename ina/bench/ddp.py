"""Training steps of DDP with ina and with Gloo: what the workers measured, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ina.bench import limits
from ina.bench.plot import Axis, Panel, Point, curves, gain_panel
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.testbed import Testbed, own_switch, records

MODELS = ("digits", "resnet50", "gpt2", "tiny")
COMPUTING_MODELS = ("digits",)
"""The others have a model's gradients, but compute nothing."""
_WORKER = "ina.bench.torch.ddp"
_START_UP_S = 180.0
_VALUE_BYTES = 4  # float32 gradients


@dataclass(frozen=True)
class StepRow:
    """One backend, model and number of workers."""

    model: str
    workers: int
    backend: str
    parameters: int
    gradient_bytes: int
    buckets: int
    """Of DDP, in one step."""
    step_s: float
    """Median of the samples; each is of the slowest rank."""
    step_low_s: float
    """First quartile."""
    step_high_s: float
    samples: int
    compute_s: float
    """Of a step without communication, on the same machine."""
    items_per_second: float
    """All workers'."""
    unit: str
    """images or tokens."""
    cpu_s: float
    """CPU seconds of a worker a step; mean of those that do not run the switch."""
    limit_s: float | None
    """The least that the gradients take on the links; None: they have no rate."""
    limit_share: float | None
    """limit_s / step_s. Below 1 also because of what is computed."""
    gain: float
    """Gloo's step_s / this one's."""
    wrong: int
    """Gradients of a checked step that were not the mean of the ranks', all ranks."""


@dataclass(frozen=True)
class StepOrder:
    """What the ranks are asked for."""

    model: str
    repeats: int
    seconds: float
    """Upper bound of all samples."""
    compute_ms: float
    """A backward of a model that computes nothing waits so long."""


def measure(testbed: Testbed, order: StepOrder, values: int) -> list[StepRow]:
    """One model at one testbed: a row of ina, a row of Gloo. Raises InaError."""
    (record,) = records(
        testbed,
        _WORKER,
        order,
        count=1,
        timeout_s=_START_UP_S + 8 * order.seconds,
        environ=own_switch(testbed, values=values),
    )
    return [
        _measurement(testbed, order.model, values, record, backend) for backend in ("ina", "gloo")
    ]


def _measurement(
    testbed: Testbed, model: str, values: int, record: dict[str, Any], backend: str
) -> StepRow:
    times = spread(record["times_s"][backend])
    gloo_s = spread(record["times_s"]["gloo"]).median
    nbytes = record["elems"] * _VALUE_BYTES
    limit_s = None
    if testbed.rate_bit_s is not None:
        wire = (
            limits.ina_wire_bytes(record["elems"], values)
            if backend == "ina"
            else limits.ring_wire_bytes(nbytes, testbed.workers)
        )
        limit_s = limits.link_s(wire, testbed.rate_bit_s)
    return StepRow(
        model=model,
        workers=testbed.workers,
        backend=backend,
        parameters=record["elems"],
        gradient_bytes=nbytes,
        buckets=record["buckets"],
        step_s=times.median,
        step_low_s=times.low,
        step_high_s=times.high,
        samples=times.count,
        compute_s=record["compute_s"],
        items_per_second=testbed.workers * record["items"] / times.median,
        unit=record["unit"],
        cpu_s=spread(record["cpu_s"][backend]).median,
        limit_s=limit_s,
        limit_share=limit_s / times.median if limit_s is not None else None,
        gain=gloo_s / times.median,
        wrong=record["wrong"][backend],
    )


def ratios(rows: Sequence[StepRow], link: str) -> list[Ratio]:
    """Gloo's step over ina's."""
    return [
        Ratio(f"{link} {row.model} n={row.workers} ina/gloo", row.gain)
        for row in rows
        if row.backend == "ina"
    ]


def panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Step time and gain against the number of workers."""
    by_case = {(row["model"], row["workers"]): row for row in rows if row["backend"] == "gloo"}

    def gain(row: dict[str, Any]) -> Point:
        gloo = by_case.get((row["model"], row["workers"]))
        if gloo is None:
            return Point(row["workers"], row["gain"])
        low = gloo["step_low_s"] / row["step_high_s"]
        return Point(row["workers"], row["gain"], low, gloo["step_high_s"] / row["step_low_s"])

    steps = curves(
        rows,
        lambda row: str(row["model"]),
        lambda row: str(row["backend"]),
        lambda row: Point(row["workers"], row["step_s"], row["step_low_s"], row["step_high_s"]),
    )
    gains = curves(
        [row for row in rows if row["backend"] == "ina"],
        lambda row: str(row["model"]),
        lambda row: "",
        gain,
    )
    return [
        Panel("Step", Axis("workers", "workers"), Axis("", "s", log=True), steps),
        gain_panel(gains),
    ]
