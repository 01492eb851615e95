"""How many slots each job should have, and why: the policies, and what they share. Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import ClassVar, Protocol

from ina.controller.config import JobsConfig
from ina.controller.memory.demand import Demand
from ina.units import time_text

Sizes = Mapping[str, int]
"""Slots by name of the job; 0: none, it waits."""


class Policy(Protocol):
    """Says how to share out the slots of one switch. Neither state, clock nor I/O."""

    name: ClassVar[str]
    """As the configuration has it."""
    resizes: ClassVar[bool]
    """Whether jobs' sizes change while they run."""

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """Slots for each of ``jobs``, ``total`` together at most.

        A job that runs (has slots) gets its floor at least; one that does not may get nothing.
        Sizes that the policy chooses are powers of two, as others cannot be used in full.
        """
        ...

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """Who of those that wait for slots is served first."""
        ...


INCUMBENT = 1.1
"""Slots that a job has count so much more with it than with another: a change is to bring 10 %. As
much again for each change that the job has used up."""


class Shares:
    """Slots given out so far. Floors are given at once: to all that run, then in order."""

    def __init__(self, jobs: Sequence[Demand], total: int) -> None:
        """``jobs``: of those that do not run, first comes who is served first."""
        self.slots = dict.fromkeys((job.name for job in jobs), 0)
        self.free = total
        for job in sorted(jobs, key=lambda job: not job.slots):
            if job.slots or job.floor <= self.free:
                self.slots[job.name] = job.floor
                self.free -= job.floor

    def raise_to(self, job: Demand, slots: int) -> bool:
        """Gives it so many if they are there and it has any; whether it has them now."""
        has = self.slots[job.name]
        if not has:
            return False
        if slots > has:
            if slots - has > self.free:
                return False
            self.slots[job.name] = slots
            self.free -= slots - has
        return True

    def raise_by_gain(self, jobs: Iterable[Demand], value: Callable[[Demand, int], float]) -> None:
        """Gives what is left to whom it brings most, a slot: the largest sum of ``value``.

        Greedy by gain ÷ slots. With ``value`` concave in slots, and any number of them allowed,
        that is exact; powers of two make it a knapsack, where what does not fit goes to the next.
        """
        heap: list[tuple[float, float, int, Demand, int]] = []
        for rank, job in enumerate(jobs):
            if self.slots[job.name]:
                _push(heap, rank, job, self.slots[job.name], value)
        while heap and self.free > 0:
            _, _, rank, job, slots = heapq.heappop(heap)
            if self.raise_to(job, slots):
                _push(heap, rank, job, slots, value)

    def level(self, jobs: Iterable[Demand]) -> None:
        """Doubles whoever has least, until nothing is left or of use: max-min fair."""
        heap = [(self.slots[job.name], job.since_s, rank, job) for rank, job in enumerate(jobs)]
        heap = [it for it in heap if it[0]]
        heapq.heapify(heap)
        while heap and self.free > 0:
            slots, since_s, rank, job = heapq.heappop(heap)
            if slots < job.useful and self.raise_to(job, 2 * slots):
                heapq.heappush(heap, (2 * slots, since_s, rank, job))


def _push(
    heap: list[tuple[float, float, int, Demand, int]],
    rank: int,
    job: Demand,
    has: int,
    value: Callable[[Demand, int], float],
) -> None:
    """Its next size, where there is one that is of use."""
    if has >= job.useful:
        return
    gain = (value(job, 2 * has) - value(job, has)) / has
    if 2 * has <= job.slots:
        gain *= INCUMBENT ** (1.0 + job.changes)
    heapq.heappush(heap, (-gain, job.since_s, rank, job, 2 * has))


def first_come(
    jobs: Iterable[Demand], total: int, wanted: Callable[[Demand], int]
) -> dict[str, int]:
    """What each wants, in this order; those that run keep what they have."""
    given: dict[str, int] = {}
    for job in jobs:
        slots = job.slots or wanted(job)
        given[job.name] = slots if job.slots or slots <= total else 0
        total -= given[job.name]
    return given


class Static:
    """``share`` slots each, first come, first served; whoever finds none waits.

    Guarantee: what a job has does not depend on others. Source: SwitchML's and today's way.
    """

    name: ClassVar[str] = "static"
    resizes: ClassVar[bool] = False

    def __init__(self, share: int) -> None:
        self.share = share

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        return first_come(self.order(jobs), total, lambda _job: self.share)

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: first come, first served."""
        return sorted(waiting, key=lambda job: (not job.slots, job.since_s, job.name))


class Asked:
    """What it asked for, or ``default`` slots, first come, first served; the next one waits.

    Guarantee: a job that runs has what it asked for. Nobody knows better what it needs, if it tells
    the truth: where slots are short, all ask for more than they use.
    """

    name: ClassVar[str] = "asked"
    resizes: ClassVar[bool] = False

    def __init__(self, default: int) -> None:
        self.default = default

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        return first_come(self.order(jobs), total, lambda job: job.asked or self.default)

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: first come, first served."""
        return sorted(waiting, key=lambda job: (not job.slots, job.since_s, job.name))


class Equal:
    """Max-min fair: doubles whoever has least, until nothing is left or of use.

    Guarantee: no job can get more of use without one that has no more than it getting less. Source:
    water-filling, as for rates of links, with powers of two for levels.
    """

    name: ClassVar[str] = "equal"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        shares.level(jobs)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: first come, first served."""
        return sorted(waiting, key=lambda job: (job.since_s, job.name))


class Jct:
    """The largest Σ rate ÷ remaining, as :meth:`Demand.value` has it.

    Slots go where they shorten what is left by the largest share: short jobs are done soon, and
    long ones, which hardly notice, run on what is left. Each has its floor. With the least Σ
    remaining time, long jobs would get them. Source: INAlloc's JCT-driven mode; shortest remaining
    first for what can be divided.
    """

    name: ClassVar[str] = "jct"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        shares.raise_by_gain(jobs, Demand.value)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: who would be done first."""
        return sorted(waiting, key=lambda job: (job.left_s(job.useful), job.since_s, job.name))


MARGIN, SPARE = 1.03, 1.1
"""So much longer a job may take than it seems now, if it is to grow or has none yet, for what it
loses in changes and to decisions that come late; and if it is to shrink. With what it has it may
take as long as there is: what is known of it is never exact, and it shall not go to and fro."""


class Deadline:
    """Earliest deadline first, each with the least that meets it; the rest as ``jct`` has it.

    A job that cannot meet its deadline even with all that is of use to it, or has none, has no
    claim: it is served from the rest. Guarantee: who has the earliest deadline of those that can
    be met, meets it. Source: INAlloc's deadline-driven mode; earliest deadline first.
    """

    name: ClassVar[str] = "deadline"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        for job in jobs:
            shares.raise_to(job, least(job))
        shares.raise_by_gain(jobs, Demand.value)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: earliest deadline first, then those that have none."""
        return sorted(
            waiting,
            key=lambda job: (
                math.inf if job.deadline_s is None else job.deadline_s,
                job.since_s,
                job.name,
            ),
        )


def least(job: Demand) -> int:
    """The fewest slots, a power of two, with which it meets its deadline; its floor: it cannot."""
    if job.deadline_s is None:
        return job.floor
    slots, useful = job.floor, job.useful
    while slots < useful and _margin(job, slots) * job.left_s(slots) > job.deadline_s:
        slots *= 2
    return slots if job.left_s(slots) <= job.deadline_s else job.floor


def _margin(job: Demand, slots: int) -> float:
    if slots == job.slots:
        return 1.0
    return SPARE if slots < job.slots else MARGIN


class Priority:
    """By priority, highest first: all that is of use, but the floors of those below.

    Those of one priority share as ``equal`` has it. Guarantee: a job never has less for the sake
    of one that is less important. Source: ESA, which evicts packet by packet; here lower ones are
    resized down to their floors.
    """

    name: ClassVar[str] = "priority"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        for _, alike in groupby(jobs, key=lambda job: job.priority):
            shares.level(alike)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: by priority, then first come, first served."""
        return sorted(waiting, key=lambda job: (-job.priority, job.since_s, job.name))


RESIZING: dict[str, type[Equal | Jct | Deadline | Priority]] = {
    policy.name: policy for policy in (Equal, Jct, Deadline, Priority)
}
"""Those that change the size of jobs that run."""


def policy_for(config: JobsConfig, share: int) -> Policy:
    """The policy that the configuration names; ``share``: slots of each job under ``static``."""
    if config.policy in RESIZING:
        return RESIZING[config.policy]()
    return Asked(config.slots) if config.gives_what_is_asked else Static(share)


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
