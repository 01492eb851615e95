"""A controller's only switch, for tests that have one."""

from __future__ import annotations

from typing import Any, cast

from ina.controller.config import SwitchConfig
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.registry import Registry
from ina.controller.memory import MemoryPolicy
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.plan import JobPlan
from ina.controller.switches.switch import Switch
from ina.controller.switches.writer import JobWriter, SwitchWriter

NAME = SwitchConfig().name


def alone(memory: MemoryPolicy, **more: Any) -> dict[str, Capacity]:
    """The capacities of a controller with one switch, for its registry."""
    return {NAME: Capacity(memory, **more)}


def switch_of(registry: Registry, writer: object) -> Switch:
    """The switch whose capacity the registry has."""
    return Switch(SwitchConfig(), cast(JobWriter, writer), registry.switches[NAME])


def only(coordinator: Coordinator) -> Switch:
    (switch,) = coordinator.switches.values()
    return switch


def writer_of(coordinator: Coordinator) -> SwitchWriter:
    writer = only(coordinator).writer
    assert isinstance(writer, SwitchWriter)
    return writer


def plan_of(coordinator: Coordinator, job: str) -> JobPlan:
    """What the job has on the switch."""
    return only(coordinator).plan(coordinator.registry.get(job))
