"""The command lines of switches, and the controller's configuration."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

from ina.controller.config import Config, make_config, with_build
from ina.emulate.errors import TopologyError
from ina.emulate.programming import ELECTION_ID, grpc_address
from ina.emulate.topology import Switch, Topology
from ina.emulate.wiring import CONTROLLER_ADDRESS
from ina.errors import MissingToolError
from ina.p4.names import CPU_PORT
from ina.switch.targets import xdp_target

BMV2 = "simple_switch_grpc"
CONTROLLER = f"{CONTROLLER_ADDRESS}:17700"
_FIRST_THRIFT_PORT = 9090
_HELP_S = 20.0
LINK_MTU_BYTES = 1500
"""Of veth pairs, as the kernel makes them."""


def require_switches(topology: Topology) -> None:
    """Raises :class:`MissingToolError` if BMv2 is wanted and is not there."""
    if "bmv2" in {switch.kind for switch in topology.switches} and shutil.which(BMV2) is None:
        raise MissingToolError(
            f"{BMV2} is not on PATH: build BMv2 with its P4Runtime server"
            " (https://github.com/p4lang/behavioral-model), or use --switch soft"
        )
    if "xdp" in {switch.kind for switch in topology.switches} and (why := xdp_target().trouble()):
        raise MissingToolError(f"device xdp {why}, or use --switch soft")


def switch_command(topology: Topology, switch: Switch) -> list[str]:
    """What runs in ``net`` and serves P4Runtime at :func:`grpc_address`."""
    address = grpc_address(topology, switch.name)
    device_id = topology.device_id(switch.name)
    ports = topology.ports(switch.name)
    if switch.kind == "bmv2":
        return [
            *(BMV2, "--no-p4", "--device-id", str(device_id)),
            *("--log-console", "-L", "warn"),
            *_thrift(_FIRST_THRIFT_PORT + device_id - 1),
            *(f"--interface={port}@{switch.name}-p{port}" for port in ports),
            *("--", "--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)),
        ]
    command = [
        *(sys.executable, "-m", "ina", "switch", "--grpc-addr", address, "--json"),
        *("--device-id", str(device_id), "--device", switch.kind),
        *(f"--port={port}=afpacket:{switch.name}-p{port}" for port in ports),
    ]
    command += ["--loss-rate", str(switch.loss_rate)]
    if switch.kind == "soft":
        command += ["--loss-seed", str(switch.loss_seed)]
    for port, rate in _link_losses(topology, switch).items():
        whole = 1 - (1 - switch.loss_rate) * (1 - rate)
        command.append(f"--port-loss={port}={whole:.9g}")
    return command


def _thrift(port: int) -> tuple[str, ...]:
    """Thrift's port of its own, or the second switch hangs; a BMv2 built without it knows none."""
    try:
        shown = subprocess.run(
            [BMV2, "--help"], capture_output=True, text=True, timeout=_HELP_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()  # to be told when it does not start
    known = "--thrift-port" in shown.stdout + shown.stderr
    return ("--thrift-port", str(port)) if known else ()


def _link_losses(topology: Topology, switch: Switch) -> dict[int, float]:
    """By port: losses of links that this switch has to bring about."""
    kinds = {node.name: node.kind for node in topology.switches}
    losses = {}
    for port, (link, _) in topology.ports(switch.name).items():
        able = [end for end in link.ends if kinds.get(end.node) not in ("bmv2", None)]
        # Of two switches that can, one is enough.
        if link.loss_rate and (able[0].node, able[0].port) == (switch.name, port):
            losses[port] = link.loss_rate
    return losses


def controller_config(topology: Topology) -> Config:
    """The file's ``controller`` keys, and what follows from the topology.

    Keys of ``controller.switch`` are of each switch that sums. Raises :class:`TopologyError`, and
    :class:`ConfigError` for a wrong key.
    """
    assert topology.aggregators
    given = topology.controller
    given_switch = given.get("switch", {})
    where = f"{topology.source}: controller"
    if not isinstance(given_switch, dict):
        raise TopologyError(f"{where}.switch: want a table")
    for key in ("listen", "topology", "link", "host", "hosts"):
        if key in given:
            raise TopologyError(f"{where}.{key}: follows from the topology: leave it out")
    switches = [_switch_table(topology, name) for name in topology.aggregators]
    for key in switches[0].keys() - {"target"}:
        if key in given_switch:
            raise TopologyError(f"{where}.switch.{key}: follows from the topology: leave it out")
    several = len(switches) > 1
    document = {
        **given,
        "listen": CONTROLLER,
        "switch": [{**switch, **given_switch} for switch in switches],
        "link": _links(topology) if several else [],
        "host": _hosts(topology),
    }
    return with_build(make_config(document, where), LINK_MTU_BYTES)


def _switch_table(topology: Topology, name: str) -> dict[str, Any]:
    table: dict[str, Any] = {
        "name": name,
        "grpc_addr": grpc_address(topology, name),
        "device_id": topology.device_id(name),
        "election_id": ELECTION_ID + 1,
        "data_host": str(topology.aggregators[name]),
        "data_mac": topology.switch_mac(name),
    }
    kinds = {switch.kind for switch in topology.switches if switch.name == name}
    if "bmv2" in kinds:
        table["target"] = "bmv2"
    if "xdp" in kinds:
        table["grows"] = False  # its cables are virtual
    return table


def _links(topology: Topology) -> list[dict[str, Any]]:
    return [
        {
            "switches": list(link.switches),
            "ports": list(link.ports),
            **_rate(link.rate_bits_per_s),
        }
        for link in topology.fabric.links
    ]


def _rate(bits_per_s: float) -> dict[str, float]:
    """Nothing where it is as fast as the machine."""
    return {"rate_gbit": bits_per_s / 1e9} if bits_per_s else {}


def _hosts(topology: Topology) -> list[dict[str, Any]]:
    """Of several switches that sum, each host is behind its own; of one, where it arrives there."""
    (first, *others) = topology.aggregators
    fabric = topology.fabric
    tables = []
    for host in topology.hosts:
        address = host.address.ip
        switch = fabric.hosts[address].switch if others else first
        tables.append(
            {
                "address": str(address),
                "switch": switch,
                "port": fabric.ports_to_host(address)[switch],
                "mac": host.mac,
                **_rate(fabric.hosts[address].rate_bits_per_s),
            }
        )
    return tables


def controller_toml(config: dict[str, Any]) -> str:
    """A document of tables, lists and scalars as TOML, one top-level key a line; None is left out,
    for TOML has none."""
    said = {key: value for key, value in config.items() if value is not None}
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in said.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        said = {key: item for key, item in value.items() if item is not None}
        pairs = (f"{json.dumps(key)} = {_toml(item)}" for key, item in said.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # of scalars JSON and TOML say the same
