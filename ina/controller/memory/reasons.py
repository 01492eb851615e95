"""Why a policy gives a job so many slots, for people: what it went by, with numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ina.controller.memory.demand import Demand
from ina.units import time_text


def reason(policy: str, job: Demand, slots: int, others: Sequence[Demand]) -> str:
    """``policy priority: priority 2, 1 job above, 3 alike: its floor of 16, 512 are of use to it``.

    ``others``: that the slots of its switch are shared out to, with it.
    """
    words = [it for it in _goes_by(policy, job, others) if it]
    return f"policy {policy}: {', '.join(words)}: {_how_many(job, slots)}"


def _goes_by(policy: str, job: Demand, others: Sequence[Demand]) -> list[str]:
    if policy == "priority":
        above = sum(it.priority > job.priority for it in others)
        alike = sum(it.priority == job.priority for it in others)
        return [f"priority {job.priority}", _jobs(above, "above"), _jobs(alike, "alike")]
    if policy == "deadline":
        if job.deadline_s is None:
            return ["no deadline"]
        due = "over" if job.deadline_s <= 0 else f"in {time_text(job.deadline_s)}"
        return [f"deadline {due}", _left(job, job.useful)]
    if policy == "jct":
        return [_left(job, job.useful), _jobs(len(others), "beside it")]
    return [_jobs(len(others), "beside it") or "alone"]


def _left(job: Demand, slots: int) -> str:
    left_s = job.left_s(slots)
    return f"{time_text(left_s)} to go with {slots}" if 0 < left_s < float("inf") else ""


def _jobs(count: int, how: str) -> str:
    return f"{count} job{'s' * (count != 1)} {how}" if count else ""


def _how_many(job: Demand, slots: int) -> str:
    if slots >= job.useful:
        return "all that it asked for" if job.asked and job.asked <= slots else "all of use to it"
    what = f"its floor of {slots}" if slots <= job.floor else f"{slots}"
    return f"{what}, {job.useful} are of use to it"
