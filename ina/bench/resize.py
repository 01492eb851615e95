"""What a change of a running job's slots costs it: goodput, in round trips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ina.bench.resize_worker import KINDS, POOL, SETTLE_S, ResizeCase
from ina.bench.shared_star import START_UP_S, StarShape, shared_star
from ina.bench.spread import spread
from ina.bench.testbed import records
from ina.errors import InaError
from ina.p4 import names

_WORKER = "ina.bench.resize_worker"
_TRIAL_S = 60.0
_WARM_UP_S = 0.1


@dataclass(frozen=True)
class ResizeRow:
    """One kind of change, at one round trip."""

    round_trip_us: int
    """That was asked for."""
    kind: str
    in_place: bool
    round_trip_s: float
    """Of a lone packet; median of all trials of this round trip."""
    lost_s: float
    """Time until as much was summed as without the change, less that; median of the trials. Of
    kind ``none``, whose slots do not change: what the machine itself did in such a time."""
    lost_low_s: float
    lost_high_s: float
    lost_round_trips: float
    took_s: float
    """From the request to the end of the change; median."""
    sum_s: float
    """From one sum to the next, without a change; median."""
    trials: int
    wrong: int


def plan(workers: int, link: str, rate_bit_s: float | None, values: int, slots: int) -> StarShape:
    """A star whose jobs of mode ``pool`` have ``POOL`` times ``slots`` together."""
    return StarShape(
        workers=workers,
        link=link,
        rate_bit_s=rate_bit_s,
        aggregator_bit_s=rate_bit_s,
        values=values,
        slots=names.SLOTS_TOTAL - POOL * slots,
        round_trip_us=0,
    )


def measure(
    star_plan: StarShape,
    case: ResizeCase,
    round_trips_us: Sequence[int],
    say: Callable[[str], None],
    on_trial: Callable[[str], None],
) -> list[ResizeRow]:
    """A star for each round trip. Raises InaError: a rank failed; the deadline passed."""
    found = []
    count = case.trials * len(KINDS)
    for round_trip_us in round_trips_us:

        def on_trial_row(one: dict[str, Any], round_trip_us: int = round_trip_us) -> None:
            on_trial(f"{round_trip_us} us, {one['kind']}: {1e3 * look(one).lost_s:.2f} ms")

        with shared_star(replace(star_plan, round_trip_us=round_trip_us), say) as star:
            trials = records(
                star,
                _WORKER,
                case,
                count=count,
                timeout_s=START_UP_S + count * _TRIAL_S,
                on_record=on_trial_row,
            )
        found += [_measurement(round_trip_us, kind, trials) for kind in KINDS]
    return found


@dataclass(frozen=True)
class ResizeTrial:
    """A trial."""

    lost_s: float
    took_s: float
    sum_s: float


def look(trial: dict[str, Any]) -> ResizeTrial:
    """From before the change until a while after it, and how long as many sums take otherwise."""
    done_s, asked_s = trial["done_s"], trial["asked_s"]
    settled_s = trial["changed_s"] + SETTLE_S
    before = [it for it in done_s if done_s[0] + _WARM_UP_S <= it < asked_s]
    meanwhile = [it for it in done_s if asked_s <= it < settled_s]
    after = [it for it in done_s if settled_s <= it]
    if min(map(len, (before, meanwhile, after))) < 2:
        raise InaError("bench resize: sums take too long to see a change: a smaller --size")
    calm_s = before[-1] - before[0] + after[-1] - after[0]
    sum_s = calm_s / (len(before) + len(after) - 2)
    # From the last sum before it to the first one when all has settled.
    passed_s = after[0] - before[-1]
    return ResizeTrial(
        lost_s=passed_s - (len(meanwhile) + 1) * sum_s,
        took_s=trial["changed_s"] - asked_s,
        sum_s=sum_s,
    )


def _measurement(round_trip_us: int, kind: str, trials: Sequence[dict[str, Any]]) -> ResizeRow:
    mine = [it for it in trials if it["kind"] == kind]
    if len({it["in_place"] for it in mine}) > 1 or mine[0]["in_place"] != (kind == "in place"):
        raise InaError(f"bench resize: {kind} was{' ' if mine[0]['in_place'] else ' not '}in place")
    looks = [look(it) for it in mine]
    lost = spread([it.lost_s for it in looks])
    round_trip_s = spread([it["round_trip_s"] for it in trials]).median
    return ResizeRow(
        round_trip_us=round_trip_us,
        kind=kind,
        in_place=mine[0]["in_place"],
        round_trip_s=round_trip_s,
        lost_s=lost.median,
        lost_low_s=lost.low,
        lost_high_s=lost.high,
        lost_round_trips=lost.median / round_trip_s,
        took_s=spread([it.took_s for it in looks]).median,
        sum_s=spread([it.sum_s for it in looks]).median,
        trials=len(mine),
        wrong=sum(it["wrong"] for it in mine),
    )
