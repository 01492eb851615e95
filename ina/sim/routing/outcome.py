"""What came of a policy on a case, and of a case over its seeds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ina.controller.errors import RoutingError
from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.judge import judge
from ina.controller.routing.policy import Policy, Situation
from ina.sim.routing.case import Setting
from ina.sim.routing.fluid import step_seconds

FLUID_STEPS = 6
_MEANS = ("step", "bound", "job_step", "traffic", "trees", "plan_s")


@dataclass(frozen=True)
class Outcome:
    """Of a policy on a case; of several seeds the means."""

    family: str
    case: str
    policy: str
    step: float
    """Until all jobs have done a step's communication, begun at once, in what a host's cable
    takes for it."""
    bound: float
    """Of any plan, in the same unit."""
    job_step: float
    """Mean over jobs of a step's communication, or of a step of training where jobs compute."""
    traffic: float
    """Bytes times cables between switches, for each byte of a worker's step."""
    trees: float
    """Of a job, in the mean."""
    plan_s: float
    """Of wall time, to plan."""
    limit: str
    """What takes longest."""
    refused: str = ""
    """Why there is no plan."""
    modelled: float = 0.0
    """Where ``step`` was measured in the virtual network: what the model says; else 0."""

    @property
    def over(self) -> float:
        """The bound's multiple that it takes."""
        return self.step / self.bound if self.bound else 1.0


def run_one(family: str, case: Setting, policy: Policy, *, seed: int = 0) -> Outcome:
    """A policy on a case."""
    situation = Situation.of(case.network, case.demands, seed=seed)
    bound = cut_bound(case.network, case.demands).seconds
    began_s = time.perf_counter()
    try:
        plan = policy.plan(situation)
    except RoutingError as error:
        return refused(family, case.name, policy.name, bound, str(error))
    plan_s = time.perf_counter() - began_s
    found = judge(case.network, case.demands, plan)
    steps = step_seconds(found, FLUID_STEPS) if _computes(case) else found.job_s
    bytes_a_step = sum(it.step_bytes * len(it) for it in case.demands)
    return Outcome(
        family,
        case.name,
        policy.name,
        found.step_s,
        bound,
        statistics.fmean(steps.values()),
        float(found.loads.cables.sum()) / bytes_a_step,
        statistics.fmean(len(stripes) for stripes in plan.stripes.values()),
        plan_s,
        found.limit,
    )


def _computes(case: Setting) -> bool:
    return any(it.compute_s for it in case.demands)


def refused(family: str, case: str, policy: str, bound: float, why: str) -> Outcome:
    """Of a policy that has no plan."""
    nan = float("nan")
    return Outcome(family, case, policy, nan, bound, nan, nan, nan, nan, "", why)


def means(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Over cases of one name, by policy, in their order."""
    grouped: dict[tuple[str, str, str], list[Outcome]] = {}
    for it in outcomes:
        grouped.setdefault((it.family, it.case, it.policy), []).append(it)
    return [_mean(group) for group in grouped.values()]


def _mean(group: Sequence[Outcome]) -> Outcome:
    done = [it for it in group if not it.refused]
    if len(done) < len(group) or len(group) == 1:
        return next((it for it in group if it.refused), group[0])
    first = group[0]

    def mean(name: str) -> float:
        return statistics.fmean(getattr(it, name) for it in group)

    return replace(first, **{name: mean(name) for name in _MEANS})  # type: ignore[arg-type]
