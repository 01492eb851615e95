"""A running topology: switches with their forwarding, their controller, hosts ready to work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bmv2_tests.plans import HostPlace, Plan, SwitchPlace, gateway_mac
from bmv2_tests.process import PYTHON, NodeProcess
from bmv2_tests.switches import P4Switch, disable_offloads
from bmv2_tests.topologies import CONTROLLER, CONTROLLER_ADDRESS, PlanTopo
from ina.emulate.programming import SwitchPlan
from ina.p4 import compiled
from ina.p4.names import DEFAULT_MODE

from mininet.net import Mininet  # isort: skip

LOSS_PERCENT = 3
_PROGRAM_TIMEOUT_S = 90.0
_LISTEN = f"{CONTROLLER_ADDRESS}:17700"


@dataclass
class Network:
    """What a test works with."""

    plan: Plan
    net: Any
    folder: Path
    values: int
    """A packet, of all switches."""
    mode: str = DEFAULT_MODE
    """Of their program."""
    processes: list[NodeProcess] = field(default_factory=list)
    controller: str = _LISTEN
    """host:port."""

    @property
    def switch(self) -> P4Switch:
        """Of a star: its switch."""
        switch: P4Switch = self.net["s1"]
        return switch

    def node(self, place: HostPlace) -> Any:
        """Mininet's node."""
        return self.net[place.name]

    def lose(self, node: Any, interfaces: Sequence[str], hooks: Sequence[str]) -> None:
        """Loses packets from now on, a few of a hundred, at nftables' ``hooks`` of a node."""
        chains = "\n".join(
            f"chain {hook}_{name.replace('-', '_')} {{ type filter hook {hook} device {name}"
            f" priority 0; numgen random mod 100 < {LOSS_PERCENT} drop; }}"
            for name in interfaces
            for hook in hooks
        )
        file = self.folder / f"{node.name}.nft"
        file.write_text(f"table netdev lossy {{\n{chains}\n}}\n")
        assert node.cmd(f"nft -f {file}") == ""

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
    mode: str = DEFAULT_MODE,
    **switch_options: Any,
) -> Iterator[Network]:
    """``target``: what the controller is told of the switches, ``kind`` if nothing else;
    ``config``: TOML to add to its file; ``mode``: of the program that all switches run;
    ``switch_options``: to the switches."""
    Mininet.inited = True  # else it raises this machine's sysctls, for good
    topology = PlanTopo(plan=plan, kind=kind, folder=folder, **switch_options)
    net = Mininet(topo=topology, controller=None, build=False, waitConnected=False)
    network = Network(plan, net, folder, values, mode)
    try:
        net.build()
        net.start()
        for place in plan.hosts:
            prepare(net, place)
        for switch in plan.switches:
            _program(network, switch)
        start_controller(network, target or kind, config)
        yield network
    finally:
        for process in reversed(network.processes):
            process.kill()
        net.stop()


def start_controller(network: Network, target: str, config: str) -> NodeProcess:
    """Starts it over all switches and waits until it serves."""
    file = network.folder / "controller.toml"
    parts = [f'listen = "{network.controller}"', config]
    parts += [
        f'[[switch]]\nname = "{it.name}"\ngrpc_addr = "{network.net[it.name].grpc_addr}"\n'
        f'values = {network.values}\ntarget = "{target}"\nmode = "{network.mode}"\n'
        f'data_host = "{it.data_address}"\ndata_mac = "{it.mac}"'
        for it in network.plan.switches
    ]
    parts += [
        f'[[link]]\nswitches = ["{left}", "{right}"]\nports = [{left_port}, {right_port}]'
        for left, left_port, right, right_port in network.plan.trunks
    ]
    names = {switch.rack: switch.name for switch in network.plan.switches}
    parts += [
        f'[[host]]\naddress = "{it.address}"\nswitch = "{names[it.rack]}"\n'
        f'port = {it.port}\nmac = "{it.mac}"'
        for it in network.plan.hosts
    ]
    file.write_text("\n".join(parts) + "\n")
    command = [*PYTHON, "ina", "controller", "run", str(file), "--json"]
    process = network.run(network.net[CONTROLLER], command, "controller")
    process.ready()
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


def _program(network: Network, switch: SwitchPlace) -> None:
    """The program is the controller's, which therefore keeps it, and all that is written here."""
    files, address = compiled(network.values, network.mode), network.net[switch.name].grpc_addr
    program = (str(files.p4info), str(files.bmv2_json))
    plan = SwitchPlan(switch.name, address, 1, *program, switch.forwarding.items())
    file = network.folder / f"forwarding-{switch.name}.json"
    file.write_bytes(msgspec.json.encode([plan]))
    process = network.run(
        network.net[CONTROLLER],
        [*PYTHON, "ina.emulate.program_switches", str(file)],
        f"forwarding-{switch.name}",
    )
    process.expect(switch.name, _PROGRAM_TIMEOUT_S)
    assert process.wait(_PROGRAM_TIMEOUT_S) == 0
