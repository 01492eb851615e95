"""What is left of jobs when all have ended: there should be nothing."""

from __future__ import annotations

from ina.controller.switches.plan import MARK_JOB
from ina.p4 import names
from ina.sim.claims import claims
from ina.sim.fabric import SimSwitch
from ina.sim.plane import ControlPlane

_TABLES = (names.JOBS, names.MEMBERS, names.RECEIVERS, names.CHILDREN)


def left_at(plane: ControlPlane) -> list[str]:
    """A line for each: on a switch, or at the controller that answers."""
    found = []
    now_us = plane.fabric.network.now_ns // 1000
    for config in plane.config.switches:
        switch = plane.fabric.switches[config.name]
        found += _entries(switch)
        if config.slots_shared:
            found += _claims(switch, config.slots_shared, config.age_us, now_us)
    for name in plane.fabric.topology.of_kind("aggregator", "embedded"):
        found += _entries(plane.fabric.switches[name])
    return found + _slots(plane)


def _entries(switch: SimSwitch) -> list[str]:
    """Of jobs; none without power."""
    found = []
    for entry in switch.entries():
        match = dict(entry.match)
        if entry.table in names.ALL_JOB_TABLES and match.get("job") != MARK_JOB:
            found.append(f"switch {switch.name} has {entry.table} {match}")
    return found


def _claims(switch: SimSwitch, shared: int, age_us: int, now_us: int) -> list[str]:
    """Slots that somebody has claimed, and that are not anybody's after the longest patience."""
    return [
        f"slot {slot} of switch {switch.name} is still that of epoch {epoch}"
        for slot, epoch in claims(switch, shared, now_us=now_us, within_us=2 * age_us)
    ]


def _slots(plane: ControlPlane) -> list[str]:
    """That are taken for a job, by the controller that answers."""
    primary = plane.primary
    term = None if primary is None or primary.supervisor is None else primary.supervisor.term
    if term is None:
        return []
    return [
        f"{capacity.used()} slots of switch {name} are taken"
        for name, capacity in term.coordinator.registry.switches.items()
        if capacity.used()
    ]
