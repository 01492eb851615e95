"""What each switch runs at the start: a program, table entries, groups. Pure but for reading files.

ina's own: aggregators run the pool program, whose forwarding table is filled here and whose job
tables the controller fills; the other switches run ``forward.p4``, so that contributions cross
them on their way to an aggregator. Everybody forwards to all hosts and to all aggregators.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ina.emulate.runtime_json import read_runtime_json
from ina.emulate.topology import Switch, Topology
from ina.fabric.graph import Fabric
from ina.fabric.outages import NOTHING, Down
from ina.p4 import compiled, names
from ina.p4.names import DEFAULT_MODE
from ina.tables.values import AnyItem, Entry

FORWARD_DIR = Path(__file__).resolve().parent / "programs"
FORWARD_TABLE, FORWARD_ACTION = "ForwardIngress.dmac", "ForwardIngress.forward"
FIRST_GRPC_PORT = 50051
"""P4Runtime of switch n is served here + n - 1, as in the p4lang tutorials."""
ELECTION_ID = 1
"""Of who programs at the start; the controller comes after it with a higher one."""


class SwitchPlan(msgspec.Struct, frozen=True):
    """All of one switch."""

    name: str
    address: str
    device_id: int
    p4info: str
    bmv2_json: str
    items: list[AnyItem]
    """In the order of writing."""
    forwarding: str = ""
    """The table of which ``items`` are all entries; empty: it runs somebody else's program."""
    is_controlled: bool = False
    """Its controller sets the program: two who do so at once would clear each other's tables."""


def grpc_address(topology: Topology, switch: str) -> str:
    """Where a switch serves P4Runtime, in the namespace ``net``."""
    return f"127.0.0.1:{FIRST_GRPC_PORT + topology.device_id(switch) - 1}"


def plan_switches(
    topology: Topology, values: int, mode: str = DEFAULT_MODE, down: Down = NOTHING
) -> list[SwitchPlan]:
    """``values``, ``mode``: of ina's program, on the switches that sum. ``down``: what frames are
    forwarded around.

    Raises :class:`TopologyError`: a ``runtime_json`` cannot be used.
    """
    over = topology.fabric.around(down) if down else topology.fabric
    ways = _ways(topology, over)
    return [
        _plan(topology, switch, values, mode, ways[switch.name]) for switch in topology.switches
    ]


def _plan(
    topology: Topology, switch: Switch, values: int, mode: str, ways: Mapping[int, int]
) -> SwitchPlan:
    table = ""
    if switch.runtime_json is not None:
        runtime = read_runtime_json(switch.runtime_json)
        p4info, bmv2_json, items = runtime.p4info, runtime.bmv2_json, list(runtime.items)
    else:
        table, action = FORWARD_TABLE, FORWARD_ACTION
        p4info, bmv2_json = FORWARD_DIR / "forward.p4info.txtpb", FORWARD_DIR / "forward.json"
        if switch.name in topology.aggregators:
            program = compiled(values, mode)
            p4info, bmv2_json = program.p4info, program.bmv2_json
            table, action = names.DMAC, names.FORWARD
        items = [
            Entry(table, (("dst_mac", mac),), action, (("port", port),))
            for mac, port in ways.items()
        ]
    return SwitchPlan(
        name=switch.name,
        address=grpc_address(topology, switch.name),
        device_id=topology.device_id(switch.name),
        p4info=str(p4info),
        bmv2_json=str(bmv2_json),
        items=items,
        forwarding=table,
    )


def _ways(topology: Topology, over: Fabric) -> dict[str, dict[int, int]]:
    """By switch: each destination's MAC address and the port towards it, unless it is cut off."""
    targets = {host.name: host.mac for host in topology.hosts}
    targets.update({other: topology.switch_mac(other) for other in topology.aggregators})
    found: dict[str, dict[int, int]] = {switch.name: {} for switch in topology.switches}
    for target, mac in targets.items():
        for switch, port in topology.ports_towards(target, over).items():
            found[switch][int(mac.replace(":", ""), 16)] = port
    return found
