"""The p4lang tutorials' topology.json, with programs and entries of its own, and with ina's."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ina.emulate.errors import TopologyError
from ina.emulate.load import load_topology
from ina.emulate.programming import plan_switches
from ina.p4 import compiled
from ina.tables.values import DefaultAction, Entry, Group
from tests.emulate.stream import STREAM
from tests.selection import EMULATED
from tests.worlds.processes.emulations import call, left, need, new_name

TOPOLOGY: dict[str, Any] = {
    "hosts": {
        "h1": {
            "ip": "10.0.0.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": [
                "route add default gw 10.0.0.10 dev eth0",
                "arp -i eth0 -s 10.0.0.10 08:00:00:00:01:00",
            ],
        },
        "h2": {
            "ip": "10.0.2.2/24",
            "mac": "08:00:00:00:02:22",
            "commands": [
                "route add default gw 10.0.2.20 dev eth0",
                "arp -i eth0 -s 10.0.2.20 08:00:00:00:01:00",
            ],
        },
    },
    "switches": {"s1": {"runtime_json": "topo/s1-runtime.json"}},
    "links": [["h1", "s1-p1"], ["h2", "s1-p2", "0", 20]],
}
ROUTER = "PoolIngress.forwarding"


def route(address: str, length: int, port: int, mac: str) -> dict[str, Any]:
    return {
        "table": f"{ROUTER}.ipv4_lpm",
        "match": {"dst_addr": [address, length]},
        "action_name": f"{ROUTER}.route",
        "action_params": {"port": port, "src_mac": "08:00:00:00:01:00", "dst_mac": mac},
    }


RUNTIME: dict[str, Any] = {
    "target": "bmv2",
    "p4info": "build/router.p4.p4info.txtpb",
    "bmv2_json": "build/router.json",
    "table_entries": [
        {
            "table": f"{ROUTER}.dmac",
            "default_action": True,
            "action_name": f"{ROUTER}.flood",
            "action_params": {"group": 1},
        },
        {
            "table": f"{ROUTER}.router_macs",
            "match": {"dst_mac": "08:00:00:00:01:00"},
            "action_name": "NoAction",
            "action_params": {},
        },
        route("10.0.0.1", 32, 1, "08:00:00:00:01:11"),
        route("10.0.2.0", 24, 2, "08:00:00:00:02:22"),
    ],
    "multicast_group_entries": [
        {
            "multicast_group_id": 1,
            "replicas": [{"egress_port": 1, "instance": 1}, {"egress_port": 2, "instance": 1}],
        }
    ],
}


def exercise(folder: Path) -> Path:
    """A folder as the tutorials have one: topo/, build/; a router is its program."""
    (folder / "topo").mkdir()
    (folder / "build").mkdir()
    program = compiled(64)
    (folder / "build/router.p4.p4info.txtpb").write_bytes(program.p4info.read_bytes())
    (folder / "build/router.json").write_bytes(program.bmv2_json.read_bytes())
    (folder / "topo/s1-runtime.json").write_text(json.dumps(RUNTIME))
    file = folder / "topo/topology.json"
    file.write_text(json.dumps(TOPOLOGY))
    return file


def test_what_it_means(tmp_path: Path) -> None:
    topology = load_topology(exercise(tmp_path))
    assert topology.name == "topology"
    assert topology.aggregators == {}
    assert [link.bandwidth_mbit for link in topology.links] == [None, 20.0]
    (plan,) = plan_switches(topology, 0)
    assert plan.bmv2_json == str(tmp_path / "build/router.json")
    assert list(map(type, plan.items)) == [DefaultAction, Entry, Entry, Entry, Group]


def test_what_ina_p4_compile_writes_is_found_too(tmp_path: Path) -> None:
    topology = load_topology(exercise(tmp_path))
    compiled_by_us = tmp_path / "build/router.p4info.txtpb"
    (tmp_path / "build/router.p4.p4info.txtpb").rename(compiled_by_us)
    (plan,) = plan_switches(topology, 0)
    assert plan.p4info == str(compiled_by_us)


def test_inas_programs_instead(tmp_path: Path) -> None:
    topology = load_topology(exercise(tmp_path), ignore_runtime=True)
    assert list(topology.aggregators) == ["s1"]


@pytest.mark.parametrize("kind", EMULATED)
@pytest.mark.parametrize("options", [(), ("--ina",)], ids=["its program", "ina"])
def test_tcp_crosses_it(kind: str, options: tuple[str, ...], tmp_path: Path) -> None:
    need(kind)
    name, script, file = new_name(), tmp_path / "stream.py", exercise(tmp_path)
    script.write_text(STREAM)
    out = tmp_path / name
    done = call(
        *("run", file, "--switch", kind, "--name", name, "--out", out),
        *options,
        *("--timeout-s", "120", "--", sys.executable, script),
    )
    assert done.returncode == 0, done.stderr
    assert (out / "job.h1.log").read_text() == (out / "job.h2.log").read_text()
    assert (out / "controller.log").exists() == bool(options)
    assert left(name) == {}


def test_a_failing_command_of_a_tutorial_is_told_and_no_error(tmp_path: Path) -> None:
    need("soft")
    name, file = new_name(), exercise(tmp_path)
    document = json.loads(file.read_text())
    document["hosts"]["h1"]["commands"].append("ip route add 10.0.0.0/24 dev eth0")  # is there
    file.write_text(json.dumps(document))
    done = call("run", file, "--name", name, "--out", tmp_path / name, "--", "true")
    assert done.returncode == 0, done.stderr
    assert "warning: host h1: ip route add 10.0.0.0/24 dev eth0: exit code 2: " in done.stderr
    assert left(name) == {}


def test_a_refused_entry_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    need("soft")
    name, file = new_name(), exercise(tmp_path)
    runtime = json.loads(json.dumps(RUNTIME))
    runtime["table_entries"] += runtime["table_entries"][-1:]
    (tmp_path / "topo/s1-runtime.json").write_text(json.dumps(runtime))
    done = call(file, "--name", name, "--out", tmp_path / name)
    assert done.returncode == 2
    error = done.stderr.splitlines()[-1]
    assert re.fullmatch("error: s1: switch .*: there is an entry .*", error), error
    assert left(name) == {}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t["switches"]["s1"].update(runtime_json="gone.json"), "s1.runtime_json: no fil"),
        (lambda t: t["links"][1].__setitem__(2, "5ms"), "links[1][2]: latency '5ms': links are"),
        (lambda t: t["links"][1].__setitem__(3, "fast"), "links[1][3]: 'fast' is no bandwidth"),
        (lambda t: t["links"].append(["h1"]), "links[2]: 1 parts: want 2 ends"),
        (lambda t: t["links"].append("h1 s1"), "links[2]: expected `array`"),
        (lambda t: t["hosts"]["h1"].pop("ip"), "hosts.h1.ip: missing"),
        (lambda t: t.pop("links"), "links: missing"),
    ],
)
def test_a_mistake_is_named(change: Any, says: str, tmp_path: Path) -> None:
    file = exercise(tmp_path)
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    with pytest.raises(TopologyError) as caught:
        load_topology(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r.update(p4info="build/none.txt"), "p4info: no build/none.txt here"),
        (lambda r: r.pop("bmv2_json"), "bmv2_json: missing"),
        (lambda r: r["table_entries"][2].pop("table"), "table_entries[2].table: missing"),
        (
            lambda r: r["table_entries"][2].update(table="MyIngress.ipv4_lpm"),
            "table_entries[2]: table MyIngress.ipv4_lpm: the program has no table MyIngress",
        ),
    ],
)
def test_a_mistake_in_runtime_json_is_named(change: Any, says: str, tmp_path: Path) -> None:
    topology = load_topology(exercise(tmp_path))
    runtime = json.loads(json.dumps(RUNTIME))
    change(runtime)
    (tmp_path / "topo/s1-runtime.json").write_text(json.dumps(runtime))
    with pytest.raises(TopologyError) as caught:
        plan_switches(topology, 0)
    assert str(caught.value).startswith(f"{tmp_path / 'topo/s1-runtime.json'}: ")
    assert says in str(caught.value)
