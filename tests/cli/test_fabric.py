"""``ina fabric show`` and ``ina fabric plot``."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from ina.cli import main
from ina.cli.common.output import emit
from ina.cli.common.trees import indented
from ina.cli.fabric.plot import draw, layout
from ina.cli.fabric.view import view
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.operator import FABRIC, FakeController

Capture = pytest.CaptureFixture[str]


def test_show_has_the_switches_and_each_jobs_tree(address: str, capsys: Capture) -> None:
    assert main.run(["fabric", "show", "--controller", address]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["leaf1", "soft", "10.0.9.0:17760", "512", "of", "8192", "2", "9:", "spine"] in rows
    assert ["spine", "-", "2000", "1000", "0", "0"] in rows
    assert ["leaf1", "ranks", "0,", "1,", "3", "3000", "1000", "7", "1001"] in rows
    assert ["job", "next", "(joining,", "2", "workers)"] in rows
    assert ["not", "placed:", "some", "of", "its", "workers", "have", "not", "joined"] in rows


def test_a_link_has_its_rate_now_and_its_share_of_a_modelled_step(capsys: Capture) -> None:
    """An idle link may have all of the step that would come."""
    idle = pb2.FabricLink(
        switch_a="leaf1", port_a="9", switch_b="spine", port_b="1", rate_gbit=10, busy_s=0.5
    )
    used = pb2.FabricLink(
        switch_a="leaf2", port_a="9", switch_b="spine", port_b="2", rate_gbit=10, busy_s=0.25,
        bits_per_s=1e8, back_bits_per_s=2.5e9,
    )  # fmt: skip
    load = pb2.FabricLoad(step_s=0.5, limit="leaf1-spine", bound_s=0.5, bound="leaf1")
    emit({}, json=False, human=view(pb2.ShowFabricReply(links=[idle, used], load=load)))
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    heads = ["link", "ports", "rate", "now", "of", "a", "modelled", "step", "state"]
    assert heads in rows
    assert ["leaf1-spine", "9-1", "10", "Gbit/s", "0", "Gbit/s", "100%", "up"] in rows
    assert ["leaf2-spine", "9-2", "10", "Gbit/s", "2.5", "Gbit/s", "50%", "up"] in rows
    assert "a modelled step of all jobs takes 500 ms" in out
    assert "busy" not in out


def test_show_json_has_every_field(address: str, capsys: Capture) -> None:
    assert main.run(["fabric", "show", "--json", "--controller", address]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["jobs"][0]["nodes"][1]["passed_down"] == 1001
    assert said["links"][1]["port_b"] == "2"


def test_layers_are_by_distance_from_hosts() -> None:
    places = layout(FABRIC, 1.0)
    (x1, y1), (x2, y2), (x, y) = (places[name] for name in ("leaf1", "leaf2", "spine"))
    assert y1 == y2 < y
    assert x1 < x < x2


def test_the_picture_has_jobs_and_counters(
    address: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # text as text
    file = tmp_path / "fabric.svg"
    assert main.run(["fabric", "plot", str(file), "--controller", address]) == 0
    assert capsys.readouterr().out == f"{file}: 3 switches, 4 hosts, 2 jobs\n"
    drawn = file.read_text()
    for text in ("train, root", "train below spine", "1,000 sums of 3,000", "10.0.2.2"):
        assert text in drawn


def test_a_switch_out_of_reach_is_drawn_and_told_as_that(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lost = pb2.ShowFabricReply()
    lost.CopyFrom(FABRIC)
    lost.switches[1].unreachable = "it does not answer"
    draw(lost, tmp_path / "lost.png")
    assert (tmp_path / "lost.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["plot", "fabric.txt"], "fabric.txt: want a name that ends in .png, .svg, .pdf"),
        (["plot", "/nowhere/fabric.png"], "/nowhere/fabric.png: there is no folder /nowhere"),
    ],
)
def test_a_wrong_file_is_told_before_anybody_is_asked(
    words: list[str], says: str, capsys: Capture
) -> None:
    assert main.run(["fabric", *words, "--controller", "127.0.0.1:1"]) == 2
    assert capsys.readouterr().err == f"error: {says}\n"


def test_a_standbys_refusal_is_one_line(
    fake: FakeController, address: str, capsys: Capture
) -> None:
    fake.refuse = (grpc.StatusCode.UNAVAILABLE, "standby: another is primary")
    assert main.run(["fabric", "show", "--controller", address]) == 2
    assert capsys.readouterr().err == f"error: controller {address}: standby: another is primary\n"


def test_of_several_trees_each_is_shown_with_its_part_of_the_lanes(tmp_path: Path) -> None:
    nodes = [
        pb2.TreeNode(tree=tree, share=share, switch=name, parent=parent, **more)
        for tree, (share, root) in enumerate([(1, "spine1"), (3, "spine2")])
        for name, parent, more in (
            (root, "", {"children": ["leaf1", "leaf2"], "results": 100 * share}),
            ("leaf1", root, {"ranks": [0, 1], "results": 100 * share}),
            ("leaf2", root, {"ranks": [2, 3], "unread": "it is away"}),
        )
    ]
    shown = [(name, it.tree, it.results) for name, it in indented(nodes)]
    assert shown == [
        ("spine1 (1/4 of the lanes)", 0, 100),
        ("  leaf1", 0, 100),
        ("  leaf2", 0, 0),
        ("spine2 (3/4 of the lanes)", 1, 300),
        ("  leaf1", 1, 300),
        ("  leaf2", 1, 0),
    ]
    assert [name for name, _ in indented(nodes[:3])] == ["spine1", "  leaf1", "  leaf2"]
    pytest.importorskip("matplotlib")
    job = pb2.FabricJob(name="train", state="running", world_size=4, nodes=nodes)
    fabric = pb2.ShowFabricReply(
        switches=[pb2.FabricSwitch(name=it) for it in ("spine1", "spine2", "leaf1", "leaf2")],
        jobs=[job],
    )
    draw(fabric, tmp_path / "two.svg")
    assert (tmp_path / "two.svg").read_text().startswith("<?xml")
