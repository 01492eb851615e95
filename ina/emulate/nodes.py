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
        *("--device-id", str(device_id), "--loss-rate", str(switch.loss_rate)),
        *("--loss-seed", str(switch.loss_seed)),
        *(f"--port={port}=afpacket:{switch.name}-p{port}" for port in ports),
    ]
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
        soft = [end for end in link.ends if kinds.get(end.node) == "soft"]
        # Of two soft switches, one is enough.
        if link.loss_rate and (soft[0].node, soft[0].port) == (switch.name, port):
            losses[port] = link.loss_rate
    return losses


def controller_config(topology: Topology) -> Config:
    """The file's ``controller`` keys, and what follows from the topology.

    Raises :class:`TopologyError`, and :class:`ConfigError` for a wrong key.
    """
    assert topology.aggregator is not None
    kinds = {switch.name: switch.kind for switch in topology.switches}
    own: dict[str, Any] = {"listen": CONTROLLER}
    switch: dict[str, Any] = {
        "grpc_addr": grpc_address(topology, topology.aggregator),
        "device_id": topology.device_id(topology.aggregator),
        "election_id": ELECTION_ID + 1,
        "data_host": str(topology.aggregator_address),
    }
    given = topology.controller
    given_switch = given.get("switch", {})
    where = f"{topology.source}: controller"
    if not isinstance(given_switch, dict):
        raise TopologyError(f"{where}.switch: want a table")
    for key in (*own, "hosts"):
        if key in given:
            raise TopologyError(f"{where}.{key}: follows from the topology: leave it out")
    for key in switch:
        if key in given_switch:
            raise TopologyError(f"{where}.switch.{key}: follows from the topology: leave it out")
    if kinds[topology.aggregator] == "bmv2":
        switch["target"] = "bmv2"
    hosts = [
        {
            "address": str(host.address.ip),
            "port": topology.arrival_port(host.name, topology.aggregator),
            "mac": host.mac,
        }
        for host in topology.hosts
    ]
    document = {**given, **own, "switch": {**switch, **given_switch}, "hosts": hosts}
    return with_build(make_config(document, where), LINK_MTU_BYTES)


def controller_toml(config: dict[str, Any]) -> str:
    """A document of tables, lists and scalars as TOML, one top-level key a line."""
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in config.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # of scalars JSON and TOML say the same
