"""Steps of FSDP2 by ina, overlapped and not, and by Gloo: what the workers measured, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ina.bench import limits
from ina.bench.collective_kinds import LinkBytes, SizedCollective, link_bytes
from ina.bench.plot import Axis, Panel, Point, curves, gain_panel
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.testbed import Testbed, own_switch, records

WAYS = {
    "gloo": "all over Gloo",
    "ina": "through the network, a collective at a time",
    "overlap": "ina.torch.overlap: gradients are reduced while parameters are gathered",
}
"""By name: what they are."""
LOSS_SPREAD = 1e-3
"""So far, as a share, losses of float32 may be from Gloo's, whose sums have another order."""
_WORKER = "ina.bench.torch.fsdp"
_START_UP_S = 300.0
_TRAINING_STEP_S = 60.0
"""Of all ways, at most: computed by all ranks on the cores of one machine."""
_VALUE_BYTES = 4  # float32


@dataclass(frozen=True)
class FsdpOrder:
    """What the ranks are asked for."""

    ways: list[str]
    layers: int
    width: int
    heads: int
    steps: int
    """Of each training."""
    repeats: int
    seconds: float
    """Upper bound of the steps that compute nothing."""
    net: str
    """See :class:`ina.bench.collectives.CollectivesOrder`."""


@dataclass(frozen=True)
class Sharded:
    """Parameters that FSDP2 gathers and reduces together."""

    part_elems: int
    """Of each rank's part, filled up as FSDP2 does."""
    gathers: int
    """A step: 2, but of what stays whole between forward and backward."""


@dataclass(frozen=True)
class FsdpRow:
    """One way, and number of workers."""

    workers: int
    way: str
    parameters: int
    parameter_bytes: int
    comm_s: float
    """Of a step that computes nothing; median of the samples, each of the slowest rank."""
    comm_low_s: float
    """First quartile."""
    comm_high_s: float
    samples: int
    step_s: float
    """Of training: forward, backward, optimizer; median, each of the slowest rank."""
    step_low_s: float
    step_high_s: float
    gain: float | None
    """Gloo's comm_s / this one's; None: Gloo was not asked for. So the next three."""
    bound: float | None
    """Gloo's limit_s / this one's."""
    bound_share: float | None
    """gain / bound."""
    step_gain: float | None
    """Gloo's step_s / this one's."""
    limit_s: float | None
    """The least that a step's collectives take on a link; None: it has no rate."""
    limit_share: float | None
    """limit_s / comm_s."""
    sent_bytes: float | None
    """By a rank's link for a step that computes nothing, with headers; mean of the ranks."""
    received_bytes: float | None
    losses: list[float]
    """Of the training's steps, mean of the ranks."""
    off: float | None
    """The farthest of a step's loss from Gloo's, as a share."""
    wrong: int
    """Gathered parameters and reduced gradients of a checked step that are not what they must be,
    all ranks; and losses that are farther than ``LOSS_SPREAD`` from Gloo's."""


def measure(testbed: Testbed, order: FsdpOrder, values: int) -> list[FsdpRow]:
    """A row of each way at one testbed. Raises InaError."""
    (record,) = records(
        testbed,
        _WORKER,
        order,
        count=1,
        timeout_s=_START_UP_S + 4 * order.seconds + order.steps * _TRAINING_STEP_S,
        environ=own_switch(testbed, values=values),
    )
    return rows(testbed, record, values)


def rows(testbed: Testbed, record: Mapping[str, Any], values: int) -> list[FsdpRow]:
    """``record``: rank 0's."""
    groups = [Sharded(**it) for it in record["groups"]]
    limits_s = {
        way: None
        if testbed.rate_bit_s is None
        else limits.link_s(least_bytes(way, groups, testbed.workers, values), testbed.rate_bit_s)
        for way in record["ways"]
    }
    return [_row(testbed.workers, way, record, limits_s) for way in record["ways"]]


def least_bytes(way: str, groups: Sequence[Sharded], workers: int, values: int) -> float:
    """On a link, in the direction that is busy, one collective after the other.

    Overlapped, gradients of a layer travel while the parameters of others do: each of both
    directions then carries all of backward.
    """
    if way == "gloo":  # its reduce_scatter is its all_reduce, as counted
        return sum(
            limits.ring_wire_bytes(it.part_elems * workers * _VALUE_BYTES, workers)
            * (it.gathers / 2 + 1)
            for it in groups
        )
    gathers = [_bytes("all_gather", it, workers, values) for it in groups]
    reduces = [_bytes("reduce_scatter", it, workers, values) for it in groups]
    forward = sum(it.larger for it in gathers)
    again = [one for one, of in zip(gathers, groups, strict=True) if of.gathers > 1]
    if way == "ina":
        return forward + sum(it.larger for it in (*again, *reduces))
    both = (*again, *reduces)
    return forward + max(sum(it.sent for it in both), sum(it.received for it in both))


def _bytes(name: str, group: Sharded, workers: int, values: int) -> LinkBytes:
    # Parts are the same on all ranks: so is what links carry.
    case = SizedCollective(name, group.part_elems, _VALUE_BYTES, workers)
    return link_bytes(case, values, 0, multicast=False)


def _row(
    workers: int, way: str, record: Mapping[str, Any], limits_s: Mapping[str, float | None]
) -> FsdpRow:
    found, gloo = record["ways"][way], record["ways"].get("gloo")
    comm, step = spread(found["comm_s"]), spread(found["step_s"])
    limit_s, gloo_limit_s = limits_s[way], limits_s.get("gloo")
    gain = step_gain = off = bound = None
    wrong = found["wrong"]
    if gloo is not None:
        gain = spread(gloo["comm_s"]).median / comm.median
        step_gain = spread(gloo["step_s"]).median / step.median
        offs = [abs(a / b - 1) for a, b in zip(found["losses"], gloo["losses"], strict=True)]
        off = max(offs)
        wrong += sum(it > LOSS_SPREAD for it in offs)
    if limit_s is not None and gloo_limit_s is not None:
        bound = gloo_limit_s / limit_s
    sent, received = found["moved"] or (None, None)
    return FsdpRow(
        workers=workers,
        way=way,
        parameters=record["parameters"],
        parameter_bytes=record["parameters"] * _VALUE_BYTES,
        comm_s=comm.median,
        comm_low_s=comm.low,
        comm_high_s=comm.high,
        samples=comm.count,
        step_s=step.median,
        step_low_s=step.low,
        step_high_s=step.high,
        gain=gain,
        bound=bound,
        bound_share=None if gain is None or bound is None else gain / bound,
        step_gain=step_gain,
        limit_s=limit_s,
        limit_share=None if limit_s is None else limit_s / comm.median,
        sent_bytes=sent,
        received_bytes=received,
        losses=found["losses"],
        off=off,
        wrong=wrong,
    )


def ratios(rows: Sequence[FsdpRow], link: str) -> list[Ratio]:
    """Gloo's times over the others', and the limit's."""
    found = []
    for row in rows:
        if row.way == "gloo":
            continue
        shares = {"gloo": row.gain, "limit": row.limit_share, "gloo, whole step": row.step_gain}
        name = f"{link} n={row.workers} {row.way}"
        found += [Ratio(f"{name}/{of}", it) for of, it in shares.items() if it is not None]
    return found


def panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Communication and gain by the number of workers."""

    def way(row: dict[str, Any]) -> str:
        return str(row["way"])

    def point(row: dict[str, Any]) -> Point:
        return Point(row["workers"], row["comm_s"], row["comm_low_s"], row["comm_high_s"])

    times = curves(rows, lambda row: "", way, point)
    others = [row for row in rows if row["way"] != "gloo" and row["gain"]]
    gains = curves(others, way, lambda row: "", lambda row: Point(row["workers"], row["gain"]))
    return [
        Panel("Communication", Axis("workers", "workers"), Axis("", "s", log=True), times),
        gain_panel(gains),
    ]
