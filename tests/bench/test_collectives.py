"""``ina bench collectives``: nccl-tests' columns, what links have, and a run as a user's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.bench import collectives
from ina.bench.collective_kinds import (
    KINDS,
    ROOT,
    SizedCollective,
    case_of,
    is_round_trip,
    link_bytes,
)
from ina.bench.collectives import CollectivesOrder, CollectivesRow
from ina.cli.bench.collectives import BENCH
from ina.cli.bench.declare import Found
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

SMALL = ("--repeats=3", "--seconds=0.2", "--json")
HEADER, WORD = 14 + 28 + 32, 4
ORDER = CollectivesOrder(list(KINDS), [1 << 20], "float32", 4, 360, 3, 1.0, 0)


def by_chunks(case: SizedCollective, values: int, rank: int, multicast: bool) -> tuple[int, int]:
    """Sent and received: packet by packet, as the page of collectives has the rounds."""
    ranks = case.workers
    if case.name == "barrier":
        return HEADER, HEADER
    if case.name == "all_gather" and case.words * ranks <= values:
        return (HEADER + WORD * values,) * 2
    parts = ranks if case.kind.has_parts else 1
    sent = received = 0
    for chunk in range(-(-case.words // values) * parts):
        owner = chunk % ranks if case.kind.has_parts else ROOT
        size = WORD * values
        is_own = owner == rank
        gives, gets = {
            "sum": (True, True),
            "gather": (is_own, not is_own or multicast),
            "scatter": (not is_own, is_own or multicast),
        }[case.kind.flow]
        sent += HEADER + size * gives
        received += HEADER + size * gets
    return sent, received


@given(
    name=st.sampled_from(sorted(KINDS)),
    count=st.integers(1, 5000),
    elem_bytes=st.sampled_from([2, 4]),
    workers=st.integers(2, 8),
    values=st.sampled_from([64, 360]),
    multicast=st.booleans(),
    data=st.data(),
)
def test_a_link_has_what_its_packets_have(
    name: str,
    count: int,
    elem_bytes: int,
    workers: int,
    values: int,
    multicast: bool,
    data: st.DataObject,
) -> None:
    case = SizedCollective(name, 0 if name == "barrier" else count, elem_bytes, workers)
    rank = data.draw(st.integers(0, workers - 1))
    found = link_bytes(case, values, rank, multicast=multicast)
    assert (found.sent, found.received) == by_chunks(case, values, rank, multicast)


def test_what_the_design_says_of_four_workers() -> None:
    """In what a tensor in full packets takes, where a header is a part h of a packet."""
    header, full = HEADER, HEADER + 360 * WORD
    h = header / full
    part = 360 * 100
    whole = 4 * 100 * full
    gather = link_bytes(SizedCollective("all_gather", part, 4, 4), 360, 2, multicast=False)
    scatter = link_bytes(SizedCollective("reduce_scatter", part, 4, 4), 360, 2, multicast=False)
    assert gather.sent / whole == pytest.approx(0.25 + 0.75 * h)
    assert gather.received / whole == pytest.approx(0.75 + 0.25 * h)
    assert (scatter.sent, scatter.received) == (gather.received, gather.sent)
    assert (gather.sent + scatter.sent) / whole == pytest.approx(1 + h)


@pytest.mark.parametrize(
    ("name", "count", "size", "factor"),
    [
        ("all_reduce", 1 << 18, 1 << 20, 1.5),
        ("reduce_scatter", 1 << 16, 1 << 20, 0.75),
        ("all_gather", 1 << 16, 1 << 20, 0.75),
        ("broadcast", 1 << 18, 1 << 20, 1.0),
        ("reduce", 1 << 18, 1 << 20, 1.0),
    ],
)
def test_sizes_and_factors_are_those_of_nccl_tests(
    name: str, count: int, size: int, factor: float
) -> None:
    case = case_of(name, 1 << 20, 4, 4)
    assert (case.count, case.size_bytes, case.kind.factor(4)) == (count, size, factor)
    # One element of each part is the least.
    least = case_of(name, 4, 4, 4)
    assert (least.count, least.size_bytes) == (1, 16 if least.kind.has_parts else 4)


def test_cases_are_measured_once_and_a_barrier_has_no_size() -> None:
    order = replace(ORDER, sizes=[4, 8, 1 << 20], names=["barrier", "all_gather"])
    found = [(case.name, case.size_bytes) for case in order.cases(4)]
    assert found == [("barrier", 0), ("all_gather", 16), ("all_gather", 1 << 20)]
    assert [is_round_trip(case, 360) for case in order.cases(4)] == [True, False, False]
    assert is_round_trip(case_of("all_reduce", 4 * 360, 4, 4), 360)
    assert not is_round_trip(case_of("all_reduce", 4 * 361, 4, 4), 360)


@dataclass(frozen=True)
class Told:
    """A testbed of 100 Mbit/s where the ranks have found what they are told to."""

    record: Mapping[str, Any]
    workers: int = 4
    link: str = "100mbit"
    rate_bit_s: float | None = 1e8
    hosts: int = 4
    racks: int = 0

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        timeout_s: float,
        on_line: Callable[[str], None],
    ) -> None:
        assert environ["INA_TRANSPORT"] == "udp"
        on_line(json.dumps(self.record))


def way(times_s: list[float], moved: list[tuple[float, float]], over: str = "udp") -> Any:
    return {"times_s": times_s, "moved": moved, "wrong": 0, "over": over}


def told(order: CollectivesOrder, record: Mapping[str, Any]) -> dict[str, CollectivesRow]:
    found: list[CollectivesRow] = []
    collectives.measure(Told(record), order, multicast=False, on_rows=found.extend)
    return {row.backend: row for row in found}


def test_rows_follow_from_what_ranks_found() -> None:
    order = replace(ORDER, names=["broadcast"])
    case = case_of("broadcast", 1 << 20, 4, 4)
    wanted = [link_bytes(case, 360, rank, multicast=False) for rank in range(4)]
    moved = [(it.sent, it.received) for it in wanted]
    moved[3] = (moved[3][0], 1.03 * moved[3][1])
    gloo = [(3e6, 1e6)] * 4
    rows = told(order, {"ina": way([0.1, 0.2, 0.4], moved), "gloo": way([0.3] * 3, gloo)})
    ours, theirs = rows["ina"], rows["gloo"]
    assert (ours.time_s, ours.root) == (0.2, 0)
    assert ours.algbw_gb_s == pytest.approx(5.24288e-3)
    assert ours.busbw_gb_s == ours.algbw_gb_s
    assert ours.gain == pytest.approx(1.5)
    assert ours.formula == pytest.approx(1.03)
    # The root's tensor in 729 packets, of which the last is filled up.
    assert ours.limit_s == pytest.approx(729 * (HEADER + 1440) * 8 / 1e8)
    assert ours.limit_share == pytest.approx(729 * (HEADER + 1440) * 8 / 1e8 / 0.2)
    assert theirs.limit_s == pytest.approx(3e6 * 8 / 1e8)
    assert theirs.formula is None
    assert (ours.echo, ours.redop) == (None, "none")
    ratios = {it.name: it.value for it in collectives.ratios(list(rows.values()), "100mbit")}
    assert ratios["100mbit broadcast n=4 1M ina/gloo"] == pytest.approx(1.5)


def test_a_packet_is_beside_an_echo() -> None:
    order = replace(ORDER, names=["barrier"])
    record = {"ina": way([0.06] * 3, []), "gloo": way([0.12] * 3, [], "tcp")}
    bare = {"udp echo": way([0.05] * 3, []), "udp ring": way([0.06] * 3, [])}
    rows = told(order, {**record, **bare})
    assert [rows[name].echo for name in ("ina", "gloo")] == pytest.approx([1.2, 2.4])
    echo = rows["udp echo"]
    assert (echo.echo, echo.gain, echo.limit_s, echo.algbw_gb_s) == (None, None, None, None)
    ring = rows["udp ring"]
    assert ring.echo == pytest.approx(1.2)
    assert (ring.gain, ring.limit_s) == (None, None)
    ratios = {it.name: it.value for it in collectives.ratios(list(rows.values()), "100mbit")}
    assert ratios["100mbit barrier n=4 ina/echo"] == pytest.approx(0.05 / 0.06)
    panels = collectives.panels([vars(row) for row in rows.values()])
    assert [panel.title for panel in panels] == ["Gain"]  # a barrier has no bandwidth
    shown = BENCH.view(Found(title="", settings={}, rows=[vars(row) for row in rows.values()]))
    cells = dict(zip(shown.columns, shown.rows[0], strict=True))
    assert (cells["time us"], cells["this/echo"], cells["root"]) == (6e4, 1.2, -1)


def test_each_collective_is_right_and_what_is_spoilt_is_counted() -> None:
    ran = bench("collectives", "--workers=2", "--sizes=4K", "--spoil=3", *SMALL)
    assert ran.code == 1, ran.err  # for what is spoilt
    rows = json.loads(ran.out)["rows"]
    wrong = {row["collective"]: row["wrong"] for row in rows if row["backend"] == "ina"}
    # Three values on each of two ranks; a sum that one of them gets; two that left too early.
    assert wrong == {**dict.fromkeys(KINDS, 6), "reduce": 3, "barrier": 2}
    assert all(row["wrong"] == 0 for row in rows if row["backend"] != "ina")
    for bare in ("udp echo", "udp ring"):
        beside = [row["collective"] for row in rows if row["backend"] == bare]
        assert beside == ["all_reduce", "barrier"]
    assert ran.left == []


@pytest.mark.long
def test_links_of_a_star_have_what_the_formula_says() -> None:
    need("soft")
    case = ("--workers=3", "--sizes=200K", "--dtype=int32", "--link=200mbit")
    ran = bench("collectives", *case, *SMALL)
    assert ran.code == 0, ran.err
    rows = {(row["collective"], row["backend"]): row for row in json.loads(ran.out)["rows"]}
    for name in KINDS:
        row = rows[name, "ina"]
        assert (row["over"], row["wrong"]) == ("udp", 0)
        if row["size_bytes"]:
            assert row["formula"] == pytest.approx(1, abs=0.02)
        assert rows[name, "gloo"]["received_bytes"] > 0
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--collectives", "all_to_all"), "error: --collectives all_to_all: want some of all_red"),
        (("--workers", "1"), "error: --workers 1: want integers from 2 to 32"),
        (("--sizes", "x"), "error: --sizes x: want sizes"),
        (("--dtype", "x"), "error: --dtype x: the network sums int32, float"),
        (("--link", "fast"), "error: --link fast: want a rate"),
        (("--values", "63"), "error: --values 63: there are builds for"),
        (("--repeats", "2"), "error: --repeats 2 --seconds 10: want >= 3"),
        (("--forwarding",), "error: --forwarding --link loopback: want a star"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "collectives", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
