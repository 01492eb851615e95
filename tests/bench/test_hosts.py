"""``ina bench hosts`` on small tensors, as a user runs it."""

from __future__ import annotations

import json

import pytest

from ina.bench.limits import ina_wire_bytes, ring_wire_bytes
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

SMALL = ("--repeats=3", "--seconds=0.2", "--json")


@pytest.mark.parametrize(
    "more", [(), pytest.param(("--unicast", "--spoil=2"), marks=pytest.mark.long)]
)
def test_a_tensor_crosses_a_host_s_link_once_with_nodes(more: tuple[str, ...]) -> None:
    need("soft")
    case = ("--hosts=2", "--ranks=2", "--sizes=64K", "--link=50mbit", *SMALL, *more)
    ran = bench("hosts", *case)
    spoilt = 8 if more else 0  # of each of the four ranks
    assert ran.code == (1 if spoilt else 0), ran.err
    document = json.loads(ran.out)
    rows = {(row["backend"], row["host_node"]): row for row in document["rows"]}
    assert set(rows) == {("ina", True), ("ina", False), ("gloo", None)}
    assert {(row["hosts"], row["workers"], row["link"]) for row in rows.values()} == {
        (2, 4, "50mbit")
    }
    nodes, without, gloo = rows["ina", True], rows["ina", False], rows["gloo", None]
    assert [row["wrong"] for row in (nodes, without, gloo)] == [spoilt, spoilt, 0]
    assert document["wrong"] == 2 * spoilt
    # Results come to nodes one by one; their ranks are on shared memory.
    assert [row["transport"] for row in (nodes, without, gloo)] == ["shm", "udp", "tcp"]
    assert [row["multicast"] for row in (nodes, without)] == [False, not more]
    wire_s = ina_wire_bytes(1 << 14, 360) * 8 / 5e7
    assert nodes["limit_s"] == pytest.approx(wire_s)
    assert without["limit_s"] == pytest.approx(2 * wire_s)
    assert gloo["limit_s"] == pytest.approx(ring_wire_bytes(1 << 16, 4) * 8 / 5e7)
    assert nodes["nodeless"] == pytest.approx(without["time_s"] / nodes["time_s"])
    assert nodes["limit_gain"] == pytest.approx(without["limit_s"] / nodes["time_s"])
    assert (without["nodeless"], without["limit_gain"]) == (None, None)
    case_name = "2 hosts 50mbit shm n=4 64K with nodes"
    assert {ratio["name"] for ratio in document["ratios"]} >= {
        *(f"{case_name} ina/{of}" for of in ("without", "gloo", "limit")),
        "2 hosts 50mbit udp n=4 64K without nodes ina/gloo",
        "2 hosts 50mbit n=4 64K with nodes/limit without",
    }
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.long
def test_without_token_buckets_what_crosses_udp_is_the_limit() -> None:
    need("soft")
    ran = bench("hosts", "--hosts=2", "--ranks=2", "--sizes=64K", "--unshaped", *SMALL)
    assert ran.code == 0, ran.err
    rows = [row for row in json.loads(ran.out)["rows"] if row["backend"] == "ina"]
    assert [row["link"] for row in rows] == ["1gbit", "1gbit", "unshaped", "unshaped"]
    with_nodes, without = rows[2:]
    # Of one rate: two hosts up and down, and four ranks up and one result to all of them.
    assert with_nodes["limit_s"] / without["limit_s"] == pytest.approx(4 / 5)
    assert ran.namespaces == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ranks", "1"), "error: --ranks 1: want 2 to 32"),
        (("--ranks", "33"), "error: --ranks 33: want 2 to 32"),
        (("--hosts", "0"), "error: --hosts 0: want 1 to 8 of 4 ranks"),
        (("--hosts", "5", "--ranks", "8"), "error: --hosts 5: want 1 to 4 of 8 ranks"),
        (("--dtype", "x"), "error: --dtype x: the network sums int32, float"),
        (("--seconds", "0"), "error: --seconds 0: want more than 0"),
        (("--link", "1gbit,fast"), "error: --link fast: want a rate"),
        (("--link", "loopback"), "error: --link loopback: want a rate"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "hosts", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
