"""A topology, built: native nodes and cables, and a compiled P4 program in each ``p4`` switch."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network

from ina import modes
from ina.extension import sim as native
from ina.fabric.outages import Outage, Outages
from ina.fabric.ports import PortRef, plain_number
from ina.p4 import compiled, names
from ina.sim.errors import ScenarioError
from ina.sim.racks import joined
from ina.sim.topology import Topology
from ina.sim.ways import Way
from ina.switch.errors import EntryExistsError, EntryNotFoundError
from ina.switch.match import Exact, KeyMatch, Lpm
from ina.switch.pipeline import Pipeline
from ina.switch.target import Image
from ina.switch.targets import default_target
from ina.tables.values import Count, Entry, Group, Item, Match, MatchValue


class SimSwitch:
    """A P4 switch: its power, and what is written into its pipeline."""

    def __init__(self, name: str, node: native.P4Switch, program: Image) -> None:
        self.name = name
        self.node = node
        self._program = program
        self.pipeline: Pipeline | None = None
        """None: it has no power, or no program."""
        self._entries: dict[tuple[str, Match], tuple[int, Entry]] = {}
        self._groups: dict[int, Group] = {}

    def power_on(self) -> Pipeline:
        """Everything is as at power-on: no entry, no group, registers 0."""
        self.power_off()
        self.pipeline = self._program.power_on()
        self.node.set_pipeline(*self.pipeline.native)
        return self.pipeline

    def power_off(self) -> None:
        """Registers, tables and what waits in queues are lost."""
        self.node.set_pipeline(0, 0)
        self.node.clear_queues()
        if self.pipeline is not None:
            self.pipeline.close()
            self.pipeline = None
        self._entries.clear()
        self._groups.clear()

    def insert(self, items: Iterable[Item]) -> None:
        """Writes entries and groups that are not there.

        Raises what :class:`Pipeline` raises; what comes before it is written.
        """
        pipeline = self._powered()
        for item in items:
            if isinstance(item, Group):
                if item.number in self._groups:
                    raise EntryExistsError(f"multicast group {item.number} exists")
                pipeline.set_multicast(item.number, item.replicas)
                self._groups[item.number] = item
            else:
                handle = pipeline.insert(
                    item.table,
                    [_key_of(value) for _, value in item.match],
                    item.action,
                    [value for _, value in item.params],
                )
                self._entries[item.table, item.match] = handle, item

    def modify(self, items: Iterable[Item]) -> None:
        """Gives items that are there other parameters. Raises as :meth:`insert`."""
        pipeline = self._powered()
        for item in items:
            if isinstance(item, Group):
                if item.number not in self._groups:
                    raise EntryNotFoundError(f"there is no multicast group {item.number}")
                pipeline.set_multicast(item.number, item.replicas)
                self._groups[item.number] = item
            else:
                found = self._entries.get((item.table, item.match))
                if found is None:
                    raise EntryNotFoundError(f"table {item.table}: no such entry")
                handle, _ = found
                params = [value for _, value in item.params]
                pipeline.modify(item.table, handle, item.action, params)
                self._entries[item.table, item.match] = handle, item

    def delete(self, items: Iterable[Item]) -> None:
        """Takes them off; what is off already is no error."""
        pipeline = self._powered()
        for item in items:
            if isinstance(item, Group):
                if self._groups.pop(item.number, None) is not None:
                    pipeline.set_multicast(item.number, [])
            elif (found := self._entries.pop((item.table, item.match), None)) is not None:
                pipeline.delete(item.table, found[0])

    def entries(self, table: str = "") -> list[Entry]:
        """What was written and is there, of one table or all."""
        return [entry for _, entry in self._entries.values() if table in ("", entry.table)]

    def groups(self) -> list[Group]:
        """What was written and is there."""
        return list(self._groups.values())

    def row_counts(self, table: str) -> list[tuple[Entry, Count]]:
        """What each entry of a table with a direct counter has seen."""
        pipeline = self._powered()
        return [
            (entry, Count(*pipeline.direct_counter(table, handle)))
            for handle, entry in self._entries.values()
            if entry.table == table
        ]

    def count(self, counter: str, index: int) -> int:
        """Packets of an indirect counter."""
        return self._powered().counter(counter, index)[0]

    def _powered(self) -> Pipeline:
        if self.pipeline is None:
            raise ScenarioError(f"switch {self.name}: it has no power")
        return self.pipeline


class VirtualFabric:
    """What a topology becomes. A context manager: on exit the pipelines are gone."""

    def __init__(
        self,
        topology: Topology,
        *,
        seed: int,
        values: int = 64,
        mode: str = names.DEFAULT_MODE,
        switch: native.SwitchSetup | None = None,
    ) -> None:
        """``values``: a packet, of a build of the program of ``mode``. ``switch``: of P4 switches
        that are soft ones; None: they are hardware."""
        self._switch_setup = switch or native.SwitchSetup()
        self.topology = topology
        self.joined = joined(topology)
        """Its P4 switches as a controller sees them."""
        self.outages = Outages((), [(it.one, it.other) for it in topology.cables])
        """Cables that are down."""
        self.values = values
        self.mode = mode
        self.network = native.Network(seed)
        self.hosts: dict[str, native.Host] = {}
        self.switches: dict[str, SimSwitch] = {}
        self.bridges: dict[str, native.Bridge] = {}
        self.ports: dict[str, native.Port] = {}
        """By ``FROM>TO``, the way that leads there; of several cables, ``FROM>TO#2``."""
        self._cables: Counter[str] = Counter()
        self._nodes: dict[str, native.Node] = {}

    def __enter__(self) -> VirtualFabric:
        for name in self.topology.hosts:
            address = int(self.topology.addresses[name])
            self.hosts[name] = self._nodes[name] = self.network.add_host(address)
        for name, kind in self.topology.switches.items():
            if kind == "plain":
                self.bridges[name] = self._nodes[name] = self.network.add_bridge(name)
                continue
            node = self.network.add_switch(name, names.CPU_PORT, self._switch_setup)
            mode = self.mode if kind == "p4" else modes.of_aggregators().program
            self.switches[name] = SimSwitch(name, node, _program(self.values, mode))
            self._nodes[name] = node
        for cable, port, other_port in self.topology.ports():
            there = self._free_name(f"{cable.one}>{cable.other}")
            back = self._free_name(f"{cable.other}>{cable.one}")
            self.ports[there], self.ports[back] = self.network.connect(
                self._nodes[cable.one],
                port,
                self._nodes[cable.other],
                other_port,
                there,
                cable.there.queue(),
                cable.there.link(),
                back,
                cable.back.queue(),
                cable.back.link(),
            )
        for switch in self.switches.values():
            switch.power_on()
        for host in self.topology.hosts:
            self._route(host)
        for name in self.switches:  # where contributions go
            self._route(name)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees what the pipelines hold, and lets go of taps; may be called again."""
        for port in self.ports.values():
            port.set_tap(None)
        for switch in self.switches.values():
            switch.power_off()

    def forwarding(self, switch: str) -> list[Entry]:
        """Entries by which a P4 switch forwards frames to every host, and to every P4 switch."""
        ports_to = {
            other: plain_number(switch, ports[switch])
            for other, ports in self._ports_towards.items()
            if switch in ports
        }
        entries = [_forward(self.topology.mac(other), port) for other, port in ports_to.items()]
        for end in self.topology.of_kind("aggregator", "embedded"):
            behind = self.topology.switch_of(end)
            port = self.topology.port_towards(behind, end) if behind == switch else None
            if port is None:  # as to the switch that it is behind
                port = ports_to.get(behind)
            if port is not None and end != switch:
                entries.append(_forward(self.topology.mac(end), port))
        for host in self.topology.hosts:
            ports = self.topology.routes(host).get(switch)
            if ports:
                mac = self.topology.mac(host)
                chosen = ports[mac % len(ports)]  # an entry has one port
                entries.append(_forward(mac, chosen))
        return entries

    def set_way(self, port: str, way: Way) -> None:
        """From now on."""
        self.ports[port].link = way.link()
        self.ports[port].queue = way.queue()

    @functools.cached_property
    def _ports_towards(self) -> Mapping[str, Mapping[str, PortRef]]:
        return {other: self.joined.ports_towards(other) for other in self.joined.switches}

    def put(self, name: str, *, is_down: bool) -> None:
        """A cable between two nodes goes down, or comes up; frames on their way arrive."""
        outage = self.outages.outage(name, is_down=is_down)
        if outage is not None:
            self.outages.put(outage)
            self._happen(outage)

    def mend(self) -> None:
        """Every cable is up."""
        for outage in self.outages.only(()):
            self._happen(outage)

    def _happen(self, outage: Outage) -> None:
        assert outage.ends is not None
        for one, other in (outage.ends, outage.ends[::-1]):
            self.ports[f"{one}>{other}"].up = not outage.is_down

    def _route(self, to: str) -> None:
        routes = self.topology.routes(to)
        for name, bridge in self.bridges.items():
            if name in routes:
                bridge.set_route(self.topology.mac(to), list(routes[name]))

    def _free_name(self, name: str) -> str:
        self._cables[name] += 1
        so_far = self._cables[name]
        return name if so_far == 1 else f"{name}#{so_far}"


def _key_of(value: MatchValue) -> KeyMatch:
    """A number, or the text of an IPv4 network."""
    if isinstance(value, int):
        return Exact(int(value))
    network = IPv4Network(value)
    return Lpm(int(network.network_address), network.prefixlen)


def _forward(mac: int, port: int) -> Entry:
    return Entry(names.DMAC, (("dst_mac", mac),), names.FORWARD, (("port", port),))


@functools.lru_cache(maxsize=8)
def _program(values: int, mode: str) -> Image:
    """A build of the program, read once in a process; switches are powered on from it."""
    return default_target().read_and_build(compiled(values, mode).bmv2_json)
