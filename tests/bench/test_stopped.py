"""``ina bench stopped``: what it makes of what a trial saw; and once as a user runs it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ina.bench.stopped import _look, _measurement, ratios
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need


@pytest.mark.long
def test_a_stopped_job_s_neighbour_has_exact_sums() -> None:
    need("soft")
    case = ("--slot-age-us=50000", "--slots=16", "--size=16K", "--round-trip-us=500")
    ran = bench("stopped", *case, "--trials=1", "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert [(row["slot_age_us"], row["who"]) for row in document["rows"]] == [
        (50000, "one"),
        (50000, "all"),
    ]
    for row in document["rows"]:
        assert row["wrong"] == 0
        assert row["trials"] == 1
        assert min(row["before_s"], row["later_s"]) > 0
        assert row["longest_s"] >= row["later_s"]
        assert (row["taken_packets"] == 0) or row["taken_until_s"] > 0
    assert ran.left == []
    assert ran.namespaces == []


def seen(**more: Any) -> dict[str, Any]:
    """Sums of 10 ms before a stop, of 25 while slots are held for 100 ms, then of 5."""
    sums = [(-0.5 + 0.01 * i, 0.010) for i in range(50)]
    sums += [(0.025 * i, 0.025) for i in range(4)]
    sums += [(0.1 + 0.005 * i, 0.005) for i in range(60)]
    collisions = [(-0.02, 7), (-0.01, 9), (0.05, 60), (0.11, 109), (0.12, 109), (0.39, 109),
                  (0.41, 500)]  # fmt: skip
    return {"who": "one", "sums": sums, "collisions": collisions, "wrong": 2, **more}


def test_a_trial_is_cut_where_slots_are_free_again() -> None:
    look = _look(seen(), 100_000, 0.4)
    assert (look.before_s, look.held_s, look.later_s) == (0.010, 0.025, 0.005)
    assert look.longest_s == 0.025
    assert look.cost_s == pytest.approx(4 * 0.015)
    # What came before the stop, and after it was over, is nothing that it cost.
    assert (look.taken, look.taken_until_s) == (100, 0.11)
    (row,) = [_measurement(100_000, "one", [look, look])]
    assert (row.taken_packets, row.wrong, row.trials) == (100, 4, 2)
    (ratio,) = ratios([row])
    assert ratio.value == pytest.approx(0.4)


def test_slots_that_nobody_misses_cost_nothing() -> None:
    look = _look(seen(collisions=[(-0.01, 9), (0.01, 9)]), 100_000, 0.4)
    assert (look.taken, look.taken_until_s) == (0, 0.0)
    faster = [(-0.1, 0.010), (0.01, 0.004), (0.2, 0.004)]
    assert _look(seen(sums=faster), 100_000, 0.4).cost_s == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "33"), "error: --workers 33: want 2 to 32"),
        (("--slots", "100"), "error: --slots 100: want a power of two, 2 to 1024"),
        (("--slot-age-us", "2000000"), "error: --slot-age-us 2000000: want integers from 1000"),
        (("--size", "1M,2M"), "error: --size 1M,2M: want one size"),
        (("--link", "loopback"), "error: --link loopback: want a rate"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "stopped", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
