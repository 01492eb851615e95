"""The fabric for people: switches, links, hosts, and each job's tree with what its nodes count."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ina.controller.errors import SwitchError
from ina.controller.job import Job
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.switches.switch import Switch
from ina.controller.topology.fabric import Fabric
from ina.controller.topology.tree import Node
from ina.p4 import names
from ina.rpc import controller_pb2 as pb2

_COUNTERS = {
    names.JOB_CONTRIBUTIONS: "contributions",
    names.JOB_RESULTS: "results",
    names.JOB_REPLAYS: "replays",
    names.JOB_PASSED_DOWN: "passed_down",
}
"""Fields of a node in the answer, by the program's counter."""

_Counts = Mapping[tuple[str, int], Mapping[str, int]]
"""By switch and job number: packets by field."""


async def show_fabric(coordinator: Coordinator, fabric: Fabric) -> pb2.ShowFabricReply:
    """Reads counters of all switches; one that is out of reach is told as that."""
    jobs = coordinator.jobs()
    counts: dict[tuple[str, int], dict[str, int]] = {}
    unreachable: dict[str, str] = {}

    async def read(switch: Switch) -> None:
        here = [job.number for job in jobs if job.tree is not None and switch.name in job.tree]
        try:
            for number, fields in (await _counters(switch, here)).items():
                counts[switch.name, number] = fields
        except SwitchError as error:
            unreachable[switch.name] = str(error)

    # At once: each that does not answer costs its whole deadline.
    await asyncio.gather(*map(read, coordinator.switches.values()))
    return pb2.ShowFabricReply(
        switches=[
            _switch(switch, unreachable.get(switch.name, ""))
            for switch in coordinator.switches.values()
        ],
        links=[
            pb2.FabricLink(
                switch_a=link.switches[0],
                port_a=str(link.ports[0]),
                switch_b=link.switches[1],
                port_b=str(link.ports[1]),
            )
            for link in fabric.links
        ],
        hosts=[
            pb2.FabricHost(address=str(address), switch=place.switch, port=str(place.port))
            for address, place in fabric.hosts.items()
        ],
        jobs=[_job(job, counts) for job in jobs],
    )


async def _counters(switch: Switch, numbers: list[int]) -> dict[int, dict[str, int]]:
    """By job number. Raises :class:`SwitchError`."""
    found: dict[int, dict[str, int]] = {number: {} for number in numbers}
    if switch.unreachable_s() > 0:
        raise SwitchError("it does not answer")
    if numbers:
        for cell, count in await switch.writer.read_job_counters(numbers):
            if field := _COUNTERS.get(cell.counter):
                found[cell.index][field] = count.packets
    return found


def _switch(switch: Switch, unreachable: str) -> pb2.FabricSwitch:
    memory = switch.capacity.memory
    return pb2.FabricSwitch(
        name=switch.name,
        target=switch.config.target,
        data_addr=switch.config.data_addr,
        slots_total=memory.total,
        slots_used=memory.used(),
        unreachable=unreachable,
    )


def _job(job: Job, counts: _Counts) -> pb2.FabricJob:
    return pb2.FabricJob(
        name=job.name,
        state=job.state.value,
        world_size=job.world_size,
        nodes=[_node(node, counts.get((node.switch, job.number), {})) for node in job.tree or ()],
    )


def _node(node: Node, counts: Mapping[str, int]) -> pb2.FabricNode:
    return pb2.FabricNode(
        switch=node.switch,
        parent=node.parent or "",
        ranks=node.ranks,
        children=node.nodes,
        contributions=counts.get("contributions", 0),
        results=counts.get("results", 0),
        replays=counts.get("replays", 0),
        passed_down=counts.get("passed_down", 0),
    )
