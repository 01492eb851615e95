"""``ina bench sim``: the same star in namespaces and in virtual time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ina.bench import agreement as both
from ina.bench import star_real, star_sim
from ina.bench.star import burst_bytes, star
from ina.protocol.spec import HEADER_BYTES
from ina.sim.reading import load
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

CASE = both.AgreementCase(
    link="100mbit",
    rate_bit_s=1e8,
    queue_bytes=1 << 20,
    burst_bytes=burst_bytes(1e8),
    algorithm="adaptive",
    dtype="float32",
    elems=1 << 16,
    tensor_bytes=1 << 18,
    values=360,
    rounds=2,
    steps=3,
    seed=1,
)
COSTS = both.Costs(worker_packet_ns=900, switch_packet_ns=700, wake_us=40, wake_jitter_us=20)


def side(goodput: float, resends: int, lost: int = 0) -> both.Side:
    rest = {"overtaken": 0, "probes": resends - lost, "wrong": 0, "in_flight_limit": 256}
    return both.Side(goodput, goodput, goodput, sent=10_000, resends=resends, lost=lost, **rest)


@pytest.mark.parametrize(
    ("real", "sim", "goodput", "resends"),
    [
        (side(100.0, 0), side(104.9, 19), True, "too few"),
        (side(100.0, 0), side(95.1, 20), True, "no"),
        (side(100.0, 40), side(105.1, 20), False, "yes"),
        (side(100.0, 39), side(94.9, 19), False, "no"),
        (side(100.0, 20), side(100.0, 41), True, "no"),
    ],
)
def test_both_bounds_are_judged(
    real: both.Side, sim: both.Side, goodput: bool, resends: str
) -> None:
    found = both.agreement(2, 0.01, 0.0, real, sim, 0.0)
    assert (found.goodput_holds, found.resends_hold) == (goodput, resends)
    assert found.goodput_ratio == sim.goodput_mbit_s / real.goodput_mbit_s


def test_causes_have_ratios_of_their_own() -> None:
    found = both.agreement(2, 0.01, 0.0, side(100.0, 100, lost=90), side(100.0, 100, lost=45), 0.0)
    assert (found.lost_ratio, found.overtaken_ratio, found.probes_ratio) == (0.5, None, 5.5)


def test_rounds_come_to_their_median() -> None:
    rounds = [
        both.SideRun(seconds=seconds, sent=10, resends=3, lost=1, overtaken=1, probes=1)
        for seconds in (0.2, 0.1, 0.4)
    ]
    found = both.side(rounds, CASE, 0, 7)
    bits = 8 * CASE.tensor_bytes * CASE.steps
    assert found.goodput_mbit_s == pytest.approx(bits / 0.2 / 1e6)
    assert (found.sent, found.resends, found.in_flight_limit) == (30, 9, 7)


def test_wake_ups_are_found_again_whatever_else_a_core_has_to_do() -> None:
    chance = np.random.default_rng(1)
    sums_us = 10 + 4 * 40 + chance.exponential(25, (4, 2000)).sum(axis=0)
    assert star_real.wakes(sums_us, 10) == pytest.approx((40, 25), rel=0.1)
    sums_us[chance.random(2000) < 0.2] += 4000
    assert star_real.wakes(sums_us, 10) == pytest.approx((40, 25), rel=0.35)
    assert star_real.wakes([5.0, 20.0, 30.0], 10) == pytest.approx((0, 10 / 3.6721))


def test_the_simulated_star_is_as_fast_as_its_links() -> None:
    """What a step needs beside its frames on the link is less than three super-packets."""
    found = star_sim.run(star_sim.scenario(4, 0.0, CASE, COSTS), CASE)
    packets = -(-CASE.elems // CASE.values)
    wire_bytes = CASE.tensor_bytes + packets * (42 + HEADER_BYTES)
    link_mbit_s = 100 * CASE.tensor_bytes / wire_bytes
    step_s = 8 * CASE.tensor_bytes / found.goodput_mbit_s / 1e6
    assert found.wrong == found.resends == 0
    assert 0 <= found.sent - 4 * 6 * packets < 4 * 6 * 4  # a few that only agree on exponents
    assert found.goodput_mbit_s < link_mbit_s
    assert step_s < 8 * (wire_bytes + 3 * 65000) / CASE.rate_bit_s


@pytest.mark.parametrize("workers", [2, 8])
def test_the_simulated_star_loses_what_it_is_told_to(workers: int) -> None:
    case = replace(CASE, rounds=1, steps=10)
    found = star_sim.run(star_sim.scenario(workers, 0.01, case, COSTS), case)
    assert found.wrong == 0
    packets = 10 * workers * -(-case.elems // case.values)
    # 1 % of what goes up and of what comes down; of several workers that lose one chunk on its way
    # up, only the one that completes the sum knows.
    assert 0.01 * packets < found.lost < 1.2 * 2 * 0.01 * packets
    # Of what was sent again in one step it is known in the next what became of it.
    assert found.lost + found.overtaken + found.probes == pytest.approx(found.resends, rel=0.05)


def test_what_a_round_counts_is_its_own() -> None:
    """Two rounds of three steps are the steps of one run: what they count adds up."""
    case = replace(CASE, rounds=1, steps=6)
    whole = star_sim.run(star_sim.scenario(2, 0.01, case, COSTS), case)
    parts = star_sim.run(star_sim.scenario(2, 0.01, CASE, COSTS), CASE)
    assert (parts.sent, parts.resends, parts.lost) == (whole.sent, whole.resends, whole.lost)


def test_in_namespaces_sums_are_checked_and_losses_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need("soft")
    with star(2, "100mbit", 1e8, values=360, loss=0.05, seed=3) as made:
        found, apart_s = star_real.run(made, CASE)
        monkeypatch.setattr(star_real, "sums", lambda case, n, elems, steps: [1] * steps)
        false, _ = star_real.run(made, CASE)
    assert found.wrong == 0
    assert 0 <= apart_s < 60
    assert found.lost > 0
    assert found.sent >= 2 * 6 * -(-CASE.elems // CASE.values) + found.resends
    assert false.wrong == 2 * 7  # each rank's, of each step


def test_side_by_side(tmp_path: Path) -> None:
    need("soft")
    """docs/sim.md has the command on more."""
    small = (
        "--workers=2",
        "--size=128K",
        "--rounds=2",
        "--steps=2",
        "--losses=0.05",
        "--window=adaptive",
    )
    ran = bench("sim", *small, f"--scenarios={tmp_path}", f"--save={tmp_path}/r.json")
    assert ran.code == 0, ran.err
    assert (ran.left, ran.namespaces) == ([], [])
    for word in ("sim/real", "resent", "x2", "until a thread is awake"):
        assert word in ran.out
    saved = json.loads((tmp_path / "r.json").read_text())
    (row,) = saved["rows"]
    assert (row["workers"], row["loss"], saved["wrong"]) == (2, 0.05, 0)
    assert row["goodput_ratio"] == row["sim"]["goodput_mbit_s"] / row["real"]["goodput_mbit_s"]
    costs = both.Costs(**saved["settings"]["costs"])
    assert costs.worker_packet_ns > 0 < costs.switch_packet_ns
    # What was simulated can be run again, as a scenario.
    again = load(tmp_path / "star-2-0.05.json")
    case = replace(CASE, elems=1 << 15, tensor_bytes=1 << 17, rounds=2, steps=2)
    assert again == star_sim.scenario(2, 0.05, case, costs, row["apart_s"])
    assert star_sim.run(again, case).resends == row["sim"]["resends"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--losses", "0,1"), "error: --losses 1: want shares from 0 to 1, comma separated"),
        (("--window", "x"), "error: --window x: want ina, adaptive, fixed"),
        (("--dtype", "x"), "error: --dtype x: the network sums float32"),
        (("--size", "1K,2K"), "error: --size 1K,2K: want one size"),
        (("--link", "loopback"), "error: --link loopback: want a rate, as 100mbit"),
        (("--scenarios", "absent"), "error: --scenarios absent: there is no such folder"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] == "--scenarios":
        need("soft")
    ran = inside(capsys, "bench", "sim", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
