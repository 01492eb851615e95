"""``ina bench fsdp``: the bound, and a run on a small model as a user's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ina.bench.fsdp import LOSS_SPREAD, WAYS, Sharded, least_bytes, ratios, rows
from ina.bench.torch.sharded import groups_of
from ina.bench.torch.training_tasks import Text
from ina.cli.bench.testbeds import Loopback
from tests.bench.command import bench
from tests.worlds.processes.command import inside

SMALL = ("--workers=2", "--layers=2", "--width=32", "--heads=2", "--steps=3", "--repeats=3")


@pytest.mark.parametrize(
    ("workers", "overlapped", "apart"), [(2, 1.25, 1.25), (4, 1.64, 1.31), (8, 1.80, 1.32)]
)
def test_bounds_are_the_designs(workers: int, overlapped: float, apart: float) -> None:
    groups = [Sharded(360 * 1000, 2)] * 3
    bytes_of = {way: least_bytes(way, groups, workers, 360) for way in WAYS}
    # Its headers are those of wires with preambles and gaps; these are the token buckets'.
    assert bytes_of["gloo"] / bytes_of["overlap"] == pytest.approx(overlapped, rel=0.012)
    assert bytes_of["gloo"] / bytes_of["ina"] == pytest.approx(apart, rel=0.012)


def test_what_stays_whole_is_gathered_once() -> None:
    for way in WAYS:
        once, twice = (least_bytes(way, [Sharded(36000, gathers)], 4, 360) for gathers in (1, 2))
        assert once < twice
    one = [Sharded(36000, 1)]  # its gradients have nothing to travel beside
    assert least_bytes("overlap", one, 4, 360) == least_bytes("ina", one, 4, 360)


def test_groups_are_what_fsdp2_makes() -> None:
    net = Text(layers=3, width=16, heads=2).net()
    groups = groups_of(net, 4)
    assert [group.gathers for group in groups] == [1, 2, 2, 2]
    in_all = sum(it.numel() for it in net.parameters())
    assert sum(group.part_elems for group in groups) * 4 == in_all  # all divide by four
    block = sum(it.numel() for it in net.get_submodule("blocks.0").parameters())
    assert groups[1].part_elems * 4 == block
    uneven = groups_of(net, 5)[0].part_elems  # 256 + 64 rows of 16, and twice 16 values
    assert uneven == (52 + 13) * 16 + 2 * 4


def record(losses: list[float]) -> dict[str, Any]:
    one = {"comm_s": [0.2] * 3, "step_s": [0.6] * 3, "losses": [5.0, 4.0], "moved": None}
    other = {"comm_s": [0.1] * 3, "step_s": [0.3] * 3, "losses": losses, "moved": [1e6, 2e6]}
    return {
        "parameters": 1000,
        "groups": [{"part_elems": 500, "gathers": 2}],
        "ways": {"gloo": {**one, "wrong": 0}, "overlap": {**other, "wrong": 0}},
    }


def test_losses_that_are_far_from_gloos_are_wrong() -> None:
    near, far = 4 * (1 + LOSS_SPREAD / 2), 4 * (1 + 2 * LOSS_SPREAD)
    _, ours = rows(Loopback(2), record([5.0, near]), 360)
    assert ours.wrong == 0
    assert ours.off == pytest.approx(LOSS_SPREAD / 2)
    _, ours = rows(Loopback(2), record([5.0, far]), 360)
    assert ours.wrong == 1
    assert (ours.gain, ours.step_gain, ours.limit_s, ours.bound) == (2.0, 2.0, None, None)
    assert {it.name for it in ratios([ours], "loopback")} == {
        "loopback n=2 overlap/gloo",
        "loopback n=2 overlap/gloo, whole step",
    }


def test_the_share_of_the_bound() -> None:
    star = Loopback(2, link="100mbit", rate_bit_s=1e8)
    gloo, ours = rows(star, record([5.0, 4.0]), 360)
    assert ours.limit_s == pytest.approx(
        least_bytes("overlap", [Sharded(500, 2)], 2, 360) * 8 / 1e8
    )
    assert gloo.limit_s is not None
    assert ours.limit_s is not None
    assert ours.bound is not None
    assert ours.bound == pytest.approx(gloo.limit_s / ours.limit_s)
    assert ours.bound_share == pytest.approx(2 / ours.bound)
    assert (gloo.bound, gloo.gain) == (1.0, 1.0)


def test_steps_bring_what_they_must_and_losses_are_gloos() -> None:
    ran = bench("fsdp", *SMALL, "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert [row["way"] for row in report["rows"]] == list(WAYS)
    net = Text(2, 32, 2).net()
    for row in report["rows"]:
        assert row["wrong"] == 0
        assert row["parameters"] == sum(it.numel() for it in net.parameters())
        assert len(row["losses"]) == 3
        assert row["off"] <= LOSS_SPREAD
    assert ran.left == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ways", "mpi"), "error: --ways mpi: want some of gloo, ina, overlap"),
        (("--width", "10", "--heads", "4"), "error: --width 10 --heads 4: want a multiple"),
        (("--link", "fast"), "error: --link fast: want a rate"),
        (("--repeats", "2"), "error: --repeats 2 --seconds 120: want >= 3"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "fsdp", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
