"""``ina bench racks`` on small tensors, as a user runs it."""

from __future__ import annotations

import json

import pytest

from ina.bench.limits import crossings
from ina.bench.racks import rack_of
from ina.protocol.spec import HEADER_BYTES
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

SMALL = ("--repeats=3", "--seconds=0.2", "--json")


@pytest.mark.parametrize(
    "more", [(), pytest.param(("--unicast", "--spoil=2"), marks=pytest.mark.long)]
)
def test_sums_go_up_an_uplink_once(more: tuple[str, ...]) -> None:
    """Three workers: two in a rack, and one whose switch only forwards."""
    need("soft")
    case = ("--workers=3", "--sizes=64K", "--link=100mbit", "--uplink=50mbit", *SMALL, *more)
    ran = bench("racks", *case)
    spoilt = 6 if more else 0
    assert ran.code == (1 if spoilt else 0), ran.err
    document = json.loads(ran.out)
    rows = {row["backend"]: row for row in document["rows"]}
    assert set(rows) == {"ina", "gloo"}
    assert {(row["racks"], row["uplink"], row["size_bytes"]) for row in rows.values()} == {
        (2, "50mbit", 1 << 16)
    }
    assert (rows["ina"]["wrong"], rows["gloo"]["wrong"]) == (spoilt, 0)
    assert document["wrong"] == spoilt
    assert (rows["ina"]["transport"], rows["ina"]["multicast"]) == ("udp", not more)
    # 46 packets of 360 values; the uplink is the slowest link.
    wire_bytes = 65536 + 46 * (42 + HEADER_BYTES)
    assert rows["ina"]["limit_s"] == pytest.approx(wire_bytes * 8 / 5e7)
    assert rows["gloo"]["limit_s"] > rows["ina"]["limit_s"] * 1.3  # 2 (n - 1) / n times
    assert {ratio["name"] for ratio in document["ratios"]} >= {
        f"2 racks 100mbit, uplinks 50mbit udp n=3 64K ina/{of}" for of in ("gloo", "limit")
    }
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.long
def test_without_token_buckets_the_machine_is_the_limit() -> None:
    need("soft")
    ran = bench("racks", "--workers=2", "--sizes=64K", "--uplink=1gbit", "--unshaped", *SMALL)
    assert ran.code == 0, ran.err
    rows = [row for row in json.loads(ran.out)["rows"] if row["backend"] == "ina"]
    assert [row["uplink"] for row in rows] == ["1gbit", "unshaped"]
    assert all(row["limit_s"] > 0 for row in rows)
    assert ran.namespaces == []


def test_neighbours_are_in_one_rack() -> None:
    assert [rack_of(worker, 8, 2) for worker in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [rack_of(worker, 5, 3) for worker in range(5)] == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(("multicast", "count"), [(False, 20), (True, 14)])
def test_a_rack_has_a_way_up_and_one_down(multicast: bool, count: int) -> None:
    """8 up, 2 up, 2 down, and results to each of 8, or once in each of 2 racks."""
    assert crossings(8, multicast, racks=2) == count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "1"), "error: --workers 1: want 2 to 200"),
        (("--racks", "9"), "error: --racks 9: want 2 to 8 for 8 workers"),
        (("--racks", "33", "--workers", "40"), "error: --racks 33: want 2 to 32 for 40 workers"),
        (("--dtype", "x"), "error: --dtype x: the network sums int32, float"),
        (("--seconds", "0"), "error: --seconds 0: want more than 0"),
        (("--uplink", "1gbit,fast"), "error: --uplink fast: want a rate"),
        (("--link", "loopback"), "error: --link loopback: want a rate"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "racks", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
