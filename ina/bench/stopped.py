"""What a job that claims slots and stops costs another: sums of the neighbour around the stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ina.bench.report import Ratio
from ina.bench.shared_star import START_UP_S, StarShape, shared_star
from ina.bench.spread import spread
from ina.bench.stopped_worker import WHO, StoppedOrder
from ina.bench.testbed import records
from ina.errors import InaError

_WORKER = "ina.bench.stopped_worker"
_CALM_S = 0.5
_LEAST_STOP_S = 0.4
_AGES = 3
"""So many times its slots' age a job is stopped, so that there is a time after it."""
MAX_AGE_US = 1_000_000
"""The stop has to be shorter than a worker's lease."""


@dataclass(frozen=True)
class StoppedCase:
    """What is the same at all ages."""

    workers: int
    """Of each job."""
    elems: int
    slots: int
    trials: int


@dataclass(frozen=True)
class StoppedRow:
    """One age of slots, and how much of the job was stopped. Medians of the trials."""

    slot_age_us: int
    who: str
    """``one`` worker of the job, or ``all``."""
    before_s: float
    """The neighbour's sums before the stop; median of a trial, as the next two."""
    held_s: float | None
    """Those that began within the age after it. None: none did."""
    later_s: float
    """Those that began after that, until the job went on."""
    longest_s: float
    """Of all while the job was stopped."""
    cost_s: float
    """How much longer those of ``held_s`` took than as many of ``before_s``; 0: they did not."""
    taken_packets: int
    """Of the neighbour, that found a slot taken after the stop; they went up alone. Most of all
    trials, as what is promised is a bound."""
    taken_until_s: float
    """When the last one did, after the stop, to about 10 ms; the latest of all trials."""
    trials: int
    wrong: int


def measure(
    plan: StarShape,
    case: StoppedCase,
    ages_us: Sequence[int],
    say: Callable[[str], None],
    on_trial: Callable[[str], None],
) -> list[StoppedRow]:
    """A star for each age. Raises InaError: a rank failed; the deadline passed."""
    found = []
    for age_us in ages_us:
        stop_s = max(_LEAST_STOP_S, _AGES * age_us / 1e6)
        count = case.trials * len(WHO)

        def on_row(one: dict[str, Any], age_us: int = age_us) -> None:
            on_trial(f"slots of {age_us / 1000:g} ms, {one['who']} stopped")

        with shared_star(replace(plan, slot_age_us=age_us), say) as star:
            trials = records(
                star,
                _WORKER,
                StoppedOrder(case.elems, case.slots, case.trials, _CALM_S, stop_s),
                count=count,
                timeout_s=START_UP_S + count * (10 * (_CALM_S + stop_s) + 10),
                on_record=on_row,
            )
        for who in WHO:
            looks = [_look(it, age_us, stop_s) for it in trials if it["who"] == who]
            found.append(_measurement(age_us, who, looks))
    return found


@dataclass(frozen=True)
class StoppedTrial:
    """A trial."""

    before_s: float
    held_s: float | None
    later_s: float
    longest_s: float
    cost_s: float
    taken: int
    taken_until_s: float
    wrong: int


def _look(trial: dict[str, Any], age_us: int, stop_s: float) -> StoppedTrial:
    age_s = age_us / 1e6
    sums = trial["sums"]
    before = [took_s for began_s, took_s in sums if -_CALM_S / 2 <= began_s < 0]
    held = [took_s for began_s, took_s in sums if 0 <= began_s < age_s]
    later = [took_s for began_s, took_s in sums if age_s <= began_s < stop_s]
    if not before or not later:
        raise InaError("bench stopped: sums take longer than the stop: a smaller --size")
    before_s = _median(before)
    taken, until_s = _taken([it for it in trial["collisions"] if it[0] < stop_s])
    return StoppedTrial(
        before_s=before_s,
        held_s=_median(held) if held else None,
        later_s=_median(later),
        longest_s=max(held + later),
        cost_s=max(0.0, sum(held) - len(held) * before_s),
        taken=taken,
        taken_until_s=until_s,
        wrong=trial["wrong"],
    )


def _taken(seen: Sequence[tuple[float, int]]) -> tuple[int, float]:
    """Packets that found a slot taken after the stop, and when it had become known of the last."""
    before = max((count for asked_s, count in seen if asked_s < 0), default=0)
    last = max((count for _, count in seen), default=0)
    until_s = min((asked_s for asked_s, count in seen if count == last), default=0.0)
    return last - before, max(0.0, until_s)


def _measurement(age_us: int, who: str, looks: Sequence[StoppedTrial]) -> StoppedRow:
    held = [it.held_s for it in looks if it.held_s is not None]
    return StoppedRow(
        slot_age_us=age_us,
        who=who,
        before_s=_median([it.before_s for it in looks]),
        held_s=_median(held) if held else None,
        later_s=_median([it.later_s for it in looks]),
        longest_s=_median([it.longest_s for it in looks]),
        cost_s=_median([it.cost_s for it in looks]),
        taken_packets=max(it.taken for it in looks),
        taken_until_s=max(it.taken_until_s for it in looks),
        trials=len(looks),
        wrong=sum(it.wrong for it in looks),
    )


def _median(numbers: Sequence[float]) -> float:
    return spread(numbers).median


def ratios(rows: Sequence[StoppedRow]) -> list[Ratio]:
    """How fast the neighbour's sums are while slots are held, against before."""
    return [
        Ratio(f"slots of {row.slot_age_us} us, {row.who} before/held", row.before_s / row.held_s)
        for row in rows
        if row.held_s is not None
    ]
