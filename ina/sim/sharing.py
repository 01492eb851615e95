"""What is wrong with the modes of a scenario's jobs, and with what makes their results."""

from __future__ import annotations

from ina import modes
from ina.controller.config.tables import MAX_SLOT_AGE_US
from ina.p4 import names
from ina.sim.errors import ScenarioError
from ina.sim.placing import placed
from ina.sim.racks import joined, tree_of
from ina.sim.scenario import JobSpec, Scenario, SwitchSpec
from ina.sim.topology import Topology
from ina.trees.errors import JobRequestError
from ina.trees.tree import Node, below_itself, with_aggregator

_KEYS = {
    "shared_slots": "shared_slots",
    "slot_age_us": "slot_age_us",
    "aggregator": "aggregators",
}
"""The controller's of a switch to a scenario's."""
_MOST_SHARED = names.SLOTS_TOTAL - 2


def check_sharing(scenario: Scenario, topology: Topology) -> None:
    """Raises :class:`ScenarioError`: a switch's keys, or a job that the controller would refuse."""
    check_mode("switch.mode", scenario.switch.mode, scenario.switch)
    _check_switch(scenario, topology)
    if scenario.multicast and modes.of(scenario.switch.mode).framing != modes.Mode.framing:
        raise ScenarioError(
            f"multicast: of mode {scenario.switch.mode!r}, whose results are each a connection's"
        )
    jobs = placed(scenario.job, topology)
    for job in jobs:
        check_mode(f"job {job.name!r}: mode", job.mode, scenario.switch)
        _check_refused(job)
        _check_place(topology, job)
    below = [job for job in jobs if modes.of(job.mode).needs_aggregator]
    _check_aggregators(scenario, below)
    for job in below:
        _check_job(scenario, topology, job)
    quotas = scenario.controller.quotas
    for one in scenario.job:
        if quotas and one.tenant not in quotas:
            raise ScenarioError(f"job {one.name!r}: tenant {one.tenant!r}: want one of quotas")


def _check_refused(job: JobSpec) -> None:
    refuses = modes.of(job.mode).refuses
    if "wire" in refuses and any(tensor.wire != "32" for tensor in job.tensors):
        raise ScenarioError(f"job {job.name!r}: mode {job.mode!r}, wire: {refuses['wire']}")
    if "verify" in refuses and job.verify not in ("", "off"):
        raise ScenarioError(f"job {job.name!r}: mode {job.mode!r}, verify: {refuses['verify']}")
    if modes.of(job.mode).is_stream and job.hook:
        raise ScenarioError(
            f"job {job.name!r}: mode {job.mode!r}, hook: its sums are known of other lanes alone"
        )
    for tensor in job.tensors:
        if not 0.0 <= tensor.zeros <= 1.0:
            raise ScenarioError(f"job {job.name!r}: zeros = {tensor.zeros}: want 0 to 1")
        if modes.of(job.mode).is_stream and tensor.density is not None:
            raise ScenarioError(
                f"job {job.name!r}: mode {job.mode!r}, density: lanes find blocks of zeros"
                " themselves, say zeros"
            )


def _check_place(topology: Topology, job: JobSpec) -> None:
    """A switch that sums for no other has all of the job's workers at its own ports."""
    mode = modes.of(job.mode)
    if mode.has_trees:
        return
    behind = list(dict.fromkeys(topology.switch_of(host) for host in job.hosts))
    if len(behind) > 1 or behind[0] not in topology.of_kind("p4"):
        raise ScenarioError(
            f"job {job.name!r}: mode {mode.name!r} sums at one P4 switch that all workers are at,"
            f" and these are at {', '.join(behind)}"
        )


def check_mode(where: str, name: str, switch: SwitchSpec) -> None:
    """Raises :class:`ScenarioError`: there is no such mode, or not on these switches."""
    try:
        mode, program = modes.of(name), modes.of(switch.mode)
    except modes.UnknownModeError as error:
        raise ScenarioError(str(error)) from None
    shares_slots = program.slots_shared(switch.shared_slots) > 0
    if not modes.sums(mode, program.name, shares_slots=shares_slots):
        raise ScenarioError(f"{where} {name!r}: want switch.mode = {name!r}, too")


def _check_switch(scenario: Scenario, topology: Topology) -> None:
    switch = scenario.switch
    limits = {"shared_slots": _MOST_SHARED, "slot_age_us": MAX_SLOT_AGE_US}
    for key, most in limits.items():
        value = getattr(switch, key)
        if not 0 <= value <= most:
            raise ScenarioError(f"switch.{key} = {value}: want 0 to {most}")
    for mode in modes.every():
        for key in filter(_KEYS.__contains__, mode.switch_keys):
            if getattr(switch, _KEYS[key]) and key not in modes.of(switch.mode).switch_keys:
                raise ScenarioError(f"switch.{_KEYS[key]}: only with switch.mode = {mode.name!r}")
    for name in switch.aggregators:
        if name not in topology.of_kind("p4"):
            raise ScenarioError(f"switch.aggregators: no P4 switch is called {name!r}")


def _check_aggregators(scenario: Scenario, below: list[JobSpec]) -> None:
    own = [one.job for one in scenario.aggregator if one.job]
    if own and (len(own) < len(scenario.aggregator) or scenario.switch.aggregators):
        raise ScenarioError(
            "aggregator: ranks run one where the controller has none: say `job` of all, or of none"
        )
    for name in own:
        if name not in [job.name for job in below] or own.count(name) > 1:
            mode = modes.of_aggregators().name
            raise ScenarioError(f"aggregator: job {name!r}: want a job of mode {mode!r}, once")


def _check_job(scenario: Scenario, topology: Topology, job: JobSpec) -> None:
    where = f"job {job.name!r}: mode {job.mode!r}"
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
