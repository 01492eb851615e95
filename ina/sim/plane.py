"""The control plane of a virtual network: controllers, the switches' agents, ranks, and the ways
between them.

::

    with VirtualFabric(laid(star(4)), seed=1) as fabric, VirtualLoop(fabric.network) as loop:
        with ControlPlane(loop, fabric, seed=1) as plane:
            loop.run_until_complete(scenario(plane))

where ``scenario`` is a coroutine that starts ``plane.controllers``, makes ranks by
:meth:`ControlPlane.rank`, lets them join, reduce and leave, and kills what it likes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ina.controller import faults
from ina.controller.config import Config, HostConfig, JobsConfig, StoreConfig, SwitchConfig
from ina.controller.config.fabric import AggregatorConfig, LinkConfig
from ina.controller.config.reading import implied_by
from ina.controller.job import Job
from ina.controller.store.rows import get_jobs, put_epoch
from ina.controller.store.sqlite import SqliteDatabase
from ina.host.options import WorkerOptions
from ina.protocol.peer import Peer
from ina.sim.agent import SwitchAgent
from ina.sim.controller import SimController, observe
from ina.sim.errors import ScenarioError
from ina.sim.fabric import SimSwitch, VirtualFabric
from ina.sim.loop import VirtualLoop
from ina.sim.messages import USUAL, ControlLog, Path, Travel
from ina.sim.own_aggregator import OwnAggregator
from ina.sim.process import Process
from ina.sim.racks import are_islands, host_rate
from ina.sim.rank import Rank
from ina.sim.rpc import Connection, Server
from ina.sim.seat import OPTIONS, Seat
from ina.sim.topology import Topology
from ina.sim.wire import SimWire

FIRST_UDP_PORT = 4000
_JOBS = JobsConfig(lease_s=2.0)
_STORE = "virtual"  # in memory, and all its controllers have it


class ControlPlane:
    """A context manager: it is told of fault points meanwhile, so one at a time in a program.

    Fault points of several controllers are told apart, each with its own.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        fabric: VirtualFabric,
        *,
        seed: int,
        controllers: int = 1,
        config: Config | None = None,
        travel: Travel = USUAL,
        last_epoch: int = 0,
        on_program: Callable[[SimSwitch], None] = lambda switch: None,
        on_insert: Callable[[SimSwitch], None] = lambda switch: None,
    ) -> None:
        """Args:
        loop: in which all of it runs.
        fabric: built; its P4 switches lose what they have, and wait for their program.
        seed: what happens by chance follows from it and the names of what it happens to.
        controllers: how many share the store; the first has the highest election id.
        config: of all; :func:`config_of` makes one.
        travel: how messages travel on each path, until told otherwise.
        last_epoch: that was issued before, of other jobs; 0: none was.
        on_program: called when a switch has got its program, to write what is nobody's job.
        on_insert: called after a controller has inserted entries at a switch.
        """
        self.loop = loop
        self.fabric = fabric
        self.log = ControlLog(loop)
        self.config = config or config_of(fabric)
        self.paths: dict[str, Path] = {}
        """By ``FROM-TO``: ``c1-s1`` from a controller to a switch, ``h1-c1`` from a host."""
        self._seed = seed
        self._travel = travel
        self.database = SqliteDatabase(None)
        """The store of all controllers; it outlives their processes."""
        if last_epoch:
            self.database.create()
            with self.database.transaction() as db:
                put_epoch(db, last_epoch)
        self._udp_ports: Counter[str] = Counter()
        self._incarnations: Counter[str] = Counter()
        self.agents = {
            name: SwitchAgent(switch, on_program=on_program, on_insert=on_insert)
            for name, switch in fabric.switches.items()
            if fabric.topology.switches[name] != "embedded"
        }
        """By the switch's name, or the aggregator's."""
        for name in fabric.topology.of_kind("embedded"):
            fabric.switches[name].power_off()
        self.controllers = [
            self._controller(f"c{number}", controllers + 1 - number)
            for number in range(1, controllers + 1)
        ]
        self.ranks: list[Rank] = []
        """All that were made, in order."""

    def __enter__(self) -> ControlPlane:
        faults.observer = observe
        return self

    def __exit__(self, *_: object) -> None:
        faults.observer = None
        self.close()

    def close(self) -> None:
        """Ends all processes. Nothing of it may be used any more."""
        for controller in self.controllers:
            controller.kill()
        for rank in self.ranks:
            rank.process.kill()
        self.database.close()

    @property
    def primary(self) -> SimController | None:
        """The controller that answers, if one does."""
        return next((it for it in self.controllers if it.is_primary), None)

    def jobs(self) -> list[Job] | None:
        """Those of the controller that answers, by number; None: none does."""
        primary = self.primary
        return None if primary is None else primary.jobs()

    def known_jobs(self) -> list[Job]:
        """Of the controller that answers, or of the store while none does, or has not read it."""
        jobs = self.jobs()
        if not jobs:
            with self.database.transaction() as db:
                jobs = get_jobs(db, self.loop.time())
        return jobs

    def rank(
        self, job: str, rank: int, world_size: int, host: str, options: WorkerOptions = OPTIONS,
        *, aggregator: str = "", **seat: Any,
    ) -> Rank:  # fmt: skip
        """A new process on a host, with a UDP port that was never used there.

        ``aggregator``: the embedded one that it runs; ``seat``: other fields of :class:`Seat`.
        """
        if host not in self.fabric.hosts:
            raise ScenarioError(f"job {job!r} rank {rank}: there is no host {host!r}")
        udp_port = FIRST_UDP_PORT + self._udp_ports[host]
        self._udp_ports[host] += 1
        if aggregator:
            seat["aggregator"] = self._embedded(aggregator)
        who = f"{job}/{rank}"
        self._incarnations[who] += 1
        process = Process(f"{who}#{self._incarnations[who]} on {host}")
        wire = SimWire(
            process,
            [
                Connection(process, controller.server, self._path(f"{host}-{controller.name}"))
                for controller in self.controllers
            ],
        )
        place = Seat(
            job, rank, world_size, self.fabric.hosts[host],
            Peer(self.fabric.topology.addresses[host], udp_port), options, **seat,
        )  # fmt: skip
        made = Rank(self.loop, self.fabric.network, process, wire, place)
        self.ranks.append(made)
        return made

    def set_travel(self, travel: Travel, name: str = "") -> None:
        """From now on, of all paths that begin or end at ``name``; empty: of all."""
        if not name:
            self._travel = travel
        for path in self._paths_at(name):
            path.travel = travel

    def cut(self, name: str) -> None:
        """No message passes on paths that begin or end at a controller, switch or host."""
        for path in self._paths_at(name):
            path.cut()

    def mend(self, name: str) -> None:
        """Undoes :meth:`cut`."""
        for path in self._paths_at(name):
            path.mend()

    def _paths_at(self, name: str) -> list[Path]:
        ends = ((key.split("-"), path) for key, path in self.paths.items())
        found = [path for names, path in ends if not name or name in names]
        if name and not found:
            raise ScenarioError(f"no path of control messages begins or ends at {name!r}")
        return found

    def _path(self, name: str) -> Path:
        if name not in self.paths:
            self.paths[name] = Path(name, self._seed, self.log, self._travel)
        return self.paths[name]

    def _embedded(self, name: str) -> OwnAggregator:
        switch, topology = self.fabric.switches.get(name), self.fabric.topology
        if switch is None or topology.switches[name] != "embedded":
            raise ScenarioError(f"there is no embedded aggregator {name!r}")
        return OwnAggregator(switch, topology.addresses[name], self.fabric.values)

    def _controller(self, name: str, election_id: int) -> SimController:
        config = self.config
        switches, aggregators = (
            tuple(replace(it, election_id=election_id) for it in them)
            for them in (config.switches, config.aggregators)
        )
        for host in self.fabric.hosts:  # so that they can be cut before anybody has used them
            self._path(f"{host}-{name}")
        return SimController(
            name,
            self.loop,
            replace(config, switches=switches, aggregators=aggregators, listen=f"{name}:17700"),
            self.database,
            Server(f"{name}:17700", self.config.jobs.lease_s),
            self.agents,
            {it.name: self._path(f"{name}-{it.name}") for it in (*switches, *aggregators)},
            self.log,
            self._seed,
        )


def config_of(
    fabric: VirtualFabric,
    *,
    jobs: JobsConfig = _JOBS,
    congestion: Mapping[str, str | int | float] | None = None,
    multicast: str = "",
    switch: Mapping[str, Any] | None = None,
    makes_results: Sequence[str] = (),
    **options: Any,
) -> Config:
    """A controller's configuration for a fabric: its P4 switches, their links, and who is where.

    ``multicast``: of each switch; ``switch``: likewise, other fields of :class:`SwitchConfig`;
    ``makes_results``: switches with ``aggregator = true``; ``options``: other fields of
    :class:`Config`.
    """
    topology = fabric.topology
    switches = tuple(
        SwitchConfig(
            name=name,
            grpc_addr=f"{name}:9559",
            data_host=str(topology.addresses[name]),
            multicast=multicast,
            mode=fabric.mode,
            aggregator=name in makes_results,
            **{**implied_by(fabric.mode), "values": fabric.values, **(switch or {})},
        )
        for name in fabric.joined.switches
    )
    if are_islands(topology):
        hosts = tuple(
            HostConfig(
                str(topology.addresses[host]),
                ports[0],
                switch,
                rate_gbit=host_rate(topology, host) / 1e9,
            )
            for host in fabric.hosts
            for switch, ports in topology.routes(host).items()
            if switch in fabric.joined.switches
        )
    else:
        options.setdefault("placement", "nearest")
        hosts = tuple(
            HostConfig(
                str(address), place.port, place.switch, rate_gbit=place.rate_bits_per_s / 1e9
            )
            for address, place in fabric.joined.hosts.items()
        )
    hosts += tuple(
        HostConfig(str(topology.addresses[name]), port, switch)
        for name, switch, port in _ends(topology, "embedded")
    )
    links = tuple(
        LinkConfig(link.switches, link.ports, link.rate_bits_per_s / 1e9)
        for link in fabric.joined.links
    )
    if congestion is not None:
        options["congestion"] = dict(congestion)
    return Config(
        switches=switches,
        links=links,
        hosts=hosts,
        aggregators=tuple(
            AggregatorConfig(
                name=name,
                grpc_addr=f"{name}:9559",
                data_host=str(topology.addresses[name]),
                switch=at,
                port=port,
            )
            for name, at, port in _ends(topology, "aggregator")
        ),
        jobs=jobs,
        store=StoreConfig(path=_STORE),
        **options,
    )


def _ends(topology: Topology, kind: str) -> Iterator[tuple[str, str, int]]:
    """Those of a kind, each with the switch that it is behind, and that one's port."""
    for name in topology.of_kind(kind):
        switch = topology.switch_of(name)
        yield name, switch, topology.port_towards(switch, name)
