"""The TOML topology: what it means, and that each mistake is named with file and key."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from ina.emulate.errors import TopologyError
from ina.emulate.load import load_topology
from ina.emulate.topology import Topology, check_capture, with_kind

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "topologies"
GOOD = """
[hosts]
h1.ip = "10.0.0.1/24"
h2.ip = "10.0.0.2/24"
[switches.s1]
[[links]]
ends = ["h1", "s1-p1"]
[[links]]
ends = ["s1-p2", "h2"]
"""


def load(folder: Path, text: str) -> Topology:
    file = folder / "Two hosts.toml"
    file.write_text(text)
    return load_topology(file)


def test_what_a_small_file_means(tmp_path: Path) -> None:
    topology = load(tmp_path, GOOD)
    assert topology.name == "two-hosts"
    assert [(host.name, host.mac) for host in topology.hosts] == [
        ("h1", "02:00:0a:00:00:01"),
        ("h2", "02:00:0a:00:00:02"),
    ]
    assert topology.aggregators == {"s1": IPv4Address("10.0.0.254")}
    assert {port: str(end) for port, (_, end) in topology.ports("s1").items()} == {1: "h1", 2: "h2"}
    assert [link.bandwidth_mbit for link in topology.links] == [None, None]


def test_defaults_are_of_every_link_that_does_not_say_otherwise(tmp_path: Path) -> None:
    text = GOOD + "bandwidth_mbit = 10\n[defaults]\nbandwidth_mbit = 100\nqueue_kib = 64\n"
    topology = load(tmp_path, text)
    assert [link.bandwidth_mbit for link in topology.links] == [100.0, 10.0]
    assert [link.queue_kib for link in topology.links] == [64, 64]


def test_a_switch_without_port_gets_the_first_one_free(tmp_path: Path) -> None:
    text = GOOD.replace('"s1-p1"', '"s1"').replace('"s1-p2"', '"s1-p1"')
    topology = load(tmp_path, text)
    assert {port: str(end) for port, (_, end) in topology.ports("s1").items()} == {1: "h2", 2: "h1"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('h1.ip = "10.0.0.1/24"', 'h1.ip = "10.0.0.1"', "hosts.h1.ip: '10.0.0.1' has no prefix"),
        ('h1.ip = "10.0.0.1/24"', 'h1.ip = "ten"', "hosts.h1.ip: 'ten' is not IPV4/LENGTH"),
        ('h1.ip = "10.0.0.1/24"', "h1.ip = 7", "hosts.h1.ip: expected `str`"),
        ('h1.ip = "10.0.0.1/24"', 'h1.mac = ""', "hosts.h1.ip: missing"),
        ('h2.ip = "10.0.0.2/24"', 'h2.ip = "10.0.0.1/24"', "10.0.0.1 is hosts.h1's too"),
        ('h2.ip = "10.0.0.2/24"', 'h2.ip = "10.0.0.254/24"', "aggregator_address: 10.0.0.254 is"),
        ('h2.ip = "10.0.0.2/24"', 'h2.ip = "10.0.0.2/24"\nh2.mac = "01:00:00:00:00:01"', "h2.mac"),
        ('h2.ip = "10.0.0.2/24"', 'h2.ip = "10.0.0.2/24"\nh3.ip = "10.0.0.3/24"', "hosts.h3: no l"),
        ("[switches.s1]", "[switches.switch12]", "links[0].ends: 's1-p1' is no host"),
        ("[switches.s1]", "[switches.s1]\n[switches.toolong_1]", "switches.toolong_1: a name"),
        ("[switches.s1]", "[switches.s1]\nloss_rate = 1.5", "switches.s1.loss_rate: expected"),
        (
            "[switches.s1]",
            '[switches.s1]\nkind = "tofino"',
            "switches.s1.kind: 'tofino' is none of",
        ),
        ("[switches.s1]", "[switches.s1]\n[switches.s2]", "hosts.h1: no way from s2"),
        ("[switches.s1]", "[switches.s1]\nspeed = 1", "switches.s1.speed: unknown key"),
        ('"s1-p2"', '"s1-p1"', "links[1].ends: s1-p1 has a link already"),
        ('"s1-p2"', '"s1-p0"', "links[1].ends: s1-p0: ports are 1 to 509"),
        ('["s1-p2", "h2"]', '["h1", "h2"]', "links[1].ends: h1 has a link already"),
        ('["s1-p2", "h2"]', '["s1-p2"]', "links[1].ends: 1 ends: want 2"),
        ('"h2"]', '"h2"]\nbandwidth_mbit = 0', "links[1].bandwidth_mbit: expected `float` > 0"),
        ("[hosts]", "colour = 1\n[hosts]", "colour: unknown key"),
        ("[hosts]", 'name = "Ä"\n[hosts]', "name: 'Ä': want"),
        ("[hosts]", 'aggregator = "s9"\n[hosts]', "aggregator: no switch s9"),
        ("[hosts]", 'aggregator_address = "x"\n[hosts]', "aggregator_address: 'x' is not"),
        ("[hosts]", "hosts]", "not TOML: "),
    ],
)
def test_a_mistake_is_named(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(TopologyError) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert str(caught.value).startswith(f"{tmp_path / 'Two hosts.toml'}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_loss_needs_a_soft_switch(tmp_path: Path) -> None:
    lossy = load(tmp_path, GOOD + "loss_rate = 0.01\n")
    assert with_kind(lossy, "soft").links[1].loss_rate == 0.01
    assert with_kind(lossy, "xdp").links[1].loss_rate == 0.01
    with pytest.raises(TopologyError, match=r"links\[1\]\.loss_rate: BMv2 loses no"):
        with_kind(lossy, "bmv2")
    of_switch = load(tmp_path, GOOD.replace("[switches.s1]", "[switches.s1]\nloss_rate = 0.1"))
    with pytest.raises(TopologyError, match=r"switches\.s1\.loss_rate: BMv2 loses no packets"):
        with_kind(of_switch, "bmv2")


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.*")), ids=lambda file: file.name)
def test_the_examples_are_right(file: Path) -> None:
    assert load_topology(file).hosts


@pytest.mark.parametrize(
    ("name", "says"),
    [("absent.toml", "No such file"), ("absent.json", "No such file"), ("a.yaml", "want .toml or")],
)
def test_a_file_that_cannot_be_read(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=says):
        load_topology(tmp_path / name)


def test_nobody_captures_at_the_kernels_ports(tmp_path: Path) -> None:
    topology = load(tmp_path, GOOD)
    check_capture(with_kind(topology, "soft"))
    with pytest.raises(TopologyError, match=r"--pcap: switch s1 is XDP's: .* at a host"):
        check_capture(with_kind(topology, "xdp"))
