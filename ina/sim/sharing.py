"""What is wrong with a scenario's jobs of mode ``shared``, and with what makes their results."""

from __future__ import annotations

from ina.controller.config.tables import MAX_SLOT_AGE_US
from ina.p4 import names
from ina.p4.catalogue import SHARED
from ina.sim.errors import ScenarioError
from ina.sim.placing import placed
from ina.sim.racks import joined, tree_of
from ina.sim.scenario import JobSpec, Scenario
from ina.sim.topology import Topology
from ina.trees.errors import JobRequestError
from ina.trees.tree import Node, below_itself, with_aggregator

_MOST_SHARED = names.SLOTS_TOTAL - 2


def check_sharing(scenario: Scenario, topology: Topology) -> None:
    """Raises :class:`ScenarioError`: a switch's keys, or a job that the controller would refuse."""
    _check_switch(scenario, topology)
    shared = [job for job in placed(scenario.job, topology) if job.mode == SHARED]
    _check_aggregators(scenario, shared)
    for job in shared:
        _check_job(scenario, topology, job)
    quotas = scenario.controller.quotas
    for one in scenario.job:
        if quotas and one.tenant not in quotas:
            raise ScenarioError(f"job {one.name!r}: tenant {one.tenant!r}: want one of quotas")


def _check_switch(scenario: Scenario, topology: Topology) -> None:
    switch = scenario.switch
    limits = {"shared_slots": _MOST_SHARED, "slot_age_us": MAX_SLOT_AGE_US}
    for key, most in limits.items():
        value = getattr(switch, key)
        if not 0 <= value <= most:
            raise ScenarioError(f"switch.{key} = {value}: want 0 to {most}")
    if switch.mode != SHARED:
        for key in (*limits, "aggregators"):
            if getattr(switch, key):
                raise ScenarioError(f"switch.{key}: only with switch.mode = {SHARED!r}")
    for name in switch.aggregators:
        if name not in topology.of_kind("p4"):
            raise ScenarioError(f"switch.aggregators: no P4 switch is called {name!r}")


def _check_aggregators(scenario: Scenario, shared: list[JobSpec]) -> None:
    own = [one.job for one in scenario.aggregator if one.job]
    if own and (len(own) < len(scenario.aggregator) or scenario.switch.aggregators):
        raise ScenarioError(
            "aggregator: ranks run one where the controller has none: say `job` of all, or of none"
        )
    for name in own:
        if name not in [job.name for job in shared] or own.count(name) > 1:
            raise ScenarioError(f"aggregator: job {name!r}: want a job of mode {SHARED!r}, once")


def _check_job(scenario: Scenario, topology: Topology, job: JobSpec) -> None:
    where = f"job {job.name!r}: mode {SHARED!r}"
    if scenario.switch.mode != SHARED:
        raise ScenarioError(f"{where}: want switch.mode = {SHARED!r}, too")
    fabric = joined(topology)
    tree = tree_of(fabric, topology, job.name, job.hosts)
    root = tree.root
    if root.switch not in scenario.switch.aggregators:
        ends = [it for it in scenario.aggregator if it.job in ("", job.name)]
        behind = [topology.switch_of(it.name) for it in ends]
        if all(fabric.hops(root.switch, it) is None for it in behind):
            raise ScenarioError(f"{where}: switch {root.switch!r} reaches no aggregator")
        root = Node("its aggregator", (), (root.switch,), (1,))
    try:
        below_itself(tree) if root == tree.root else with_aggregator(tree, root, 0)
    except JobRequestError as error:
        raise ScenarioError(f"{where}: {error}") from None
