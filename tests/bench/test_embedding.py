"""``ina bench embedding`` on a small table, as a user runs it."""

from __future__ import annotations

import json

import pytest

from ina.protocol.spec import HEADER_BYTES
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need


def test_a_small_table_in_a_star_of_namespaces() -> None:
    need("soft")
    case = ("--workers=2", "--rows=3000", "--columns=8", "--lookups=200", "--link=100mbit")
    ran = bench("embedding", *case, "--repeats=3", "--seconds=0.2", "--spoil=2", "--json")
    assert ran.code == 1, ran.err  # for what is spoilt
    document = json.loads(ran.out)
    rows = {row["way"]: row for row in document["rows"]}
    assert list(rows) == ["ina sparse", "gloo sparse", "ina dense", "gloo dense"]
    assert {row["wrong"] for row in rows.values()} == {4}  # two on each of two ranks
    assert len({(row["density"], row["union"]) for row in rows.values()}) == 1
    ours, dense = rows["ina sparse"], rows["ina dense"]
    assert 0 < ours["density"] < ours["union"] < 2 * 200 / 3000
    # Rows of 8 values in packets of 360, and 2 bits of a counter for each row.
    elems, packet_bytes = round(ours["union"] * 3000) * 8, 42 + HEADER_BYTES
    counters = -(-3000 // 16)
    packets = -(-elems // 360) + -(-counters // 360)
    wire_bytes = 4 * (elems + counters) + packets * packet_bytes
    assert ours["limit_s"] == pytest.approx(wire_bytes * 8 / 1e8)
    assert ours["sent_bytes"] >= wire_bytes
    assert dense["sent_bytes"] > 3000 * 8 * 4 > 2 * ours["sent_bytes"]
    assert rows["gloo sparse"]["received_bytes"] > 0
    names = {ratio["name"] for ratio in document["ratios"]}
    assert "100mbit n=2 gloo sparse/ina sparse" in names
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--zipf", "11"), "error: --zipf 11: want 0 to 10"),
        (("--repeats", "2"), "error: --repeats 2 --seconds 60: want >= 3 and > 0"),
        (("--workers", "0"), "error: --workers 0"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "embedding", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
