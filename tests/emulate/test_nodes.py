"""What follows from a topology: command lines, the controller's configuration, forwarding."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ina.controller.config import load_config
from ina.controller.errors import ConfigError
from ina.emulate.errors import TopologyError
from ina.emulate.load import load_topology
from ina.emulate.nodes import (
    BMV2,
    controller_config,
    controller_toml,
    require_switches,
    switch_command,
)
from ina.emulate.programming import FORWARD_DIR, plan_switches
from ina.emulate.topology import SwitchKind, Topology, with_kind
from ina.errors import MissingToolError
from ina.p4.compile import P4C, compile_program
from tests.selection import SWITCHES
from tests.worlds.processes.emulations import forwarding_of

RACKS = """
aggregator = "spine"
[hosts]
h1.ip = "10.0.0.1/24"
h2.ip = "10.0.0.2/24"
[switches]
leaf1 = {}
leaf2 = {}
spine = { loss_rate = 0.5 }
[[links]]
ends = ["h1", "leaf1-p1"]
[[links]]
ends = ["h2", "leaf2-p1"]
[[links]]
ends = ["leaf1-p9", "spine-p1"]
loss_rate = 0.1
[[links]]
ends = ["leaf2-p9", "spine-p2"]
"""


@pytest.fixture
def racks(tmp_path: Path) -> Topology:
    return load(tmp_path, RACKS)


def load(folder: Path, text: str) -> Topology:
    file = folder / "racks.toml"
    file.write_text(text)
    return load_topology(file)


def test_every_switch_forwards_to_hosts_and_to_the_aggregator(racks: Topology) -> None:
    plans = {plan.name: plan for plan in plan_switches(racks, 64)}
    ways = {name: forwarding_of(plan) for name, plan in plans.items()}
    h1, h2 = (host.mac for host in racks.hosts)
    spine = racks.switch_mac("spine")
    assert ways == {
        "leaf1": {h1: 1, h2: 9, spine: 9},
        "leaf2": {h1: 9, h2: 1, spine: 9},
        "spine": {h1: 1, h2: 2},
    }
    assert "forward" in plans["leaf1"].bmv2_json
    assert "pool" in plans["spine"].bmv2_json
    shared = {plan.name: plan for plan in plan_switches(racks, 64, "shared")}
    assert "shared" in shared["spine"].bmv2_json
    assert shared["leaf1"] == plans["leaf1"]


def test_the_controller_knows_where_the_hosts_are(racks: Topology, tmp_path: Path) -> None:
    config = controller_config(racks)
    assert config.switch.device_id == 3
    assert config.switch.grpc_addr == "127.0.0.1:50053"
    assert [(host.address, host.port) for host in config.hosts] == [
        ("10.0.0.1", 1),
        ("10.0.0.2", 2),
    ]
    file = tmp_path / "controller.toml"
    file.write_text(controller_toml(config.document()))
    assert load_config(file) == config


def test_a_job_over_the_kernel_has_no_shapes_as_small_frames_of_virtual_cables_have_no_room(
    tmp_path: Path,
) -> None:
    text = RACKS.replace("{ loss_rate = 0.5 }", "{}").replace("loss_rate = 0.1", "")
    assert controller_config(with_kind(load(tmp_path, text), "soft")).switch.expands
    assert not controller_config(with_kind(load(tmp_path, text), "xdp")).switch.expands


def test_bmv2_gets_a_small_window_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    text = RACKS.replace("{ loss_rate = 0.5 }", "{}").replace("loss_rate = 0.1", "")
    assert controller_config(with_kind(load(tmp_path, text), "soft")).switch.window_limit == 0
    assert controller_config(with_kind(load(tmp_path, text), "bmv2")).switch.window_limit == 16
    chosen = load(tmp_path, text + "[controller.switch]\nmax_window = 64\nvalues = 64\n")
    config = controller_config(with_kind(chosen, "bmv2"))
    assert (config.switch.window_limit, config.switch.values) == (64, 64)


@pytest.mark.parametrize("kind", [*SWITCHES, "xdp"])
def test_a_link_bears_the_largest_build(kind: SwitchKind, tmp_path: Path) -> None:
    text = RACKS.replace("{ loss_rate = 0.5 }", "{}").replace("loss_rate = 0.1", "")
    network = with_kind(load(tmp_path, text + "[controller.switch]\nvalues = 0\n"), kind)
    assert controller_config(network).switch.values == 360


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('[controller]\nlisten = "x:1"', "controller.listen: follows from the topology"),
        ('[controller.switch]\ngrpc_addr = "x:1"', "controller.switch.grpc_addr: follows from"),
        ("[controller]\nswitch = 7", "controller.switch: want a table"),
        ("[controller.jobs]\nslots = 3", "controller: jobs.slots: "),
        ("[controller]\ncolour = 3", "controller: colour: unknown key"),
    ],
)
def test_a_wrong_controller_key_is_named(table: str, says: str, tmp_path: Path) -> None:
    topology = load(tmp_path, RACKS + table + "\n")
    with pytest.raises((TopologyError, ConfigError)) as caught:
        controller_config(topology)
    assert says in str(caught.value)


def test_a_links_loss_is_brought_about_once(racks: Topology) -> None:
    commands = {switch.name: switch_command(racks, switch) for switch in racks.switches}
    losses = {
        name: [part for part in command if part.startswith("--port-loss")]
        for name, command in commands.items()
    }
    assert losses == {"leaf1": ["--port-loss=9=0.1"], "leaf2": [], "spine": []}
    both = commands["spine"]
    assert both[both.index("--loss-rate") + 1] == "0.5"


@pytest.mark.parametrize("has_thrift", [True, False])
def test_bmv2_switches_share_no_port_of_the_namespace(
    has_thrift: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A BMv2 that was built without Thrift refuses its option."""
    fake = tmp_path / BMV2
    fake.write_text(f"#!/bin/sh\necho '{'--thrift-port arg' if has_thrift else ''}' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    text = RACKS.replace("{ loss_rate = 0.5 }", "{}").replace("loss_rate = 0.1", "")
    topology = with_kind(load(tmp_path, text), "bmv2")
    commands = [switch_command(topology, switch) for switch in topology.switches]
    for option in ("--grpc-server-addr", "--device-id", *(["--thrift-port"] * has_thrift)):
        assert len({command[command.index(option) + 1] for command in commands}) == 3
    assert ("--thrift-port" in commands[0]) is has_thrift
    assert "--interface=9@leaf1-p9" in commands[0]


def test_without_bmv2_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = RACKS.replace("{ loss_rate = 0.5 }", "{}").replace("loss_rate = 0.1", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        MissingToolError, match=r"simple_switch_grpc is not on PATH: .*--switch soft$"
    ):
        require_switches(with_kind(load(tmp_path, text), "bmv2"))


@pytest.mark.skipif(shutil.which(P4C) is None, reason=f"needs {P4C} on PATH: install p4c")
def test_the_forwarding_program_is_the_compiled_source(tmp_path: Path) -> None:
    made = compile_program(FORWARD_DIR / "forward.p4", tmp_path, "forward")
    for file in made:
        said, expected = file.read_text(), (FORWARD_DIR / file.name).read_text()
        if file.suffix == ".json":
            said, expected = without_origin(said), without_origin(expected)
        assert said == expected


def without_origin(program: str) -> str:
    """Of BMv2's JSON, without where on this machine its sources were."""
    document = json.loads(program)
    document.pop("ina", None)
    document["__meta__"].pop("ina", None)
    return json.dumps(document, indent=1)
