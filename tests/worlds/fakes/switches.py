"""A controller's only switch, for tests that have one."""

from __future__ import annotations

from typing import Any, cast

from ina.controller.config import SwitchConfig
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.registry import Registry
from ina.controller.memory import Allocator
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.plan import JobPlan, plan_job
from ina.controller.switches.switch import Switch
from ina.controller.switches.writer import JobWriter, SwitchWriter
from ina.rpc import controller_pb2 as pb2
from ina.trees.forest import Forest, forest_of
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange
from ina.trees.tree import single

NAME = SwitchConfig().name


def alone(memory: Allocator, **more: Any) -> dict[str, Capacity]:
    """The capacities of a controller with one switch, for its registry."""
    return {NAME: Capacity(memory, **more)}


def job_at(
    name: str, number: int, world_size: int, memory: SlotRange, created_s: float, **more: Any
) -> Job:
    """A job that this switch alone sums."""
    forest = forest_of(single(NAME, world_size))
    placed = placed_over(forest, {NAME: memory}, number, more.get("epoch", 0))
    return Job(JobSpec(name, world_size), number, created_s, placed, **more)


def placed_over(
    forest: Forest, memory: dict[str, SlotRange], number: int, epoch: int, **more: Any
) -> Mapping:
    """A mapping whose trees have this number and those after it."""
    numbers = tuple(range(number, number + len(forest)))
    return Mapping(epoch, numbers, forest, memory, more.pop("window", 0), **more)


def plan_here(job: Job) -> JobPlan:
    """What a job needs on it."""
    return plan_job(job, NAME)


def memory_of(job: Job) -> SlotRange:
    """A job's slots, where one switch sums it."""
    (memory,) = job.memory.values()
    return memory


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


def of_jobs(shown: pb2.ShowSwitchReply) -> list[pb2.TableEntry]:
    """Its entries, but for the address of its own, which stays."""
    return [entry for entry in shown.entries if entry.table != "own_addresses"]
