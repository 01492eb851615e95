"""Memory policies on the same traces, in all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed

from ina.children import worker_processes
from ina.controller.config import JobsConfig
from ina.p4 import names
from ina.sim.errors import ScenarioError
from ina.sim.memory.atp import share
from ina.sim.memory.outcome import Outcome, of_seeds, outcome
from ina.sim.memory.run import run_trace
from ina.sim.memory.trace import draw_trace

SLOTS = names.SLOTS_TOTAL
ATP = "ATP-like"
POLICIES = ("static", ATP, "equal", "jct", "deadline")
"""``asked`` is ``static`` where nobody asks, and the jobs of a trace are equally important."""
RUN_S = 3600.0
"""Of wall time: a policy and a seed that take longer are given up."""


def compare(
    policies: Sequence[str],
    seeds: Sequence[int],
    *,
    jobs: int,
    offered: float,
    aggregator: bool,
    processes: int = 0,
    told: Callable[[Outcome], None] = lambda _outcome: None,
) -> list[Outcome]:
    """The mean over the seeds, by policy. ``told`` hears of each policy and seed that is done.

    Raises :class:`ScenarioError`: a policy that does not exist, a trace that cannot be, or that has
    no end: where jobs stand still while they wait for slots, a few may be all that a switch bears.
    """
    unknown = [name for name in policies if name not in POLICIES]
    if unknown:
        raise ScenarioError(f"policy {unknown[0]!r}: there are {', '.join(POLICIES)}")
    if not seeds or not policies:
        raise ScenarioError("nothing to compare: want a policy and a seed at least")
    draw_trace(seeds[0], jobs, offered)  # raises here what it raises
    found: dict[str, dict[int, Outcome]] = {policy: {} for policy in policies}
    with worker_processes(processes or os.cpu_count() or 1) as pool:
        runs = {
            pool.submit(run_one, policy, seed, jobs, offered, aggregator): (policy, seed)
            for policy in policies
            for seed in seeds
        }
        for run in as_completed(runs, timeout=RUN_S * len(runs)):
            policy, seed = runs[run]
            found[policy][seed] = run.result()
            told(run.result())
    return [of_seeds([of[seed] for seed in seeds]) for of in found.values()]


def run_one(policy: str, seed: int, jobs: int, offered: float, aggregator: bool) -> Outcome:
    """One policy on one trace."""
    trace = draw_trace(seed, jobs, offered)
    if policy == ATP:
        return outcome(ATP, share(trace, SLOTS // 2))
    config = JobsConfig(policy=policy)  # type: ignore[arg-type]
    return run_trace(trace, config, slots=SLOTS, aggregator=aggregator)
