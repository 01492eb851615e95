"""What each window does on a way with one queue: by the rules of its paper."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

import pytest

from ina._native.host import LossRecovery, RtoLimits
from ina.congestion import ALGORITHMS, Congestion
from tests.worlds.virtual.way import Way

ROUND_NS = 101_000
BYTES = 330  # of a packet, as LossRecovery by itself has it


def share_of_link(way: Way, for_ns: int) -> float:
    before = way.answers
    way.run(for_ns)
    return (way.answers - before) * way.packet_ns / for_ns


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "aimd"])
def test_each_keeps_a_link_busy_whose_queue_holds_a_product(name: str) -> None:
    way = Way(Congestion(name), mark_above=40)
    way.run(150 * ROUND_NS)
    assert share_of_link(way, 50 * ROUND_NS) > 0.97
    assert way.lost == 0


def test_aimd_halves_once_a_window_and_adds_a_frame() -> None:
    way = Way(Congestion("aimd"), mark_above=40)
    way.run(250 * ROUND_NS)
    steps = [(now, then) for now, then in pairwise(way.windows[-10_000:]) if now != then]
    falls = [then / now for now, then in steps if then < now]
    assert falls
    assert all(fall == pytest.approx(0.5, abs=0.01) for fall in falls)
    rises = [then - now for now, then in steps if then > now]
    assert fmean(rises) == pytest.approx(1500 / BYTES, abs=0.5)


def test_dctcp_falls_by_half_the_share_of_marks_and_adds_a_segment() -> None:
    way = Way(Congestion("dctcp"), mark_above=40)
    way.run(250 * ROUND_NS)
    recent = way.windows[-10_000:]
    falls = [then / now for now, then in pairwise(recent) if then < now]
    assert falls
    # Alizadeh et al. 2010, 3.3: the share is about sqrt(2 / W) in segments, so it never halves.
    segments = fmean(recent) * BYTES / 1460
    assert min(falls) > 1 - (2 / segments) ** 0.5
    assert max(way.queues[-10_000:]) < 2 * 40


def test_dctcp_halves_where_all_is_marked() -> None:
    way = Way(Congestion("dctcp"), mark_above=0)
    way.run(150 * ROUND_NS)
    assert way.windows[-1] == 1


def test_swift_keeps_delay_near_its_target() -> None:
    way = Way(Congestion("swift", {"queue_us": 30, "flow_us": 0}), mark_above=10_000)
    way.run(250 * ROUND_NS)
    assert 20 < fmean(way.queues[-10_000:]) < 40  # packets of a microsecond


def test_swift_takes_lateness_for_a_queue_and_ina_does_not() -> None:
    """The worker waits for another one, which is 500 us late: what the two do about it."""

    def window(name: str) -> int:
        way = Way(Congestion(name), mark_above=40)
        way.run(120 * ROUND_NS)
        way.late_ns = lambda _now_ns: 500_000
        way.was_last = lambda _now_ns: False
        way.run(120 * ROUND_NS)
        return way.windows[-1]

    assert window("swift") < 30
    assert window("ina") > 100


class TestIna:
    def test_it_stops_where_a_queue_would_begin(self) -> None:
        way = Way(Congestion("ina"), mark_above=20)
        way.run(10 * ROUND_NS)
        assert way.windows[-1] == pytest.approx(way.product, rel=0.2)
        first_burst = 14600 // BYTES
        assert max(way.queues[first_burst:]) <= 20

    def test_its_queue_stays_within_twice_the_threshold_and_its_link_is_busy(self) -> None:
        way = Way(Congestion("ina"), mark_above=20)
        way.run(50 * ROUND_NS)
        way.queues.clear()
        assert share_of_link(way, 150 * ROUND_NS) > 0.97
        assert max(way.queues) <= 2 * 20

    def test_it_does_not_heed_marks_of_sums_that_others_complete(self) -> None:
        way = Way(Congestion("ina"))
        way.run(50 * ROUND_NS)
        before = way.windows[-1]
        way.mark_above, way.was_last = 0, lambda _now_ns: False
        way.run(50 * ROUND_NS)
        assert way.windows[-1] >= before
        way.was_last = lambda _now_ns: True
        way.run(50 * ROUND_NS)
        assert way.windows[-1] < before
        assert way.windows[-1] == pytest.approx(way.product, rel=0.1)

    def test_it_gives_way_where_its_queue_does_not_empty(self) -> None:
        """Somebody else's packets stand in the queue all along."""
        way = Way(Congestion("ina"))
        way.run(50 * ROUND_NS)
        before = way.windows[-1]
        way.mark_above, way.way_ns = 0, way.way_ns + 60_000
        way.run(60 * ROUND_NS)
        assert way.windows[-1] < before / 2

    def test_marks_of_others_queues_cost_it_nothing(self) -> None:
        """A result has the marks of all contributions; its own was the last, and met no queue. So
        it still grows until its link is full, as after the losses here."""
        way = Way(Congestion("ina"))
        way.run(50 * ROUND_NS)
        room, way.room = way.room, 0
        way.run(ROUND_NS)
        way.room = room
        way.others_marked = lambda now_ns: now_ns % 5_000 < 1_000
        way.run(3 * ROUND_NS)
        assert way.windows[-1] < 0.9 * way.product
        way.run(30 * ROUND_NS)
        assert way.windows[-1] >= way.product

    def test_it_gives_way_by_no_more_than_empties_the_queue(self) -> None:
        way = Way(Congestion("ina"))
        way.run(100 * ROUND_NS)
        assert min(way.windows[len(way.windows) // 2 :]) >= way.product
        assert share_of_link(way, 50 * ROUND_NS) > 0.97

    def test_it_takes_what_others_leave(self) -> None:
        way = Way(Congestion("ina"))
        way.run(50 * ROUND_NS)
        way.packet_ns //= 4
        way.run(40 * ROUND_NS)
        assert share_of_link(way, 50 * ROUND_NS) > 0.9

    def test_rare_losses_on_an_empty_way_cost_nothing(self) -> None:
        way = Way(Congestion("ina"))
        way.run(50 * ROUND_NS)
        before = way.windows[-1]
        for _ in range(20):
            room, way.room = way.room, 0
            way.run(1_100)  # a packet is lost
            way.room = room
            way.run(4 * ROUND_NS)
        assert way.lost > 10
        assert way.windows[-1] > 0.9 * before

    def test_a_queue_that_does_not_mark_overflows_by_little(self) -> None:
        """Where a queue stands growth is slow, and back to where it overflowed it slows down."""
        way = Way(Congestion("ina"), mark_above=10_000, room=100)
        way.run(100 * ROUND_NS)
        lost, answers = way.lost, way.answers
        assert share_of_link(way, 400 * ROUND_NS) > 0.99
        assert 0 < way.lost - lost < (way.answers - answers) / 100

    def test_lanes_give_up_slots_that_others_want(self) -> None:
        recovery = LossRecovery(2, RtoLimits(), Congestion("ina").choice())
        claimed = []
        for step, wanted in enumerate((False, True, False, False)):
            recovery.sent(0, step, 0, step * ROUND_NS)
            recovery.answered(0, step * ROUND_NS + ROUND_NS // 2, wanted=wanted)
            claimed.append(recovery.claims(0))
            assert recovery.claims(1)
        assert claimed == [True, False, True, True]

    def test_by_losses_alone_it_holds_its_own_where_nothing_heeds_marks(self) -> None:
        """CUBIC without ECN fills the queue: all is marked, and now and then a packet is lost."""

        way = Way(Congestion("ina"))
        way.run(30 * ROUND_NS)
        way.mark_above, way.way_ns, way.lose_every = 0, way.way_ns + 60_000, 300
        way.run(200 * ROUND_NS)
        assert fmean(way.windows[-500:]) > 30

    def test_marks_that_stay_when_it_has_given_all_are_heeded_no_more(self) -> None:
        way = Way(Congestion("ina"))
        way.run(30 * ROUND_NS)
        way.mark_above, way.way_ns = 0, way.way_ns + 60_000
        way.windows.clear()
        way.run(200 * ROUND_NS)
        assert min(way.windows) < 2 * 2920 / BYTES
        assert way.windows[-1] > 100


@pytest.mark.parametrize(("options", "together"), [({}, 20), ({"pace": 0}, 90)])
def test_a_pace_holds_packets_up(options: dict[str, float], together: int) -> None:
    """Results come all at once: without one a whole window goes, and meets itself in the queue."""
    way = Way(Congestion("ina", options))
    way.run(30 * ROUND_NS)
    all_ns = way.now_ns + 300_000
    way.late_ns = lambda now_ns: max(0, all_ns - way.way_ns - now_ns)
    way.run(200_000)
    way.queues.clear()
    way.run(110_000)
    assert (max(way.queues) > 50) == (together > 50)
    assert max(way.queues) == pytest.approx(together, rel=0.4)


def test_a_pace_ends_when_for_long_no_queue_was_too_short() -> None:
    """Wake-ups cost more than what it is for."""
    way = Way(Congestion("ina"), mark_above=10_000, lanes=64)
    way.run(30 * ROUND_NS)
    assert way.recovery.paced_ns > 0
    way.run(300 * ROUND_NS)
    assert way.recovery.paced_ns == 0
