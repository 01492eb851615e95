"""Links and hosts of the controller's file, and of a tutorials' topology.json that it names."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from ina.controller.config import Config, load_config, make_config, with_build
from ina.controller.config.tables import SwitchConfig
from ina.controller.config.topology import fabric_of
from ina.controller.errors import ConfigError
from ina.fabric.graph import Fabric, Link, Place
from ina.p4 import catalogue
from ina.p4.catalogue import PROGRAMS, ProgramId

NAMES = ("leaf1", "leaf2", "spine")
SWITCHES = "".join(
    f"[[switch]]\nname='{name}'\ngrpc_addr='{name}:1'\ndata_host='10.0.9.{number}'\n"
    for number, name in enumerate(NAMES)
)
LINKS = """[[link]]
switches = ["leaf1", "spine"]
ports = [9, 1]
[[link]]
switches = ["leaf2", "spine"]
ports = [9, 2]
"""
HOSTS = """[[host]]
address = "10.0.1.1"
switch = "leaf1"
port = 2
mac = "02:00:00:00:01:01"
[[host]]
address = "10.0.2.1"
switch = "leaf2"
"""


def read(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "controller.toml"
    path.write_text(text)
    return load_config(path)


def described(fabric: Fabric) -> tuple[Any, ...]:
    return fabric.switches, fabric.links, fabric.hosts


def test_a_fabric_is_read(tmp_path: Path) -> None:
    config = read(tmp_path, SWITCHES + LINKS + HOSTS)
    assert config.is_fabric
    assert described(fabric_of(config)) == (
        NAMES,
        (Link(("leaf1", "spine"), (9, 1)), Link(("leaf2", "spine"), (9, 2))),
        {
            IPv4Address("10.0.1.1"): Place("leaf1", 2, 0x020000000101),
            IPv4Address("10.0.2.1"): Place("leaf2", 1),
        },
    )
    assert config.ports_of(config.switches[0]) == [1, 2, 9]
    assert make_config(config.document(), "again") == config


def test_links_without_ports_are_behind_the_data_ports(tmp_path: Path) -> None:
    """As of soft switches, whose UDP port is one for all."""
    text = SWITCHES.replace("data_host='10.0.9.2'", "data_host='10.0.9.2'\ndata_port=7")
    text += "[[link]]\nswitches=['leaf1','spine']\n[[link]]\nswitches=['spine','leaf2']\n"
    fabric = fabric_of(read(tmp_path, text))
    assert [link.ports for link in fabric.links] == [(1, 7), (7, 1)]


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("", False),
        ("placement = 'nearest'\n", True),
        (f"placement = 'first'\n{SWITCHES}{LINKS}", False),
        (SWITCHES, False),
        (SWITCHES + LINKS, True),
    ],
)
def test_links_make_placement_nearest(text: str, nearest: bool, tmp_path: Path) -> None:
    assert read(tmp_path, text).is_fabric is nearest


def link(*ends: str, ports: str = "") -> str:
    return f"[[link]]\nswitches={list(ends)}\n" + (f"ports={ports}\n" if ports else "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (link("leaf1", "leaf1"), r"link[0].switches: 'leaf1' is at both ends"),
        (LINKS + link("leaf1", "tor"), r"link[2].switches: no switch is called 'tor'"),
        (
            LINKS + link("leaf2", "leaf1", ports="[3, 9]"),
            "link[2].ports: port 9 of 'leaf1' is link[0]'s, too",
        ),
        (
            "[[host]]\naddress='10.0.1.1'\nswitch='spine'\nport=2\n" + LINKS,
            "link[1].ports: port 2 of 'spine' is host[0]'s, too",
        ),
        (link("leaf1", "spine", ports="[3, 999]"), "link[0].ports[1]: expected `int` <= 511"),
        (link("leaf1", "spine", ports="[3, 511]"), "link[0].ports: 511 is not 1 to 510"),
        (link("leaf1", "spine", ports="['1/0', 3]"), "link[0].ports: '1/0': only a Tofino behind"),
        (link("leaf1", "spine", ports="[3]"), "link[0].ports: expected `array` of length 2, got 1"),
        (link("leaf1"), "link[0].switches: expected `array` of length 2, got 1"),
        (
            LINKS + HOSTS + "[[host]]\naddress='10.0.1.1'\nswitch='leaf2'\n",
            "host[2].switch: 10.0.1.1 is behind 'leaf1', too (host[0]), and a worker sends to one",
        ),
        (LINKS + "[[host]]\naddress='10.0.1.1'\n", "host[0].switch: which one? there are several"),
        (
            LINKS.replace("[[link]]", "values=64\n[[link]]", 1),
            "link[0].switches: 'leaf1' 256 and 'spine' 64 values a packet: want the same on both",
        ),
        (
            "[[host]]\naddress='10.0.1.1'\n[[hosts]]\naddress='10.0.1.2'\n",
            "hosts: unknown key",
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, SWITCHES + text)
    said = str(caught.value)
    assert said.removeprefix(f"{tmp_path}/controller.toml: ").startswith(message)
    assert "\n" not in said


def test_a_placement_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"placement: no placement 'random': have first, ina"):
        read(tmp_path, "placement = 'random'")


def test_a_switch_without_the_program_for_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ProgramId("pool", "v1model", 256)
    without = {**PROGRAMS, pool: replace(PROGRAMS[pool], trees=False)}
    assert read(tmp_path, SWITCHES + LINKS)
    monkeypatch.setattr(catalogue, "PROGRAMS", without)
    with pytest.raises(
        ConfigError,
        match=r"link\[0\]\.switches: 'leaf1' runs the program pool, 256 values a packet, which can",
    ):
        read(tmp_path, SWITCHES + LINKS)
    assert read(tmp_path, SWITCHES + HOSTS)  # an island needs none


def test_builds_that_paths_choose_must_agree(tmp_path: Path) -> None:
    text = (SWITCHES + "values = 64\n" + LINKS).replace("name='leaf", "values = 0\nname='leaf")
    config = read(tmp_path, text)
    with pytest.raises(
        ConfigError, match=r"link\[0\]\.switches: 'leaf1' 360 and 'spine' 64 values"
    ):
        with_build(config, 1500)


TOPOLOGY: dict[str, Any] = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/24", "mac": "02:00:00:00:01:01"},
        "h2": {"ip": "10.0.2.1/24", "commands": ["route add default gw 10.0.2.10 dev eth0"]},
    },
    "switches": {"leaf1": {"runtime_json": "x.json"}, "leaf2": {}, "spine": {}},
    "links": [
        ["h1", "leaf1-p2"],
        ["leaf2-p1", "h2", "0", 100],
        ["leaf1-p9", "spine-p1"],
        ["leaf2-p9", "spine-p2"],
    ],
}


def with_topology(tmp_path: Path, topology: Any, text: str = SWITCHES) -> Config:
    (tmp_path / "topology.json").write_text(json.dumps(topology))
    return read(tmp_path, f"topology = 'topology.json'\n{text}")


def test_the_topology_of_a_tutorial_says_the_same(tmp_path: Path) -> None:
    config = with_topology(tmp_path, TOPOLOGY)
    assert described(fabric_of(config)) == described(
        fabric_of(read(tmp_path, SWITCHES + LINKS + HOSTS + "rate_gbit = 0.1\n"))
    )
    assert make_config(config.document(), "again") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"links": [["h1", "leaf1-p2"]]}, "hosts.h2: no link ends here: it is behind no switch"),
        (
            {"links": [*TOPOLOGY["links"], ["h1", "leaf2-p3"]]},
            "links[4]: h1 is behind a switch already",
        ),
        (
            {"links": [*TOPOLOGY["links"], ["leaf2-p3", "leaf1-p2"]]},
            "links[4]: leaf1-p2 has a link already",
        ),
        ({"links": [["h1", "h2"]]}, "links[0]: hosts at both ends"),
        ({"links": [["h1", "leaf1-p2", "0", "fast"]]}, "links[0]: bandwidth 'fast': want Mbit/s"),
        ({"links": [["h1", "leaf1-p2", "0", -1]]}, "links[0]: bandwidth -1: want Mbit/s"),
        (
            {"links": [["h1", "leaf1"]]},
            "links[0]: 'leaf1' is no host and no switch's port (as s1-p1",
        ),
        ({"links": [["h1"]]}, "links[0]: 1 parts: want 2 ends, latency, bandwidth"),
        ({"switches": {"s9": {}}}, "switches.s9: no [[switch]] has this name"),
        ({"hosts": {"h1": {"ip": "here"}, "h2": {"ip": "x"}}}, "hosts.h1.ip: 'here' is not IPV4/"),
        ({"hosts": {"h1": {}}}, "hosts.h1.ip: missing"),
        ({"hosts": []}, "hosts: expected `object`, got `array`"),
    ],
)
def test_what_is_wrong_with_a_topology_is_named(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        with_topology(tmp_path, {**TOPOLOGY, **changes})
    where = f"{tmp_path}/controller.toml: topology: {tmp_path}/topology.json: "
    assert str(caught.value).removeprefix(where).startswith(message)


def test_a_topology_says_it_all_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"topology: topology\.json says it: leave out link"):
        with_topology(tmp_path, TOPOLOGY, SWITCHES + LINKS)
    with pytest.raises(ConfigError, match=r"topology: .*nowhere\.json: No such file"):
        read(tmp_path, f"topology = 'nowhere.json'\n{SWITCHES}")
    with pytest.raises(ConfigError, match=r"topology: want the path of a topology\.json"):
        read(tmp_path, f"topology = 3\n{SWITCHES}")
    crossed = {**TOPOLOGY, "links": [*TOPOLOGY["links"], ["spine-p8", "spine-p9"]]}
    with pytest.raises(ConfigError, match=r"link\[2\]\.switches: 'spine' is at both ends"):
        with_topology(tmp_path, crossed)


def test_a_host_may_be_behind_two_switches_where_jobs_go_to_the_first(tmp_path: Path) -> None:
    text = "placement='first'\n" + SWITCHES + HOSTS
    config = read(tmp_path, text + "[[host]]\naddress='10.0.1.1'\nswitch='leaf2'\nport=4\n")
    assert [config.endpoints(it)[IPv4Address("10.0.1.1")][0] for it in config.switches[:2]] == [
        2,
        4,
    ]
    assert isinstance(config.switches[0], SwitchConfig)
