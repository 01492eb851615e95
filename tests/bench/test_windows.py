"""``ina bench windows``: what it makes of what ranks and queues counted; and as a user runs it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ina.bench import limits, tcp_flow, windows_sim
from ina.bench.agreement import Costs
from ina.bench.dumbbell import DumbbellShape
from ina.bench.marking_queue import Counts
from ina.bench.queue_watch import Passed
from ina.bench.spread import Spread
from ina.bench.tcp_flow import require_iperf3, why_not
from ina.bench.windows import Bottleneck, BottleneckRun, WindowRow, _measurement, promises
from ina.bench.windows_agreement import agreement
from ina.bench.windows_sim import Simulated
from ina.bench.windows_worker import COUNTS, RankCounts, parts
from ina.errors import MissingToolError
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

SMALL = ("--links=100mbit", "--rounds=1", "--round-s=0.3", "--warm-s=0.3", "--workers=2", "--json")


def test_sums_are_exact_and_the_link_is_counted() -> None:
    need("soft")
    ran = bench("windows", "--tcp=", "--no-simulator", "--algorithms=fixed", *SMALL)
    if "program ina_mark" in ran.err:
        pytest.skip(f"needs a kernel with BPF and TCX (Linux 6.6): {ran.err.splitlines()[-1]}")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    rows = document["rows"]
    assert [(row["case"], row["workers"]) for row in rows] == [
        ("alone", 2),
        ("2 jobs", 2),
        ("star", 2),
    ]
    for row in rows:
        assert row["wrong"] == 0
        assert row["algorithm"] == "fixed"
        assert row["limit_mbit_s"] == pytest.approx(100 * limits.ina_payload_share(360))
        assert all(mbit_s > 0 for mbit_s in row["jobs_mbit_s"])
        assert row["sim"] is row["agreement"] is row["tcp"] is None
    assert len({ratio["name"] for ratio in document["ratios"]}) == 3
    assert [row["dropped_share"] is None for row in rows] == [False, False, True]
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.long
def test_tcp_and_the_simulator_beside_it() -> None:
    need("soft")
    if shutil.which("iperf3") is None:
        pytest.skip("needs iperf3: apt-get install iperf3")
    ran = bench("windows", "--tcp=cubic", "--spoil=2", *SMALL)
    assert ran.code == 1, ran.err  # of what was spoilt
    document = json.loads(ran.out)
    assert document["wrong"] == 8
    rows = {row["case"]: row for row in document["rows"]}
    assert set(rows) == {"alone", "2 jobs", "2 jobs, cubic", "star"}
    beside = rows["2 jobs, cubic"]
    assert beside["tcp"]["median"] > 0
    assert beside["sim"]["tcp_mbit_s"] > 0
    assert rows["alone"]["agreement"]["goodput"] > 0
    assert ran.left == []
    assert ran.namespaces == []


def part(mbit_s: float, **counts: int) -> RankCounts:
    """Of half a second."""
    told = dict.fromkeys(COUNTS, 0) | {"bytes_done": round(mbit_s * 0.5e6 / 8)} | counts
    return RankCounts(0.5, 40, told)


def made(case: Bottleneck, jobs: list[list[float]], tcp: list[float] | None = None) -> WindowRow:
    """Of jobs' rates by job and round, at 100 Mbit/s, and TCP's."""
    rounds = [
        BottleneckRun(
            [job[number] for job in jobs],
            None if tcp is None else tcp[number],
            Passed(Counts(900, 0, 0, 100), Counts(0, 0, 0, 7), (1024, 2048)),
            Passed(Counts(1000, 0, 0, 0), Counts(0, 0, 0, 7), (1024, 1024, 4096)),
        )
        for number in range(len(jobs[0]))
    ]
    counted = {"packets_received": 200, "ecn_marked": 20}
    ranks = [[part(it, **counted) for it in job] for job in jobs for _ in range(2)]
    return _measurement(
        "100mbit", 1e8, 360, "adaptive", case, 2, rounds, ranks, 0, 0.5, None if tcp is None else 3
    )  # fmt: skip


def test_parts_and_shares_are_of_what_is_on_the_wire() -> None:
    payload = limits.ina_payload_share(360)
    row = made(Bottleneck(2, "cubic"), [[30.0, 31.0, 32.0], [20.0, 21.0, 22.0]], [40.0, 41.0, 42.0])
    assert row.case == "2 jobs, cubic"
    assert row.jobs_mbit_s == [31.0, 21.0]
    assert row.job == Spread(26.0, 25.5, 26.5, 3)
    assert row.jobs_fair == pytest.approx([31 / payload / 100 * 3, 21 / payload / 100 * 3])
    assert row.tcp_fair == pytest.approx(41 / limits.TCP_PAYLOAD_SHARE / 100 * 3)
    assert row.limit_share == pytest.approx(
        52 / payload / 100 + 41 / limits.TCP_PAYLOAD_SHARE / 100
    )
    assert row.jain is not None
    assert row.jain.median == pytest.approx(52**2 / 2 / (31**2 + 21**2))
    assert (row.marked_share, row.dropped_share, row.queue_kib) == (0.1, 0.05, 4.0)
    assert row.promises == {"Jain at least 0.95": True, "parts within 1.5 times": False}


def test_promises_are_of_the_case() -> None:
    spread = Spread(0.96, 0.9, 1.0, 3)
    assert promises(Bottleneck(1), 0.97, [0.97], None, None) == {
        "share of limit at least 0.97": True
    }
    assert promises(Bottleneck(2), 0.5, [0.5, 0.5], None, spread) == {"Jain at least 0.95": True}
    for jobs, tcp, holds in (
        ([1.5, 0.75], 0.7, True),
        ([1.6, 0.75], 0.7, False),
        ([1.0, 1.0], 0.66, False),
        ([0.66, 1.0], 1.0, False),
    ):
        found = promises(Bottleneck(2, "cubic"), 1.0, jobs, tcp, spread)
        assert found["parts within 1.5 times"] is holds


def test_what_ranks_tell_is_cut_into_rounds() -> None:
    numbers = [500_000, 7, *range(10), 250_000, 8, *range(10, 20)]
    assert parts(numbers) == [
        RankCounts(0.5, 7, dict(zip(COUNTS, range(10), strict=True))),
        RankCounts(0.25, 8, dict(zip(COUNTS, range(10, 20), strict=True))),
    ]


@pytest.mark.parametrize(
    ("marked", "dropped", "holds"),
    [
        (0.19, 0.0, ("yes", "no")),
        (0.21, 0.06, ("no", "yes")),
        (0.0, 0.09, ("no", "yes")),
    ],
)
def test_an_agreement_of_shares_is_within_a_factor(
    marked: float, dropped: float, holds: tuple[str, str]
) -> None:
    real = made(Bottleneck(2, "cubic"), [[30.0], [30.0]], [30.0])
    found = agreement(real, Simulated([30.0, 27.1], 31.4, 1.0, marked, dropped, 0, 0))
    assert found.goodput == pytest.approx(57.1 / 60)
    assert found.goodput_holds
    assert found.tcp_holds
    assert (found.marked_holds, found.dropped_holds) == holds
    worse = agreement(real, Simulated([30.0, 26.9], 31.6, 1.0, marked, dropped, 0, 0))
    assert not worse.goodput_holds
    assert not worse.tcp_holds


def test_next_to_nothing_on_both_sides_is_no_ratio() -> None:
    real = made(Bottleneck(1), [[90.0]])
    quiet = WindowRow(**{**vars(real), "marked_share": 0.0, "dropped_share": None})
    found = agreement(quiet, Simulated([90.0], None, None, 9e-4, 0.0, 0, 0))
    assert (found.marked, found.marked_holds, found.tcp) == (None, "too few", None)
    assert (found.dropped, found.dropped_holds) == (None, "too few")


def test_a_simulated_job_that_is_alone_fills_the_link() -> None:
    plan = DumbbellShape(2, 1, "100mbit", 1e8, 256 << 10, 64 << 10, 360, {"algorithm": "fixed"})
    found = windows_sim.run(plan, Bottleneck(1), Costs(700, 700, 30, 20), 0.2, 0.2)
    (mbit_s,) = found.jobs_mbit_s
    assert mbit_s == pytest.approx(100 * limits.ina_payload_share(360), rel=0.02)
    gives_way = DumbbellShape(2, 1, "100mbit", 1e8, 256 << 10, 64 << 10, 360, {"algorithm": "ina"})
    beside = windows_sim.run(gives_way, Bottleneck(2, "cubic"), Costs(700, 700, 30, 20), 0.2, 0.2)
    assert beside.tcp_mbit_s is not None
    assert beside.tcp_mbit_s > 0


def test_two_simulated_jobs_share_a_slow_link_alike() -> None:
    """Its queue holds ten times what is on the way, so what leaves at once meets itself there."""
    plan = DumbbellShape(2, 0, "200mbit", 2e8, 256 << 10, 64 << 10, 360, {"algorithm": "ina"})
    found = windows_sim.run(plan, Bottleneck(2), Costs(1000, 500, 50, 20), 0.6, 1.0)
    assert found.jain is not None
    assert found.jain > 0.97


def test_what_this_machine_lacks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("reno cubic\n")
    monkeypatch.setattr(tcp_flow, "_KNOWN", known)
    assert why_not("cubic") == ""
    assert why_not("dctcp") == "this kernel's TCP has no dctcp, but reno, cubic"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingToolError, match=r"^TCP flows need iperf3: apt-get install iperf3$"):
        require_iperf3()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--links", "fast"), "error: --links fast: want a rate"),
        (("--algorithms", "cubic"), "error: --algorithms cubic: want some of "),
        (("--tcp", "vegas"), "error: --tcp vegas: want some of cubic, dctcp, reno, bbr"),
        (("--workers", "1"), "error: --workers 1: want integers from 2 to 32"),
        (("--queue", "4K"), "error: --queue 4K: want one size, 80K or more"),
        (("--mark", "512K"), "error: --mark 512K: want less than --queue 256K"),
        (("--warm-s", "-1"), "error: Invalid value for '--warm-s': -1.0 is not in the range"),
        (("--round-s", "-1"), "error: Invalid value for '--round-s': -1.0 is not in the range"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "windows", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
