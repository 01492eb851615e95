"""``ina bench blocks`` on small arrays, as a user runs it."""

from __future__ import annotations

import json

import pytest

from ina.protocol.spec import HEADER_BYTES
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need


def test_densities_in_a_star_of_namespaces() -> None:
    need("soft")
    case = ("--workers=2", "--size=144000", "--arrays=2", "--densities=0,10,100", "--spoil=1")
    ran = bench("blocks", *case, "--link=100mbit", "--repeats=3", "--seconds=0.2", "--json")
    assert ran.code == 1, ran.err  # for what is spoilt
    document = json.loads(ran.out)
    rows = {(row["blocks"], round(row["density"], 3)): row for row in document["rows"]}
    assert list(rows) == [(it, share) for it in ("same", "independent") for share in (0, 0.1, 1)]
    # One value of each of two ranks, sparse and dense.
    assert {row["wrong"] for row in rows.values()} == {4}
    assert rows["same", 0.1]["union"] == 0.1
    assert 0.1 <= rows["independent", 0.1]["union"] <= 0.2
    assert {row["union"] for row in rows.values() if row["density"] > 0.9} == {1.0}
    # Of two arrays of 50 blocks: a packet of counters, 2 bits each, and 5 or 50 of 360 values.
    packet_bytes = 42 + HEADER_BYTES
    for share, blocks in ((0, 0), (0.1, 5), (1, 50)):
        wire_bytes = 2 * (4 * 4 + packet_bytes + blocks * (360 * 4 + packet_bytes))
        assert rows["same", share]["limit_s"] == pytest.approx(wire_bytes * 8 / 1e8)
    names = {ratio["name"] for ratio in document["ratios"]}
    assert {"limit/sparse n=2 same 10.00%", "dense/sparse n=2 independent 100.00%"} <= names
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--densities", "1,101"), "error: --densities 1,101: want 0 to 100, comma separated"),
        (("--densities", "some"), "error: --densities some: want 0 to 100, comma separated"),
        (("--size", "1M,2M"), "error: --size 1M,2M: want one"),
        (("--size", "64", "--arrays", "17"), "error: --arrays 17: there are 16 values"),
        (("--link", "loopback"), "error: --link loopback: want unshaped, or a rate as 1gbit"),
        (("--dtype", "x"), "error: --dtype x: the network sums int32, float"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "blocks", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
