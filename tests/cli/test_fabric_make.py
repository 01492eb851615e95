"""``ina fabric make``, ``check`` and the picture of a large fabric."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ina.cli.fabric.dense_plot import draw_dense, rows
from ina.controller.config import load_config
from ina.controller.config.topology import fabric_of
from ina.fabric.shapes import fat_tree, leaf_spine
from ina.rpc import controller_pb2 as pb2
from tests.worlds.processes.command import inside


@pytest.mark.parametrize(
    ("words", "fabric"),
    [
        (("fat-tree", "--k", "4"), fat_tree(4)),
        (("leaf-spine", "--spines", "2", "--leaves", "3", "--hosts", "3"), leaf_spine(2, 3, 3)),
    ],
)
def test_what_is_made_is_a_controllers_file(
    words: tuple[str, ...], fabric: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fabric.toml"
    assert inside(capsys, "fabric", "make", *words, "-o", file).code == 0
    read = fabric_of(load_config(file))
    assert isinstance(fabric, type(read))
    assert read.switches == fabric.switches
    assert read.links == fabric.links
    assert list(read.hosts) == list(fabric.hosts)


def test_a_shape_that_cannot_be_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    done = inside(capsys, "fabric", "make", "fat-tree", "--k", "5")
    assert done.code == 2
    assert "fat-tree: k 5: want an even number" in done.err


JSON = {
    "lldp": {
        "interface": [
            {"Ethernet2": {"chassis": {"spine1": {}}, "port": {"descr": "Ethernet1"}}},
            {"Ethernet7": {"chassis": {"spine2.dc": {}}, "port": {"descr": "Ethernet1"}}},
            {"eth9": {"chassis": {"leaf2": {}}, "port": {"id": {"value": "eth9"}}}},
            {"eth10": {"chassis": {"printer": {}}, "port": {"descr": "x"}}},
        ]
    }
}
"""As lldpcli writes it with -f json."""
JSON0 = {
    "lldp": [
        {
            "interface": [
                {
                    "name": "swp3",
                    "chassis": [{"name": [{"value": "leaf1"}]}],
                    "port": [{"descr": [{"value": "swp2"}]}],
                }
            ]
        }
    ]
}
"""And with -f json0."""


def _made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = tmp_path / "fabric.toml"
    shape = ("leaf-spine", "--spines", "2", "--leaves", "2", "--hosts", "1")
    assert inside(capsys, "fabric", "make", *shape, "-o", file).code == 0
    return file


def test_links_are_compared_with_what_neighbours_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _made(tmp_path, capsys)
    (tmp_path / "leaf1.json").write_text(json.dumps(JSON))
    (tmp_path / "spine1.json").write_text(json.dumps(JSON0))
    lldp = [f"--lldp=leaf1={tmp_path / 'leaf1.json'}", f"--lldp=spine1={tmp_path / 'spine1.json'}"]
    done = inside(capsys, "fabric", "check", file, *lldp)
    assert done.code == 1
    assert done.out.splitlines() == [
        "link leaf1-spine1: the file says port 1 of spine1, and leaf1 is heard at swp3",
        "link leaf1-spine2: the file says port 3 of leaf1, and spine2 is heard at Ethernet7",
        "link leaf2-spine1: spine1 hears nothing of leaf2",
        "leaf1 hears leaf2 at eth9, and the file has no link between them",
    ]


def test_neighbours_that_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _made(tmp_path, capsys)
    agree = {
        "lldp": {
            "interface": {
                "Ethernet2": {"chassis": {"spine1": {}}, "port": {"descr": "1"}},
                "Ethernet3": {"chassis": {"spine2": {}}, "port": {"descr": "1"}},
            }
        }
    }
    (tmp_path / "leaf1.json").write_text(json.dumps(agree))
    done = inside(capsys, "fabric", "check", file, f"--lldp=leaf1={tmp_path / 'leaf1.json'}")
    assert (done.code, done.out) == (0, f"{file}: as 1 switch hears\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("leaf9={}", "want SWITCH=FILE, of a switch of"),
        ("leaf1", "want SWITCH=FILE"),
        ("leaf1={}/nothing.json", "nothing.json: No such file"),
        ("leaf1={}/bad.json", "not what `lldpcli show neighbors -f json` prints"),
    ],
)
def test_what_is_no_word_of_neighbours_is_one_line(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _made(tmp_path, capsys)
    (tmp_path / "bad.json").write_text('{"lldp": {"interface": 3}}')
    done = inside(capsys, "fabric", "check", file, f"--lldp={text.format(tmp_path)}")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert says in done.err


def _shown(ports: int) -> pb2.ShowFabricReply:
    fabric = fat_tree(ports)
    shown = pb2.ShowFabricReply(
        load=pb2.FabricLoad(step_s=1.0, bound_s=0.8, limit="edge0-0-agg0-0")
    )
    for name in fabric.switches:
        shown.switches.add(name=name, target="soft", slots_total=1024)
    for number, link in enumerate(fabric.links):
        one, other = link.switches
        shown.links.add(switch_a=one, switch_b=other, busy_s=number % 3 / 2, down=number == 5)
    for address, place in fabric.hosts.items():
        shown.hosts.add(address=str(address), switch=place.switch)
    job = shown.jobs.add(name="train", state="running", world_size=2)
    job.nodes.add(switch="agg0-0", children=["edge0-0", "edge0-1"])
    job.nodes.add(switch="edge0-0", parent="agg0-0", ranks=[0])
    job.nodes.add(switch="edge0-1", parent="agg0-0", ranks=[1])
    return shown


def test_rows_of_a_fat_tree_are_its_levels() -> None:
    places = rows(_shown(4))
    by_height: dict[float, list[str]] = {}
    for name, (_, y) in places.items():
        by_height.setdefault(y, []).append(name)
    assert [sorted({name[:4] for name in by_height[y]}) for y in sorted(by_height)] == [
        ["edge"],
        ["agg0", "agg1", "agg2", "agg3"],
        ["core"],
    ]
    assert len(set(places.values())) == len(places)


@pytest.mark.parametrize("job", ["", "train"])
def test_a_fabric_of_80_switches_is_drawn(job: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "fabric.svg"
    draw_dense(_shown(8), file, job)
    text = file.read_text()
    assert text.count("core0-0") >= 1
    assert ("#1b9e77" in text) is bool(job)
