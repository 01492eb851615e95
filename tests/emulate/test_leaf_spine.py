"""Networks in which every switch sums: forwarding through several of them, and the controller's
fabric."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ina.controller.config import load_config
from ina.controller.config.topology import fabric_of
from ina.emulate.errors import TopologyError
from ina.emulate.job import rank_environment, seats
from ina.emulate.load import load_topology
from ina.emulate.nodes import controller_config, controller_toml
from ina.emulate.programming import plan_switches
from ina.emulate.remains import HostState, State
from ina.emulate.topology import Topology
from ina.fabric.graph import Link
from ina.files import root
from ina.trees.nearest import Nearest
from tests.emulate.two_jobs import SUM
from tests.emulate.two_racks import TWO_RACKS
from tests.selection import SWITCHES
from tests.worlds.processes.emulations import call, forwarding_of, left, need, new_name
from tests.worlds.processes.stand_ins import python


def load(folder: Path, text: str = TWO_RACKS) -> Topology:
    file = folder / "fabric.toml"
    file.write_text(text)
    return load_topology(file)


def test_all_switches_sum_and_forward_to_hosts_and_to_each_other(tmp_path: Path) -> None:
    topology = load(tmp_path)
    plans = plan_switches(topology, 64)
    assert all("pool_v1model_64" in plan.bmv2_json for plan in plans)
    names = {host.mac: host.name for host in topology.hosts}
    names |= {topology.switch_mac(switch): switch for switch in topology.aggregators}
    ways = {
        plan.name: {names[mac]: port for mac, port in forwarding_of(plan).items()} for plan in plans
    }
    assert ways == {
        "leaf1": {"h1": 1, "h2": 2, "h3": 9, "h4": 9, "leaf2": 9, "spine": 9},
        "leaf2": {"h1": 9, "h2": 9, "h3": 1, "h4": 2, "leaf1": 9, "spine": 9},
        "spine": {"h1": 1, "h2": 1, "h3": 2, "h4": 2, "leaf1": 1, "leaf2": 2},
    }


def test_the_controller_gets_the_fabric(tmp_path: Path) -> None:
    topology = load(tmp_path)
    config = controller_config(topology)
    assert [(it.name, it.data_host, it.data_mac, it.grpc_addr) for it in config.switches] == [
        ("leaf1", "10.0.0.254", "02:69:6e:61:00:01", "127.0.0.1:50051"),
        ("leaf2", "10.0.0.253", "02:69:6e:61:00:02", "127.0.0.1:50052"),
        ("spine", "10.0.0.252", "02:69:6e:61:00:03", "127.0.0.1:50053"),
    ]
    assert config.is_fabric
    fabric = fabric_of(config)
    assert fabric.links == (
        Link(("leaf1", "spine"), (9, 1)),
        Link(("leaf2", "spine"), (9, 2)),
    )
    assert fabric.hosts == topology.fabric.hosts
    nearest = Nearest(fabric)
    assert [nearest.switch_of([it.address.ip]) for it in topology.hosts] == [
        *("leaf1", "leaf1", "leaf2", "leaf2")
    ]
    file = tmp_path / "controller.toml"
    file.write_text(controller_toml(config.document()))
    assert load_config(file) == config


def test_keys_of_the_controllers_switch_are_every_switchs(tmp_path: Path) -> None:
    text = TWO_RACKS + "[controller.switch]\nvalues = 64\nmax_window = 8\n"
    config = controller_config(load(tmp_path, text))
    assert {(it.values, it.max_window) for it in config.switches} == {(64, 8)}


def test_the_example_is_two_racks_of_four() -> None:
    topology = load_topology(root() / "examples" / "topologies" / "leaf_spine.toml")
    config = controller_config(topology)
    racks: dict[str, int] = {}
    for host in config.hosts:
        racks[host.switch] = racks.get(host.switch, 0) + 1
    assert racks == {"leaf1": 4, "leaf2": 4}
    assert [link.switches for link in config.links] == [("leaf1", "spine"), ("leaf2", "spine")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("leaf1 = {}", 'leaf1.runtime_json = "x"'),
            "aggregator: all: leaf1 runs a program of its",
        ),
        (("10.0.0.4", "10.0.0.253"), "aggregator_address: 10.0.0.253 is hosts.h4's: name another"),
        (("/24", "/29"), "aggregator_address: none is free in"),
        (('"10.0.0.1/24"', '"10.0.0.1/24"\nh1.ranks = 0'), "hosts.h1.ranks: expected `int` >= 1"),
    ],
)
def test_what_is_wrong_is_named(change: tuple[str, str], says: str, tmp_path: Path) -> None:
    text = TWO_RACKS.replace("10.0.0.4", "10.0.0.5") if "/29" in change else TWO_RACKS
    if "/29" in change:  # eight addresses, of which four hosts and three switches want seven
        text = text.replace("leaf2 = {}", "leaf2 = {}\nt1 = {}\nt2 = {}\nt3 = {}")
    with pytest.raises(TopologyError) as caught:
        load(tmp_path, text.replace(*change))
    assert says in str(caught.value)


def environments(ranks: Mapping[str, int], command: list[str]) -> list[tuple[str, dict[str, str]]]:
    hosts = [HostState(name, f"10.0.0.{name[1:]}", name, count) for name, count in ranks.items()]
    state = State("lab", 1, "out", hosts, {}, "", "net")
    return [(seat.log, rank_environment(state, hosts, seat)) for seat in seats(hosts, command)]


def test_a_host_has_as_many_ranks_as_the_file_says(tmp_path: Path) -> None:
    assert (
        load(tmp_path, TWO_RACKS.replace('h1.ip = "', 'h1.ranks = 3\nh1.ip = "')).hosts[0].ranks
        == 3
    )
    found = environments({"h1": 2, "h2": 1}, ["python", "x.py"])
    keys = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "MASTER_ADDR", "INA_HOST")
    assert [(log, [env[key] for key in keys]) for log, env in found] == [
        ("job.h1.log", ["0", "0", "2", "3", "10.0.0.1", "10.0.0.1"]),
        ("job.h1.1.log", ["1", "1", "2", "3", "10.0.0.1", "10.0.0.1"]),
        ("job.h2.log", ["2", "0", "1", "3", "10.0.0.1", "10.0.0.2"]),
    ]


@pytest.mark.parametrize(
    "command", [["/x/bin/torchrun", "a"], ["python", "-m", "torch.distributed.run"]]
)
def test_torchrun_starts_the_ranks_of_its_host_itself(command: list[str]) -> None:
    found = environments({"h1": 2, "h2": 2}, command)
    keys = ("PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE", "RANK", "WORLD_SIZE")
    assert [(log, [env[key] for key in keys]) for log, env in found] == [
        ("job.h1.log", ["2", "0", "2", "0", "4"]),
        ("job.h2.log", ["2", "1", "2", "2", "4"]),
    ]


REACH = """
import os, socket, sys, threading, time
here = os.environ["INA_HOST"]
others = [f"10.0.0.{n}" for n in range(1, 5) if f"10.0.0.{n}" != here]
heard = set()

def listen(server):
    while len(heard) < len(others):
        connection, (address, _) = server.accept()
        connection.close()
        heard.add(address)

def call(other):
    deadline = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection((other, 9001), 10).close()
        except ConnectionRefusedError:  # it has not begun yet
            assert time.monotonic() < deadline
            time.sleep(0.05)

with socket.create_server((here, 9001)) as server:
    listening = threading.Thread(target=listen, args=(server,), daemon=True)
    listening.start()
    for other in others:
        call(other)
    listening.join(60)
assert heard == set(others), heard
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    for switch in sys.argv[1].split(","):
        sock.sendto(b"hello", (switch, 9000))
"""


@pytest.mark.parametrize("kind", SWITCHES)
def test_hosts_reach_each_other_and_every_switch(kind: str, tmp_path: Path) -> None:
    """Through all three switches; what is for a switch, and for its pool, ends there."""
    need(kind)
    scapy = pytest.importorskip("scapy.all")
    topology = load(tmp_path)
    name, script = new_name(), tmp_path / "reach.py"
    script.write_text(REACH)
    out = tmp_path / name
    switches = ",".join(map(str, topology.aggregators.values()))
    done = call(
        *("run", topology.source, "--switch", kind, "--pcap", "--name", name, "--out", out),
        *("--json", "--timeout-s", "120", "--", sys.executable, script, switches),
    )
    assert done.returncode == 0, done.stderr
    assert left(name) == {}
    assert len(json.loads(done.stdout)["ranks"]) == 4
    frames = scapy.rdpcap(str(out / "pcap" / "leaf1-p9.pcap"))
    seen = {
        (f[scapy.IP].src, f[scapy.IP].dst)
        for f in frames
        if scapy.UDP in f and f[scapy.UDP].dport == 9000
    }
    addresses = {switch: str(address) for switch, address in topology.aggregators.items()}
    away = {(f"10.0.0.{n}", addresses[to]) for n in (1, 2) for to in ("leaf2", "spine")}
    assert seen == away | {(f"10.0.0.{n}", addresses["leaf1"]) for n in (3, 4)}
    ethernet = {
        f[scapy.IP].dst: f.dst for f in frames if scapy.UDP in f and f[scapy.UDP].dport == 9000
    }
    assert ethernet == {
        addresses[switch]: topology.switch_mac(switch) for switch in topology.aggregators
    }


@pytest.mark.parametrize("kind", [*SWITCHES, "xdp"])
def test_racks_of_unequal_sizes_sum_exactly_and_the_fabric_tells_where(
    kind: str, tmp_path: Path
) -> None:
    """Ranks 0, 1 and 2 are behind leaf1, two of them on one host; rank 3 is alone behind leaf2."""
    need(kind)
    text = TWO_RACKS.replace('h1.ip = "', 'h1.ranks = 2\nh1.ip = "')
    name, script, out = new_name(), tmp_path / "sum.py", tmp_path / "out"
    script.write_text(SUM)
    done = call(
        *("run", load(tmp_path, text).source, "--switch", kind, "--name", name, "--out", out),
        *("--hosts", "h1,h2,h3", "--timeout-s", "120", "--", python(), script),
    )
    assert done.returncode == 0, done.stderr
    assert left(name) == {}
    # On a busy machine the others' wait for rank 0 is told before.
    line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    shown = json.loads(line)
    (job,) = shown["jobs"]
    chunks = 3 * -(-5000 // 256)
    assert [(it["switch"], it["parent"], it["ranks"], it["children"]) for it in job["nodes"]] == [
        ("spine", "", [], ["leaf1", "leaf2"]),
        ("leaf1", "spine", [0, 1, 2], []),
        ("leaf2", "spine", [3], []),
    ]
    spine, leaf1, leaf2 = job["nodes"]
    assert spine["results"] >= chunks
    assert leaf1["contributions"] >= 3 * chunks
    assert leaf2["contributions"] >= chunks
    assert min(leaf1["passed_down"], leaf2["passed_down"]) >= chunks
    assert [link["port_a"] for link in shown["links"]] == ["9", "9"]
    assert shown["hosts"][0] == {"address": "10.0.0.1", "switch": "leaf1", "port": "1"}
