"""Every policy on every case, in all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ina.children import worker_processes
from ina.controller.routing.policies import POLICIES, policy
from ina.controller.routing.policy import Policy
from ina.sim.errors import ScenarioError
from ina.sim.routing import shipped
from ina.sim.routing.baselines import Atp, Ecmp, NoAggregation
from ina.sim.routing.case import Setting
from ina.sim.routing.outcome import Outcome, means, run_one
from ina.sim.routing.settings import fat_tree_cases, goat_cases, grid_cases, panama_cases


@dataclass(frozen=True)
class Family:
    """Cases of one kind."""

    what: str
    """For people."""
    cases: Callable[[bool], Iterator[Setting]]
    policies: tuple[str, ...]


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "grid": Family(
            "GRID's testbed: 3 switches joined to one another, 9 servers, one of which makes the"
            " results",
            grid_cases,
            ("none", "atp", "nearest", "grid", "exact", "ina"),
        ),
        "goat": Family(
            "GOAT's settings: 10 programmable switches, 16 sub-models of 15 units, memory 60, some"
            " workers late",
            goat_cases,
            ("none", "atp", "goat", "grid", "ina"),
        ),
        "panama": Family(
            "PANAMA's: a folded Clos of 8 leaves and 4 spines, two to one oversubscribed, beside"
            " other traffic",
            panama_cases,
            ("nearest", "ecmp", "panama", "ina"),
        ),
        "fat-tree": Family(
            "fat-trees of k-port switches, all hosts in jobs",
            fat_tree_cases,
            ("nearest", "ecmp", "panama", "grid", "ina"),
        ),
    }
)
SHIPPED = shipped.FAMILY
WHAT_SHIPPED = (
    "the virtual network with the cores, the P4 program and the controller that ship, measured, and"
    " what the model says of the same"
)
SHIPPED_POLICIES = ("nearest", "single", "goat", "panama", "ina")
BASELINES = ("none", "atp", "ecmp")
_Job = tuple[str, Setting | shipped.Run, str]


def named(name: str, case: Setting) -> Policy:
    """A policy or a baseline, for a case. Raises :class:`RoutingError`."""
    if name == Atp.name:
        return Atp(case)
    if name == NoAggregation.name:
        return NoAggregation()
    return Ecmp() if name == Ecmp.name else policy(name)


def compare(
    families: Sequence[str] = (),
    policies: Sequence[str] = (),
    *,
    quick: bool = False,
    processes: int = 0,
    told: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[Outcome]:
    """Means over seeds. By default all families, each with its policies; else these policies.

    ``told``: of how many runs are done. Raises :class:`ScenarioError`: one does not exist.
    """
    _check("scenario", families, [*FAMILIES, SHIPPED])
    _check("policy", policies, (*POLICIES, *BASELINES))
    chosen = [*families] or [*FAMILIES, SHIPPED]
    jobs: list[_Job] = [
        (family, case, name)
        for family in chosen
        if family != SHIPPED
        for case in FAMILIES[family].cases(quick)
        for name in policies or FAMILIES[family].policies
    ]
    if SHIPPED in chosen:
        jobs += [
            (SHIPPED, run, name)
            for run in shipped.runs(quick)
            for name in policies or SHIPPED_POLICIES
            if name not in BASELINES
        ]
    found: list[Outcome] = []
    with worker_processes(processes or os.cpu_count() or 1) as pool:
        for outcome in pool.map(_run, jobs):
            found.append(outcome)
            told(len(found), len(jobs))
    return means(found)


def _run(job: _Job) -> Outcome:
    family, case, name = job
    if isinstance(case, shipped.Run):
        return shipped.measure(case, name)
    it = named(name, case)
    if name == Atp.name:  # its slots are nobody's own
        case = replace(case, demands=tuple(replace(of, slots=0) for of in case.demands))
    return run_one(family, case, it)


def _check(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ScenarioError(f"{what} {name!r}: there are {', '.join(known)}")
