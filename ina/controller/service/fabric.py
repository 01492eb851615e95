"""The fabric for people: switches, links, hosts, and each job's tree with what its nodes count."""

from __future__ import annotations

from ina.controller.jobs.coordinator import Coordinator
from ina.controller.service.show import jobs_on, pool_counters
from ina.controller.service.show_tree import counts_on_hosts, read_counters, show_tree
from ina.controller.switches.switch import Switch
from ina.controller.topology.fabric import Fabric
from ina.controller.watch.failure_detector import FailureDetector
from ina.rpc import controller_pb2 as pb2


async def show_fabric(
    coordinator: Coordinator, detector: FailureDetector, fabric: Fabric
) -> pb2.ShowFabricReply:
    """Reads counters of all switches; one that is out of reach is told as that."""
    switches = coordinator.switches.values()
    unreachable = {it.name: "it does not answer" for it in switches if it.unreachable_s() > 0}
    asked = {it: jobs_on(coordinator, it) for it in switches if it.name not in unreachable}
    counters, unread = await read_counters(asked, pool_counters)
    unreachable |= unread
    return pb2.ShowFabricReply(
        switches=[_switch(switch, unreachable.get(switch.name, "")) for switch in switches],
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
        jobs=[
            pb2.FabricJob(
                name=job.name,
                state=job.state.value,
                world_size=job.world_size,
                nodes=show_tree(job, counters, unreachable, counts_on_hosts(job, detector)),
            )
            for job in coordinator.jobs()
        ],
    )


def _switch(switch: Switch, unreachable: str) -> pb2.FabricSwitch:
    return pb2.FabricSwitch(
        name=switch.name,
        target=switch.config.target,
        data_addr=switch.config.data_addr,
        slots_total=switch.capacity.total,
        slots_used=switch.capacity.used(),
        unreachable=unreachable,
    )
