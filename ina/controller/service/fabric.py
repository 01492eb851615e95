"""The fabric for people: switches, links, hosts, and each job's tree with what its nodes count."""

from __future__ import annotations

from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.outages import StoredOutages
from ina.controller.placing.router import Router
from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.judge import Judgement
from ina.controller.service.show import jobs_on, pool_counters
from ina.controller.service.show_tree import counts_on_hosts, read_counters, show_tree
from ina.controller.switches.switch import Switch
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.windows.job_windows import JobWindows
from ina.controller.windows.uses import UsedLink as Hop
from ina.fabric.graph import Link
from ina.rpc import controller_pb2 as pb2


async def show_fabric(
    coordinator: Coordinator,
    detector: FailureDetector,
    outages: StoredOutages,
    windows: JobWindows,
) -> pb2.ShowFabricReply:
    """Reads counters of all switches; one that is out of reach is told as that."""
    fabric, down = outages.fabric, outages.down
    load = _Load(coordinator)
    bits_per_s = windows.link_bits_per_s()
    switches = coordinator.switches.values()
    unreachable = {it.name: "it does not answer" for it in switches if it.unreachable_s() > 0}
    asked = {it: jobs_on(coordinator, it) for it in switches if it.name not in unreachable}
    counters, unread = await read_counters(asked, pool_counters)
    unreachable |= unread
    return pb2.ShowFabricReply(
        switches=[
            _switch(switch, unreachable.get(switch.name, ""), is_down=switch.name in down.switches)
            for switch in switches
        ],
        links=[
            pb2.FabricLink(
                switch_a=link.switches[0],
                port_a=str(link.ports[0]),
                switch_b=link.switches[1],
                port_b=str(link.ports[1]),
                rate_gbit=link.rate_bits_per_s / 1e9,
                busy_s=load.busy_s(link),
                down=frozenset(link.switches) in down.links,
                bits_per_s=bits_per_s.get(Hop(*link.switches), 0.0),
                back_bits_per_s=bits_per_s.get(Hop(*reversed(link.switches)), 0.0),
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
                has_shapes=job.forest is not None and not job.lacks_shapes,
                lacks_shapes=job.lacks_shapes,
            )
            for job in coordinator.jobs()
        ],
        load=load.shown(),
    )


class _Load:
    """What the trees of all jobs load, as far as their steps are known."""

    def __init__(self, coordinator: Coordinator) -> None:
        router = coordinator.registry.placement
        self._found: Judgement | None = None
        if isinstance(router, Router):
            view = router.view(router.down)
            by_job = view.by_job()
            demands = tuple(view.demands[name] for name in by_job)
            if by_job:
                self._found = Judgement(view.network, demands, by_job)

    def busy_s(self, link: Link) -> float:
        """Of both cables where there are two: the one that is used."""
        if self._found is None:
            return 0.0
        network = self._found.network
        ends = (network.place(link.switches[0]), network.place(link.switches[1]))
        cable = network.cable_between.get(ends)
        return 0.0 if cable is None else float(self._found.loads.seconds(network)[0][cable])

    def shown(self) -> pb2.FabricLoad | None:
        """None: there is none."""
        if self._found is None:
            return None
        bound = cut_bound(self._found.network, self._found.demands)
        return pb2.FabricLoad(
            step_s=self._found.step_s,
            limit=self._found.limit,
            bound_s=bound.seconds,
            bound=bound.what,
        )


def _switch(switch: Switch, unreachable: str, *, is_down: bool) -> pb2.FabricSwitch:
    return pb2.FabricSwitch(
        name=switch.name,
        target=switch.config.target,
        data_addr=switch.config.data_addr,
        slots_total=switch.capacity.total,
        slots_used=switch.capacity.used(),
        unreachable=unreachable,
        down=is_down,
    )
