"""``ina bench sharing`` on small tensors, as a user runs it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ina.bench import job_counters
from ina.bench.emulated_star import emulated_star
from ina.bench.limits import ina_wire_bytes
from ina.bench.shared_star import StarShape
from ina.bench.sharing import WAYS, SharingCase, measure, panels
from ina.bench.sharing_worker import Steps, pauses_s
from ina.emulate.topology import SwitchKind
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

SMALL = ("--slots=16", "--size=64K", "--steps=2", "--rounds=2", "--round-trip-us=1000", "--json")
VALUES = 360


@pytest.mark.parametrize(
    "more", [(), pytest.param(("--jobs=1,3", "--spoil=1"), marks=pytest.mark.long)]
)
def test_jobs_have_exact_sums_in_each_way(more: tuple[str, ...]) -> None:
    need("soft")
    ran = bench("sharing", "--jobs=2", *SMALL, *more)
    spoilt = 2 if more else 0  # a value in each round
    assert ran.code == (1 if spoilt else 0), ran.err
    document = json.loads(ran.out)
    counts = [1, 3] if more else [2]
    rows = {(row["jobs"], row["way"]): row for row in document["rows"]}
    assert set(rows) == {(jobs, way) for jobs in counts for way in WAYS}
    assert {row["wrong"] for row in rows.values()} == {spoilt}
    wire_s = ina_wire_bytes(1 << 14, VALUES) * 8 / 2e8
    for (jobs, way), row in rows.items():
        at_once = 1 if way == "queued" else jobs
        assert row["limit_gb_s"] == pytest.approx(limit_gb_s(at_once, wire_s, way, jobs))
        assert row["limit_share"] == pytest.approx(row["goodput_gb_s"] / row["limit_gb_s"])
        check_where(row, way)
    names = {ratio["name"] for ratio in document["ratios"]}
    for jobs in counts:
        of = f"{jobs} jobs 200mbit"
        assert names >= {f"{of} shared/static", f"{of} queued/static", f"{of} static/limit"}
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["soft", "bmv2"])
def test_a_switch_on_packet_sockets_shares_its_slots_too(kind: SwitchKind) -> None:
    need(kind)
    rate_bit_s = 2e7
    case = SharingCase(
        *(2, 2, 4096, 2, 1, 0.5, 16, 64), rate_bit_s=rate_bit_s, aggregator_bit_s=2 * rate_bit_s
    )
    plan = StarShape(
        workers=4,
        link="20mbit",
        rate_bit_s=rate_bit_s,
        aggregator_bit_s=2 * rate_bit_s,
        values=64,
        slots=16,
        round_trip_us=0,
    )
    done: list[str] = []
    with emulated_star(plan, kind) as star:
        rows = measure(star, case, WAYS, lambda way, gb_s: done.append(way))
    assert [row.way for row in rows] == done == list(WAYS)
    assert [row.wrong for row in rows] == [0] * len(WAYS)
    for row in rows:
        check_where(vars(row), row.way)


def test_an_aggregator_that_is_never_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is reached at last is waited for."""
    reply = pb2.ShowControllerReply()
    reply.switches.add(name="s1", state="connected")
    agg = reply.switches.add(name="agg", state="unreachable: no")
    asked = []

    class Operator:
        def __init__(self, channel: Any) -> None:
            pass

        def ShowController(self, *_: Any, **__: Any) -> Any:  # noqa: N802 (gRPC's name)
            asked.append(agg.state)
            if len(asked) == 3:
                agg.state = "connected"
            return reply

    monkeypatch.setattr(job_counters, "OperatorStub", Operator)
    monkeypatch.setattr(job_counters, "_POLL_S", 0.0)
    job_counters.await_connected("127.0.0.1:1")
    assert len(asked) == 3
    agg.state = "unreachable: no"
    monkeypatch.setattr(job_counters, "_REACHED_S", 0.0)
    with pytest.raises(InaError, match="bench: agg after 0 s: unreachable: no"):
        job_counters.await_connected("127.0.0.1:1")


def limit_gb_s(at_once: int, wire_s: float, way: str, jobs: int) -> float:
    """Half of the time is computing; the aggregator's link is as wide as all jobs' are."""
    gb = 65536 / 1e9
    parts = 2 if way == "aggregator" else 1
    return min(at_once * gb / (2 * wire_s), gb / (parts * wire_s / jobs))


def check_where(row: dict[str, Any], way: str) -> None:
    """Of two workers' packets for a sum, where was which?"""
    if way in ("static", "queued"):
        assert (row["on_switch"], row["aggregator_packets"]) == (None, None)
        return
    assert row["aggregator_packets"] >= 0.99
    if way == "aggregator":  # one lane of sixteen may claim a slot, and of one job
        assert row["on_switch"] < 0.3
        assert row["aggregator_packets"] > 1.7
    else:
        assert row["on_switch"] > 0.0


def test_what_a_job_computes_is_the_same_in_each_way_and_on_each_rank() -> None:
    first = pauses_s(seed=1, number=0, job=0, steps=200, compute_s=0.1)
    assert first == pauses_s(seed=1, number=0, job=0, steps=200, compute_s=0.1)
    assert first[1:] != pauses_s(seed=1, number=0, job=1, steps=200, compute_s=0.1)[1:]
    assert 0 <= first[0] <= 0.2
    assert all(0.05 <= it <= 0.15 for it in first[1:])
    assert np.mean(first) == pytest.approx(0.1, rel=0.1)


def test_a_wrong_sum_is_counted() -> None:
    class TwoWorkers:
        """Rank 1 has sent the same plus one; the second sum misses its last value."""

        def __init__(self) -> None:
            self.sums = 0

        def all_reduce(self, own: Any, *, out: Any) -> None:
            self.sums += 1
            out[:] = 2 * own + 1
            if self.sums == 2:
                out[-1] -= 7

    for spoil, wrong in ((0, 1), (3, 4)):
        steps = Steps(elems=100, pauses_s=[0.0] * 3, rank=0, workers=2, spoil=spoil)
        assert steps.run(TwoWorkers())[1] == wrong  # type: ignore[arg-type]


def test_half_of_a_step_computes_where_the_tensor_has_the_link() -> None:
    case = SharingCase(
        *(4, 2, 1 << 20, 10, 5, 0.5, 128, VALUES),
        rate_bit_s=2e8,
        aggregator_bit_s=2e8,
    )
    assert case.compute_s == pytest.approx(case.wire_s)
    assert case.wire_s == pytest.approx(ina_wire_bytes(1 << 20, VALUES) / 25e6)


def test_panels_have_a_curve_a_way() -> None:
    row = {"goodput_gb_s": 1.0, "low_gb_s": 0.9, "high_gb_s": 1.1, "gain": 1.5, "gain_low": 1.4,
           "gain_high": 1.6}  # fmt: skip
    rows = [{"jobs": jobs, "way": way, **row} for jobs in (2, 4) for way in WAYS]
    goodput, gain = panels(rows)
    assert [curve.group for curve in goodput.curves] == list(WAYS)
    assert [curve.group for curve in gain.curves] == ["shared", "queued", "aggregator"]
    assert [point.x for point in gain.curves[0].points] == [2, 4]
    only = [{**it, "gain": None, "gain_low": None, "gain_high": None} for it in rows]
    assert len(panels(only)) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--jobs", "0"), "error: --jobs 0: want integers from 1 to 32"),
        (("--workers", "1"), "error: --workers 1: want 2 to 16 of 4 jobs"),
        (("--workers", "17"), "error: --workers 17: want 2 to 16 of 4 jobs"),
        (("--slots", "96"), "error: --slots 96: want a power of two, 8 to 1024"),
        (("--slots", "4"), "error: --slots 4: want a power of two, 8 to 1024"),
        (("--compute", "1"), "error: --compute 1: want a share from 0, below 1"),
        (("--ways", "shared,all"), "error: --ways all: want some of shared, static, queued,"),
        (("--ways", "shared,shared"), "error: --ways shared,shared: one is there twice"),
        (("--size", "1M,2M"), "error: --size 1M,2M: want one"),
        (("--switch", "tofino"), "error: --switch tofino: want soft or bmv2"),
        (("--link", "loopback"), "error: --link loopback: want a rate"),
        (("--aggregator-link", "fast"), "error: --aggregator-link fast: want a rate"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "sharing", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
