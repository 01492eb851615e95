"""What each switch runs at the start: a program, table entries, groups. Pure but for reading files.

ina's own: aggregators run the pool program, whose forwarding table is filled here and whose job
tables the controller fills; the other switches run ``forward.p4``, so that contributions cross
them on their way to an aggregator. Everybody forwards to all hosts and to all aggregators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ina.emulate.errors import TopologyError
from ina.emulate.topology import Switch, Topology
from ina.fabric.topology_json import convert
from ina.p4 import compiled, names
from ina.p4.names import DEFAULT_MODE
from ina.p4.origin import warn_if_changed

FORWARD_DIR = Path(__file__).resolve().parent / "programs"
FORWARD_TABLE, FORWARD_ACTION = "ForwardIngress.dmac", "ForwardIngress.forward"
FIRST_GRPC_PORT = 50051
"""P4Runtime of switch n is served here + n - 1, as in the p4lang tutorials."""
ELECTION_ID = 1
"""Of who programs at the start; the controller comes after it with a higher one."""


class EntryPlan(msgspec.Struct, frozen=True):
    """One table entry, in the words of the p4lang tutorials' ``sX-runtime.json``."""

    table: str
    action_name: str
    match: dict[str, Any] = {}
    """A value; or two: address and prefix length, value and mask, or low and high."""
    action_params: dict[str, Any] = {}
    priority: int = 0
    default_action: bool = False


class Replica(msgspec.Struct, frozen=True):
    """One copy of a packet."""

    egress_port: int
    instance: int = 0


class GroupPlan(msgspec.Struct, frozen=True):
    """A multicast group."""

    multicast_group_id: int
    replicas: list[Replica]


class ClonePlan(msgspec.Struct, frozen=True):
    """A clone session."""

    clone_session_id: int
    replicas: list[Replica]


class SwitchPlan(msgspec.Struct, frozen=True):
    """All of one switch."""

    name: str
    address: str
    device_id: int
    p4info: str
    bmv2_json: str
    entries: list[EntryPlan]
    groups: list[GroupPlan] = []
    clones: list[ClonePlan] = []
    forwarding: str = ""
    """The table of which ``entries`` are all; empty: it runs somebody else's program."""
    is_controlled: bool = False
    """Its controller sets the program: two who do so at once would clear each other's tables."""


class _RuntimeJson(msgspec.Struct):
    """The tutorials' file; keys that it may have beside these do not matter."""

    p4info: str
    bmv2_json: str
    table_entries: list[EntryPlan] = []
    multicast_group_entries: list[GroupPlan] = []
    clone_session_entries: list[ClonePlan] = []


def grpc_address(topology: Topology, switch: str) -> str:
    """Where a switch serves P4Runtime, in the namespace ``net``."""
    return f"127.0.0.1:{FIRST_GRPC_PORT + topology.device_id(switch) - 1}"


def plan_switches(topology: Topology, values: int, mode: str = DEFAULT_MODE) -> list[SwitchPlan]:
    """``values``, ``mode``: of ina's program, on the switches that sum.

    Raises :class:`TopologyError`: a ``runtime_json`` cannot be used.
    """
    return [_plan(topology, switch, values, mode) for switch in topology.switches]


def _plan(topology: Topology, switch: Switch, values: int, mode: str) -> SwitchPlan:
    if switch.runtime_json is not None:
        return _foreign(topology, switch, switch.runtime_json)
    if switch.name in topology.aggregators:
        program = compiled(values, mode)
        p4info, bmv2_json = program.p4info, program.bmv2_json
        table, action = names.DMAC, names.FORWARD
    else:
        p4info, bmv2_json = FORWARD_DIR / "forward.p4info.txtpb", FORWARD_DIR / "forward.json"
        table, action = FORWARD_TABLE, FORWARD_ACTION
    return SwitchPlan(
        name=switch.name,
        address=grpc_address(topology, switch.name),
        device_id=topology.device_id(switch.name),
        p4info=str(p4info),
        bmv2_json=str(bmv2_json),
        entries=[
            EntryPlan(table, action, {"dst_mac": mac}, {"port": port})
            for mac, port in _ways(topology, switch.name)
        ],
        forwarding=table,
    )


def _ways(topology: Topology, switch: str) -> Iterator[tuple[str, int]]:
    """Each destination's MAC address and the port towards it."""
    targets = {host.name: host.mac for host in topology.hosts}
    targets.update({other: topology.switch_mac(other) for other in topology.aggregators})
    for target, mac in targets.items():
        port = topology.ports_towards(target).get(switch)
        if port is not None:  # else it is the switch itself, or cut off
            yield mac, port


def _foreign(topology: Topology, switch: Switch, path: Path) -> SwitchPlan:
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TopologyError(f"{path}: not JSON: {error}") from None
    runtime = convert(path, "", document, _RuntimeJson)
    bmv2_json = _find(path, "bmv2_json", runtime.bmv2_json)
    warn_if_changed(bmv2_json)
    return SwitchPlan(
        name=switch.name,
        address=grpc_address(topology, switch.name),
        device_id=topology.device_id(switch.name),
        p4info=str(_find(path, "p4info", runtime.p4info)),
        bmv2_json=str(bmv2_json),
        entries=runtime.table_entries,
        groups=runtime.multicast_group_entries,
        clones=runtime.clone_session_entries,
    )


def _find(source: Path, key: str, name: str) -> Path:
    """The tutorials name files from the exercise's folder, above the one of ``source``.

    What their Makefile calls ``basic.p4.p4info.txtpb`` is ``basic.p4info.txtpb`` to ``ina p4
    compile``: either will do.
    """
    ours = re.sub(r"\.p4\.p4info\.txt(pb)?$", ".p4info.txtpb", name)
    for folder in (Path(), source.parent, source.parent.parent):
        for wanted in (name, ours):
            if (folder / wanted).is_file():
                return (folder / wanted).resolve()
    raise TopologyError(
        f"{source}: {key}: no {name} here, beside this file or above it; compile the program first:"
        f" ina p4 compile PROGRAM.p4 --out {Path(name).parent}, or make in the exercise"
    )
