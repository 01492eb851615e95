"""``ina bench embedding`` on a small table, as a user runs it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.bench.embedding import LEAST_SAMPLES, EmbeddingOrder, deadline_s
from ina.protocol.spec import HEADER_BYTES
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need


def test_a_small_table_in_a_star_of_namespaces() -> None:
    need("soft")
    case = ("--workers=2", "--rows=3000", "--columns=8", "--lookups=200", "--link=100mbit")
    ran = bench("embedding", *case, "--repeats=3", "--seconds=0.0001", "--spoil=2", "--json")
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
    assert {row["samples"] for row in rows.values()} == {1}  # 3 want longer than 8 times 0.1 ms
    (note,) = (note for note in document["notes"] if note.startswith("samples: "))
    assert note.startswith("samples: 1 of each way with 2 workers, where 3 are wanted: one of each")
    assert note.endswith(" s, and --seconds is 0.0001")
    assert ran.left == []
    assert ran.namespaces == []


def _order(**what: Any) -> EmbeddingOrder:
    usual = {"rows": 1000, "columns": 64, "lookups": 50, "zipf": 1.0, "repeats": 5, "spoil": 0}
    return EmbeddingOrder(**{**usual, "seconds": 10.0, **what})


def _turns(order: EmbeddingOrder, turn_s: float) -> int:
    """That are measured after the first one, all of them as long."""
    turns = 0
    while order.goes_on(turns, (turns + 1) * turn_s):
        turns += 1
        assert turns < 1000
    return turns


@given(repeats=st.integers(3, 50), seconds=st.floats(0.1, 1000.0), turn_s=st.floats(1e-3, 10_000.0))
def test_slow_samples_are_fewer(repeats: int, seconds: float, turn_s: float) -> None:
    """A run of a busy machine at 200 Mbit/s never came to its third: it reached its deadline."""
    order = _order(repeats=repeats, seconds=seconds)
    turns = _turns(order, turn_s)
    assert turns <= repeats
    spent_s = (turns + 1) * turn_s
    if turns > LEAST_SAMPLES:
        assert spent_s <= seconds
    elif turns:
        assert spent_s <= 8 * seconds
    if turns < repeats:
        assert spent_s + turn_s > seconds  # there was no time for more


@pytest.mark.parametrize("rate_bit_s", [1e8, 1e9, None])
@pytest.mark.parametrize("turn_s", [0.1, 30.0, 150.0, 400.0])
@pytest.mark.parametrize("seconds", [0.2, 20.0, 60.0])
def test_what_is_slow_ends_before_its_deadline(
    rate_bit_s: float | None, turn_s: float, seconds: float
) -> None:
    where: Any = SimpleNamespace(workers=8, rate_bit_s=rate_bit_s)
    order = _order(rows=10_000_000, lookups=65536, seconds=seconds)
    assert (_turns(order, turn_s) + 1) * turn_s + 300 <= deadline_s(where, order, 360)


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
