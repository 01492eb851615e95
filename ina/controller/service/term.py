"""One period in which this controller is primary: everything that is made from the store anew."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from ina.controller.config import Config
from ina.controller.config.tofino import pipe_of
from ina.controller.config.topology import aggregators_of, fabric_of, island_of
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.events import EventBus
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.outages import StoredOutages
from ina.controller.jobs.placement import Islands, Placement
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.jobs.site import ControllerSite
from ina.controller.memory import SharedSlots, allocator_for
from ina.controller.placing.rerouter import Rerouter
from ina.controller.placing.router import Router
from ina.controller.service.endpoints import DataPath
from ina.controller.service.operators import OperatorService
from ina.controller.service.workers import WorkerService
from ina.controller.slots.memory import Memory
from ina.controller.slots.rebalancer import Rebalancer
from ina.controller.store import Claim, Store
from ina.controller.surroundings import Surroundings
from ina.controller.switches.capacity import Capacity, one_pipe
from ina.controller.switches.link import SwitchLink, data_address
from ina.controller.switches.plan import MARK_JOB
from ina.controller.switches.switch import Switch
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.windows.job_windows import JobWindows
from ina.fabric.graph import Fabric
from ina.fabric.ports import PortRef
from ina.p4.catalogue import capabilities


class Term:
    """The registry, the coordinator and the services, until :meth:`end`."""

    def __init__(
        self,
        config: Config,
        claim: Claim,
        links: Mapping[str, SwitchLink],
        surroundings: Surroundings,
    ) -> None:
        """Takes over the jobs in the store. Raises :class:`StoreError`.

        ``links``: to the configuration's switches and aggregators, by name.
        """
        store = claim.store
        self.claim = claim
        self._clock = clock = surroundings.monotonic_s
        fabric = fabric_of(config)
        record, events = Record(claim), EventBus(unix_clock=surroundings.unix_s)
        # What is said of a fabric is not said of its switches as islands.
        down = store.load_down() if config.is_fabric else ()
        self.outages = outages = StoredOutages(fabric, record, events, down)
        self.switches = _switches(config, fabric, links)
        self.registry = _registry(
            config, fabric, links, self.switches, outages, store, surroundings
        )
        memory, placement = self.registry.room, self.registry.placement
        assert isinstance(memory, Memory)
        self.memory = memory
        router = placement if isinstance(placement, Router) else None
        self.coordinator = Coordinator(
            *(self.registry, self.switches.values(), record),
            events=events,
            clock=clock,
        )
        self.detector = FailureDetector(
            self.coordinator,
            config.jobs.lease_s,
            broken=(lambda _job: "") if router is None else router.broken,
            clock=clock,
            unix_clock=surroundings.unix_s,
        )
        self.windows = JobWindows(self.coordinator, fabric, config, clock=clock)
        self._loops: list[FailureDetector | Rebalancer | JobWindows | Rerouter] = [
            *(self.detector, Rebalancer(memory, self.coordinator), self.windows)
        ]
        if router is not None:
            with_what = (router, outages, self.coordinator, memory.decisions, clock)
            self._loops.append(Rerouter(*with_what, surroundings.compute))
        data = {
            name: DataPath(config, link.config, link.port_number) for name, link in links.items()
        }
        self.controller = WorkerService(
            *(self.coordinator, self.detector, data, self.windows, self.memory), clock=clock
        )
        self.operator = OperatorService(
            self.coordinator, self.detector, self.memory, outages, self.windows
        )
        self._undo = contextlib.AsyncExitStack()

    def restore(self) -> None:
        """Takes over the store's jobs. Raises :class:`StoreError`."""
        self.coordinator.restore(self.claim.store.load(self._clock()))

    async def reconcile(self, name: str, *, fresh: bool) -> None:
        """Makes a switch agree with the store; ``fresh``: its pipeline is new.

        Raises :class:`StoreError`, :class:`SwitchError`.
        """
        await self.coordinator.reconcile(self.switches[name], fresh=fresh)

    def begin(self) -> None:
        """From now on workers' leases count."""
        for loop in self._loops:
            loop.start()
            self._undo.push_async_callback(loop.close)

    def reconfigure(self, config: Config) -> None:
        """From now on, quotas and windows are those of ``config``."""
        self.registry.admission = admission_of(config)
        self.windows.reconfigure(config)
        if isinstance(self.registry.placement, Router):
            self.registry.placement.reconfigure(config)

    async def end(self, why: str) -> None:
        """Ends all calls under way; the switch keeps its entries. ``why`` is told to callers."""
        await self._undo.aclose()
        await self.coordinator.close(why)


def admission_of(config: Config) -> Admission:
    """The rules of a configuration."""
    jobs = config.jobs
    return Admission(config.tenants, preempt=jobs.preempt, unjoined_s=jobs.unjoined_s)


def _registry(
    config: Config,
    fabric: Fabric,
    links: Mapping[str, SwitchLink],
    switches: Mapping[str, Switch],
    outages: StoredOutages,
    store: Store,
    surroundings: Surroundings,
) -> Registry:
    """Of no jobs yet."""
    return Registry(
        {name: switch.capacity for name, switch in switches.items()},
        EpochCounter(store.last_epoch() or 0, surroundings.unix_s),
        # A job has one number, wherever it is.
        range(MARK_JOB + 1, min(capabilities(it.config.runs).jobs for it in links.values())),
        admission=admission_of(config),
        site=_site(config, fabric, links, switches, outages),
        placement=_placement(config, fabric, links, outages),
        room=lambda registry: Memory(config.jobs, registry, clock=surroundings.monotonic_s),
        surroundings=surroundings,
    )


def _switches(config: Config, fabric: Fabric, links: Mapping[str, SwitchLink]) -> dict[str, Switch]:
    """Of which nothing is known yet."""
    addresses = {name: data_address(link.config) for name, link in links.items()}
    return {
        name: Switch(
            link.config,
            link.writer,
            capacity_of(config, link),
            unreachable_s=link.unreachable_s,
            addresses=addresses,
            routers=_routers(fabric, links, name) if config.routing.routed else {},
            is_known=False,
        )
        for name, link in links.items()
    }


def _site(
    config: Config,
    fabric: Fabric,
    links: Mapping[str, SwitchLink],
    switches: Mapping[str, Switch],
    outages: StoredOutages,
) -> ControllerSite:
    capacities = {name: switch.capacity for name, switch in switches.items()}
    aggregators = aggregators_of(config, fabric, lambda it, port: links[it].port_number(port))
    return ControllerSite(
        *(capacities, aggregators, config.jobs.mode),
        aggregators_a_job=config.jobs.aggregators,
        down=lambda: outages.away,
    )


def _placement(
    config: Config, fabric: Fabric, links: Mapping[str, SwitchLink], outages: StoredOutages
) -> Callable[[Registry], Placement]:
    def number(switch: str, port: PortRef) -> int:
        return links[switch].port_number(port)

    if not config.is_fabric:
        islands = [island_of(config, switch) for switch in config.switches]
        return lambda registry: Islands(registry, islands, number)
    return lambda registry: Router(fabric, number, config, registry, lambda: outages.down)


def _routers(fabric: Fabric, links: Mapping[str, SwitchLink], switch: str) -> dict[int, int]:
    """By port of a switch, the MAC address of the switch at the other end."""
    return {
        links[switch].port_number(cable.port_of(switch)): data_address(
            links[other].config
        ).mac_address
        for cable in fabric.links
        if switch in cable.switches
        for other in cable.switches
        if other != switch
    }


def capacity_of(config: Config, link: SwitchLink) -> Capacity:
    """What jobs can have on a switch that nobody has anything of."""
    can = capabilities(link.config.runs)
    is_switch = all(it.name != link.name for it in config.aggregators)
    shared = link.config.slots_shared if is_switch else 0
    return Capacity(
        allocator_for(config.jobs, can.slots - shared),
        link.config.window_limit,
        pipe_of if can.has_pipes else one_pipe,
        can.members,
        link.config.values,
        lambda: link.agrees and link.unreachable is None,
        SharedSlots(can.slots - shared, shared) if shared else None,
        link.config.aggregator,
        link.config.mode,
        is_switch,
        link.config.expands,
    )
