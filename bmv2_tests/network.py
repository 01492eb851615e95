"""A running topology: switches with their forwarding, a controller a rack, hosts ready to work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bmv2_tests.process import PYTHON, NodeProcess
from bmv2_tests.switches import P4Switch, disable_offloads
from bmv2_tests.topologies import (
    CONTROLLER,
    CONTROLLER_ADDRESS,
    HostPlace,
    Plan,
    PlanTopo,
    SwitchPlace,
    gateway_mac,
)

from mininet.net import Mininet  # isort: skip

"""Packets of one worker in flight, so also of results in the queue of its port, which in BMv2 holds
64; the rest is for repeated results and for traffic that is not ours."""
_PROGRAM_TIMEOUT_S = 90.0
_FIRST_LISTEN_PORT = 17700


@dataclass
class Network:
    """What a test works with."""

    plan: Plan
    net: Any
    folder: Path
    controllers: dict[int, str] = field(default_factory=dict)
    """host:port, by rack."""
    processes: list[NodeProcess] = field(default_factory=list)

    @property
    def controller(self) -> str:
        """Of a star: host:port of its controller."""
        return self.controllers[0]

    @property
    def switch(self) -> P4Switch:
        """Of a star: its switch."""
        switch: P4Switch = self.net["s1"]
        return switch

    def node(self, place: HostPlace) -> Any:
        """Mininet's node."""
        return self.net[place.name]

    def run(
        self, node: Any, command: list[str], log: str, environ: dict[str, str] | None = None
    ) -> NodeProcess:
        """Starts a program in a node; it ends with the network at the latest."""
        process = NodeProcess(node, command, self.folder / f"{log}.log", environ)
        self.processes.append(process)
        return process

    def ina(self, *arguments: str, timeout_s: float = 60.0) -> Any:
        """What an `ina ... --json` command says, run beside the controller."""
        file = self.folder / "ina.json"
        file.unlink(missing_ok=True)
        process = self.run(self.net[CONTROLLER], [*PYTHON, "ina", *arguments, "--json"], "ina.json")
        process.log.rename(file)
        assert process.wait(timeout_s) == 0, file.read_text()
        return msgspec.json.decode(file.read_text())


@contextlib.contextmanager
def running(
    plan: Plan,
    kind: str,
    folder: Path,
    *,
    values: int = 64,
    target: str | None = None,
    config: str = "",
    **switch_options: Any,
) -> Iterator[Network]:
    """``target``: what the controllers are told of the switches, ``kind`` if nothing else;
    ``config``: TOML to add to their files; ``switch_options``: to the switches."""
    Mininet.inited = True  # else it raises this machine's sysctls, for good
    topology = PlanTopo(plan=plan, kind=kind, folder=folder, **switch_options)
    net = Mininet(topo=topology, controller=None, build=False, waitConnected=False)
    network = Network(plan, net, folder)
    try:
        net.build()
        net.start()
        for place in plan.hosts:
            prepare(net, place)
        for switch in plan.switches:
            _program(network, switch, values)
        for switch in plan.switches:
            if switch.rack is not None:
                start_controller(network, switch, values, target or kind, config)
        yield network
    finally:
        for process in reversed(network.processes):
            process.kill()
        net.stop()


def start_controller(
    network: Network, switch: SwitchPlace, values: int, target: str, config: str
) -> NodeProcess:
    """Starts the controller of a rack's switch and waits until it serves."""
    assert switch.rack is not None
    listen = f"{CONTROLLER_ADDRESS}:{_FIRST_LISTEN_PORT + switch.rack}"
    own = [place for place in network.plan.hosts if place.rack == switch.rack]
    file = network.folder / f"controller-{switch.name}.toml"
    file.write_text(
        f'listen = "{listen}"\n{config}\n'
        f'[switch]\ngrpc_addr = "{network.net[switch.name].grpc_addr}"\nvalues = {values}\n'
        f'data_host = "{own[0].gateway}"\ntarget = "{target}"\n'
        + "".join(
            f'[[hosts]]\naddress = "{h.address}"\nport = {h.port}\nmac = "{h.mac}"\n' for h in own
        )
    )
    command = [*PYTHON, "ina", "controller", "run", str(file), "--json"]
    process = network.run(network.net[CONTROLLER], command, f"controller-{switch.name}")
    process.ready()
    network.controllers[switch.rack] = listen
    return process


def prepare(net: Any, place: HostPlace) -> None:
    """What a host needs besides addresses; again after its interface was down."""
    node = net[place.name]
    switch = node.intf("eth0").link.intf2.node
    # Nobody answers ARP for a switch's address, as P4 switches usually are.
    said = node.cmd(f"ip neigh replace {place.gateway} lladdr {gateway_mac(place.rack)} dev eth0")
    if place.rack:
        said += node.cmd(f"ip route replace 10.0.0.0/16 via {place.gateway} dev eth0")
    if not switch.offloads:
        disable_offloads(node, "eth0")
    if said:
        raise RuntimeError(f"{place.name}: {said}")


def _program(network: Network, switch: SwitchPlace, values: int) -> None:
    forwarding = msgspec.json.encode(switch.forwarding).decode()
    address = network.net[switch.name].grpc_addr
    process = network.run(
        network.net[CONTROLLER],
        [*PYTHON, "bmv2_tests.forwarding", address, str(values), forwarding],
        f"forwarding-{switch.name}",
    )
    process.expect("programmed", _PROGRAM_TIMEOUT_S)
    assert process.wait(_PROGRAM_TIMEOUT_S) == 0
