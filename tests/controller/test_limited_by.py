"""What holds a job up, by what its ranks have told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ina.controller.windows.caps import Cap
from ina.controller.windows.limited_by import LEAST_RESULTS, limited_by
from ina.controller.windows.seen import Between, Seen
from ina.controller.windows.uses import UsedLink
from ina.rpc import controller_pb2 as pb2

CALM = Between(
    rank=0,
    elapsed_s=1.0,
    packets=100,
    largest=100,
    most_packets=0,
    shortest_s=100e-6,
    mean_s=120e-6,
    results=10_000,
    last=2500,
    marks=0,
    losses=0,
    timeouts=0,
    busy_s=0.9,
    goodput_bits_per_s=4e9,
)
SHARE = Cap(0, 5e9, UsedLink("h1", "s1"))


def ranks(count: int = 4, **changes: object) -> list[Between]:
    """Rank 1 has ``changes``."""
    each = [replace(CALM, rank=rank) for rank in range(count)]
    each[1] = replace(each[1], **changes)  # type: ignore[arg-type]
    return each


@pytest.mark.parametrize(
    ("told", "cap", "what", "rank", "why"),
    [
        (ranks(), Cap(), "slots", None, "all 100 packets of the window are in flight"),
        (ranks(), SHARE, "slots", None, "round trips of 120 µs are short"),
        (ranks(marks=200), Cap(), "link", 1, "200 marks and 0 losses in 10000 results"),
        (ranks(losses=1, packets=60), Cap(), "link", 1, "a window of 60 of 100"),
        (ranks(losses=1), Cap(), "slots", None, ""),  # one in ten thousand, and W stays
        (ranks(mean_s=300e-6), Cap(), "link", 1, "packets stand in a queue"),
        (ranks(goodput_bits_per_s=4.8e9), SHARE, "link", 1, "share of h1 > s1, 5 Gbit/s"),
        (ranks(packets=12, most_packets=12), SHARE, "link", 1, "the cap is 12 packets"),
        (ranks(packets=12, most_packets=20), Cap(), "", None, "no rule says"),
        ([replace(it, busy_s=0.2) for it in ranks()], Cap(), "host", None, "pending for 20%"),
        ([replace(it, results=0, busy_s=0.0) for it in ranks()], Cap(), "host", None, "for 0%"),
        ([replace(it, busy_s=None) for it in ranks()], Cap(), "slots", None, ""),
        ([replace(it, results=LEAST_RESULTS - 1) for it in ranks()], Cap(), "", None, "too little"),
        ([], Cap(), "", None, "too little"),
    ],
)
def test_rules(told: list[Between], cap: Cap, what: str, rank: int | None, why: str) -> None:
    found = limited_by(told, cap)
    assert (found.what, found.rank) == (what, rank)
    assert why in found.why


@pytest.mark.parametrize(("count", "last"), [(2, 0.76), (4, 0.65), (32, 0.53)])
def test_who_is_last_of_most_sums_and_makes_the_others_wait_is_the_straggler(
    count: int, last: float
) -> None:
    def told(own_s: float) -> list[Between]:
        it = ranks(count, last=round(last * 10_000), mean_s=own_s)
        return [it[1], *(replace(one, mean_s=500e-6, last=100) for one in (it[0], *it[2:]))]

    found = limited_by(told(120e-6), Cap())
    assert (found.what, found.rank) == ("straggler", 1)
    assert "rank 1's packet is the last of" in found.why
    # Its own round trips are as long: it is far away, or its packets stand in its link's queue.
    assert limited_by(told(500e-6), Cap()).what == "link"


def test_who_is_last_of_half_of_two_ranks_sums_is_none() -> None:
    told = [replace(it, last=5000, mean_s=(120e-6, 500e-6)[it.rank]) for it in ranks(2)]
    assert limited_by(told, Cap()).what == "link"


def report(results: int, packets: int, shortest_s: float, busy_s: float) -> pb2.Progress:
    progress = pb2.Progress(busy_s=busy_s, losses=results // 100)
    progress.windows.results, progress.windows.packets = results, packets
    progress.windows.shortest_s = shortest_s
    progress.windows.last = results // 4
    return progress


def test_two_reports_a_second_apart_are_compared_whatever_comes_between() -> None:
    seen = Seen(7)
    assert seen.between(0, 8000) is None
    for now_s, results, packets, shortest_s in (
        (10.0, 100, 64, 90e-6),
        (10.1, 200, 32, 80e-6),
        (10.2, 300, 48, 0.0),
        (11.2, 1300, 50, 95e-6),
        (12.0, 2100, 50, 95e-6),
    ):
        seen.hear(report(results, packets, shortest_s, now_s / 2), now_s)
    found = seen.between(3, 8000)
    assert found is not None
    assert (found.rank, found.results, found.last, found.losses) == (3, 1800, 450, 18)
    assert found.elapsed_s == pytest.approx(1.8)
    assert found.busy_share == pytest.approx(0.5)
    assert found.goodput_bits_per_s == pytest.approx(1800 * 8000 / 0.9)
    assert (seen.shortest_s, seen.least_packets, seen.most_packets) == (80e-6, 32, 64)


def test_who_does_not_count_its_pending_time_says_nothing_of_it() -> None:
    seen = Seen(7)
    for now_s, results in ((1.0, 100), (3.0, 5100)):
        seen.hear(report(results, 8, 1e-4, 0.0), now_s)
    found = seen.between(0, 1000)
    assert found is not None
    assert found.busy_share is None
    assert found.goodput_bits_per_s == pytest.approx(5000 * 1000 / 2)
