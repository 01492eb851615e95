"""Trainings whose gradients travel in fewer bits, beside those in float32: losses as rows.

A run is one model trained by so many workers, from one seed, in one way for its gradients to
travel. Runs of the same seed begin with the same parameters and see the same batches.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from ina.bench.plot import Axis, Curve, Panel, Point
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.testbed import Testbed, own_switch, records

MODELS = ("digits", "gpt2")
DENSE = "float32"
"""The way that others are compared with."""
WAYS = {
    DENSE: "DDP, a value in 32 bits",
    "gloo": "DDP over Gloo",
    "16": "DDP, wire 16",
    "8": "DDP, wire 8",
    "8-stochastic": "DDP, wire 8, rounded by chance",
    "lowbit8": "the hook: 8 bits, Hadamard, error feedback",
    "lowbit8-nohadamard": "without Hadamard",
    "lowbit8-nofeedback": "without error feedback",
    "lowbit16": "the hook with 16 bits",
    "topk": "the hook that sends 1 % of the blocks, error feedback",
    "topk10": "10 % of the blocks",
    "fsdp2-16": "FSDP2, gradients reduced as bfloat16, wire 16",
    "fsdp2-gloo": "the same over Gloo",
}
"""By name: what they are."""
NEAR = 0.02
"""A loss that is so far from float32's, as a share, may be worth the bytes."""
_WORKER = "ina.bench.torch.training"
_START_UP_S = 900.0
_STEP_S = 2.0
"""Of one worker, at most: an operation that hangs ends much earlier."""
_LEASE_S = 120
"""A worker that other programs keep from running for so long is alive."""
_BAND = "all seeds"
_PIECES = 50
_END = 0.1
"""Share of a training whose mean is its loss at the end."""
Verdict = Literal["dense", "seeds", "near", "worse", "better"]


@dataclass(frozen=True)
class TrainingRun:
    """One training: what tells it from others."""

    model: str
    workers: int
    link: str
    steps: int
    way: str
    seed: int


@dataclass(frozen=True)
class TrainingOrder:
    """What the ranks are asked for: these runs, in this order, all of one testbed."""

    link: str
    steps: int
    runs: list[tuple[str, str, int]]
    """Model, way and seed of each: an argument of a command line has at most 128 KiB."""


@dataclass(frozen=True)
class TrainingRecord:
    """What came of a run."""

    run: TrainingRun
    losses: list[float]
    """On the batches of all ranks: means of equal pieces of the training, see :func:`pieces`."""
    test_loss: float
    """Of what was held out, after the last step."""
    test_accuracy: float | None
    """Share of what was held out; None: the model classifies nothing."""
    step_s: float
    """Median, rank 0's."""
    sent_bytes: float | None
    """In a step, by a worker: what its link counted, or on one host ina's packets; None: Gloo's
    on one host, which share the loopback's counter with everything else."""
    wrong: int
    """Ranks whose parameters differ from rank 0's at the end."""


@dataclass(frozen=True)
class TrainingRow:
    """One model, number of workers and way: all seeds."""

    model: str
    workers: int
    way: str
    seeds: int
    loss: float
    """Mean of the last tenth of the steps, mean over seeds."""
    test_loss: float
    """Mean over seeds, as all that follows but ``step_s``."""
    test_spread: float
    """Largest less smallest, over the seeds."""
    test_accuracy: float | None
    off: float | None
    """How much larger ``test_loss`` is than float32's of the same seeds, as a share; None: there
    are none."""
    off_low: float | None
    """The smallest of a seed."""
    off_high: float | None
    verdict: Verdict | None
    """``seeds``: no farther from float32's mean than its seeds from each other, of which there are
    several; ``near``: at most ``NEAR`` off; ``worse`` or ``better``: more."""
    step_s: float
    """Median over the seeds."""
    sent_bytes: float | None
    curve: list[Point]
    """Loss by step: of each piece its last step, the mean over seeds, the least and the largest."""
    wrong: int


def pieces(steps: int) -> list[slice]:
    """Equal pieces of so many steps, or nearly: at most 50."""
    count = min(_PIECES, steps)
    ends = [round(steps * number / count) for number in range(count + 1)]
    return [slice(begin, end) for begin, end in itertools.pairwise(ends)]


def measure(
    testbed: Testbed,
    runs: Sequence[TrainingRun],
    values: int,
    on_record: Callable[[TrainingRecord], None],
) -> None:
    """Runs of one testbed and as many steps, in one start of its workers; ``on_record`` gets each
    as it ends.

    ``values``: a packet. Raises InaError.
    """
    records(
        testbed,
        _WORKER,
        TrainingOrder(testbed.link, runs[0].steps, [(it.model, it.way, it.seed) for it in runs]),
        count=len(runs),
        timeout_s=_START_UP_S + _STEP_S * sum(run.steps * run.workers for run in runs),
        environ=own_switch(testbed, values=values, lease_s=_LEASE_S),
        on_record=lambda found: on_record(msgspec.convert(found, TrainingRecord)),
    )


def summary(records: Iterable[TrainingRecord]) -> list[TrainingRow]:
    """A row for each model, number of workers and way, in the order in which they come first."""
    found: dict[tuple[str, int, str], list[TrainingRecord]] = {}
    for record in records:
        key = (record.run.model, record.run.workers, record.run.way)
        found.setdefault(key, []).append(record)
    return [
        _row(of, found.get((model, workers, DENSE), []))
        for (model, workers, _), of in found.items()
    ]


def _row(of: Sequence[TrainingRecord], dense: Sequence[TrainingRecord]) -> TrainingRow:
    run = of[0].run
    tests = [it.test_loss for it in of]
    by_seed = {it.run.seed: it.test_loss for it in dense}
    offs = [
        it.test_loss / by_seed[it.run.seed] - 1
        for it in of
        if run.way != DENSE and it.run.seed in by_seed
    ]
    accuracies = [it.test_accuracy for it in of if it.test_accuracy is not None]
    sent = [it.sent_bytes for it in of if it.sent_bytes is not None]
    return TrainingRow(
        model=run.model,
        workers=run.workers,
        way=run.way,
        seeds=len(of),
        loss=statistics.fmean(_at_the_end(it) for it in of),
        test_loss=statistics.fmean(tests),
        test_spread=max(tests) - min(tests),
        test_accuracy=statistics.fmean(accuracies) if accuracies else None,
        off=statistics.fmean(offs) if offs else None,
        off_low=min(offs, default=None),
        off_high=max(offs, default=None),
        verdict=verdict(of, dense),
        step_s=spread([it.step_s for it in of]).median,
        sent_bytes=statistics.fmean(sent) if sent else None,
        curve=_curve(of),
        wrong=sum(it.wrong for it in of),
    )


def _at_the_end(record: TrainingRecord) -> float:
    return statistics.fmean(record.losses[-max(1, round(_END * len(record.losses))) :])


def verdict(of: Sequence[TrainingRecord], dense: Sequence[TrainingRecord]) -> Verdict | None:
    """Of the seeds that both have; None: they have none."""
    if of[0].run.way == DENSE:
        return "dense"
    ours = {it.run.seed: it.test_loss for it in of}
    theirs = {it.run.seed: it.test_loss for it in dense}
    both = ours.keys() & theirs.keys()
    if not both:
        return None
    mean, wanted = (statistics.fmean(found[seed] for seed in both) for found in (ours, theirs))
    spread_of_seeds = max(theirs.values()) - min(theirs.values())
    if len(theirs) > 1 and abs(mean - wanted) <= spread_of_seeds:
        return "seeds"
    if abs(mean - wanted) <= NEAR * wanted:
        return "near"
    return "worse" if mean > wanted else "better"


def _curve(of: Sequence[TrainingRecord]) -> list[Point]:
    places = [piece.stop for piece in pieces(of[0].run.steps)]
    found = []
    for place, losses in zip(places, zip(*(it.losses for it in of), strict=True), strict=True):
        shown = (round(it, 4) for it in (statistics.fmean(losses), min(losses), max(losses)))
        found.append(Point(place, *shown))
    return found


def ratios(rows: Sequence[TrainingRow]) -> list[Ratio]:
    """float32's loss over each other way's."""
    return [
        Ratio(f"{row.model} n={row.workers} float32/{row.way}", 1 / (1 + row.off))
        for row in rows
        if row.off is not None
    ]


def panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Of each model and number of workers: loss by step, and what it is of float32's."""
    found = []
    for model, workers in dict.fromkeys((row["model"], row["workers"]) for row in rows):
        of = {
            row["way"]: [Point(*point) for point in row["curve"]]
            for row in rows
            if (row["model"], row["workers"]) == (model, workers)
        }
        title, steps = f"{model}, {workers} workers", Axis("step", "steps")
        curves = [Curve(way, "", points) for way, points in of.items()]
        found.append(Panel(title, steps, Axis("loss", "loss", log=True), curves, band=_BAND))
        if DENSE in of and len(of) > 1:
            relative = [Curve(way, "", _over(points, of[DENSE])) for way, points in of.items()]
            axis = Axis("loss / float32's", "loss", from_zero=False)
            found.append(Panel(title, steps, axis, relative, (1.0, DENSE), _BAND))
    return found


def _over(points: Sequence[Point], dense: Sequence[Point]) -> list[Point]:
    """Means over means."""
    return [Point(one.x, one.y / of.y) for one, of in zip(points, dense, strict=True)]
