"""LossRecovery by itself: events in, lanes to send again out, with the time passed in."""

from __future__ import annotations

import numpy as np
import pytest

from ina._native.congestion import Choice
from ina._native.host import LossRecovery, RtoLimits
from tests.worlds.virtual.cores import MS
from tests.worlds.virtual.star import Star, even

VALUES, EXPONENT, GUESS = 0, 1, 2  # kinds of rounds
LANES = 64
RTT_NS = MS // 10


def recovery(lanes: int = LANES, window: str = "adaptive") -> LossRecovery:
    """One that has seen round trips of 0.1 ms, and waits for nothing; it is 0.1 ms old."""
    fresh = LossRecovery(lanes, RtoLimits(), Choice(window))
    for lane in range(lanes):
        fresh.sent(lane, lane, VALUES, 0)
    for lane in range(lanes):
        fresh.answered(lane, RTT_NS)
    return fresh


def lanes_due(recovery: LossRecovery, now_ns: int) -> list[int]:
    return [lane for lane, _ in recovery.due(now_ns)]


@pytest.mark.parametrize("kind", [VALUES, EXPONENT, GUESS])
def test_a_later_chunk_of_the_same_kind_that_is_answered_before_proves_a_loss(kind: int) -> None:
    one = recovery()
    one.sent(0, 100, kind, MS)
    one.sent(1, 101, kind, MS + RTT_NS)
    one.answered(1, MS + 2 * RTT_NS)
    assert lanes_due(one, MS + 2 * RTT_NS) == [0]
    assert one.counters.overtaken == 1


@pytest.mark.parametrize(
    ("order", "kind"),
    [(99, VALUES), (101, EXPONENT), (101, GUESS)],
    ids=["earlier chunk", "exponents", "guess"],
)
def test_what_a_late_worker_sends_first_proves_nothing(order: int, kind: int) -> None:
    one = recovery()
    one.sent(0, 100, VALUES, MS)
    one.sent(1, order, kind, MS + RTT_NS)
    one.answered(1, MS + 2 * RTT_NS)
    assert lanes_due(one, MS + 2 * RTT_NS) == []
    assert one.counters.overtaken == 0


def test_of_many_proofs_the_one_that_counts_is_found() -> None:
    """Answered in any order, sent in another: later chunks prove, whichever came last."""
    one = recovery()
    one.sent(0, 100, VALUES, MS)
    for lane, (order, later) in enumerate([(103, 1), (102, 2), (101, 3), (99, 4), (98, 5)], 1):
        one.sent(lane, order, VALUES, MS + later * RTT_NS)
    for lane in (4, 5):
        one.answered(lane, MS + 6 * RTT_NS)
    assert lanes_due(one, MS + 6 * RTT_NS) == []
    for lane in (3, 1, 2):
        one.answered(lane, MS + 6 * RTT_NS)
    assert lanes_due(one, MS + 6 * RTT_NS) == [0]


def silence(one: LossRecovery, start_ns: int) -> tuple[int, int]:
    """Send a window; return how long until it is probed for, and by how many packets."""
    for lane in range(LANES):
        one.sent(lane, start_ns + lane, VALUES, start_ns)
    while True:
        due_ns = one.deadline_ns
        assert due_ns is not None
        if probes := one.due(due_ns):
            return due_ns - start_ns, len(probes)


def test_rounds_of_probes_grow_and_then_begin_with_one() -> None:
    """All workers' probes may be more than a queue holds, which drops the same ones each time."""
    one = recovery()
    for lane in range(LANES):
        one.sent(lane, lane, VALUES, MS)
    rounds: list[list[int]] = []
    while len(rounds) < 13:
        due_ns = one.deadline_ns
        assert due_ns is not None
        if lanes := lanes_due(one, due_ns):
            rounds.append(lanes)
    assert [len(lanes) for lanes in rounds] == [4, 4, 4, 8, 16, 1, 2, 4, 8, 16, 1, 2, 4]
    assert all(lanes[0] == 0 for lanes in rounds)  # those that come first go first, on all ranks


def answer_all(one: LossRecovery, now_ns: int, *, others_loss: bool = False) -> None:
    for lane in range(LANES):
        one.answered(lane, now_ns, others_loss=others_loss)


def test_a_worker_that_is_late_each_time_is_waited_for_and_probed_by_one_packet() -> None:
    one = recovery()
    start_ns = MS
    first = silence(one, start_ns)
    assert first == (2 * RTT_NS, 4)
    answer_all(one, start_ns + 20 * MS)
    start_ns += 21 * MS
    waited_ns, probes = silence(one, start_ns)
    assert 20 * MS < waited_ns < 30 * MS
    assert probes == 1
    assert one.counters.timeouts == 0 or probes == 1


@pytest.mark.parametrize("whose", ["ours", "another's"])
def test_a_loss_ends_the_patience_for_a_second(whose: str) -> None:
    one = recovery()
    silence(one, MS)
    answer_all(one, 21 * MS)
    silence(one, 22 * MS)
    if whose == "ours":
        one.answered(0, 50 * MS, copy=1)  # by the probe
        for lane in range(1, LANES):
            one.answered(lane, 50 * MS)
        # Which was needed, if no other answer comes before the next one.
        one.sent(0, 50 * MS, VALUES, 50 * MS)
        one.answered(0, 50 * MS + RTT_NS)
    else:
        answer_all(one, 50 * MS, others_loss=True)
    waited_ns, probes = silence(one, 51 * MS)
    assert waited_ns <= 2 * MS
    assert probes == 4
    answer_all(one, 71 * MS)
    # A second without any: what was learnt counts again, though half is forgotten each second.
    one.sent(0, 1100 * MS, VALUES, 1100 * MS)
    one.answered(0, 1100 * MS + RTT_NS)
    waited_ns, probes = silence(one, 1101 * MS)
    assert waited_ns > 5 * MS
    assert probes == 1


def test_patience_has_an_end() -> None:
    one = recovery()
    silence(one, MS)
    answer_all(one, 5000 * MS)
    waited_ns, _ = silence(one, 5001 * MS)
    assert waited_ns == 64 * MS


def test_while_a_late_worker_is_waited_for_no_lanes_timer_runs_out() -> None:
    one = recovery()
    for start_ns in range(100 * MS, 2000 * MS, 100 * MS):
        for lane in range(LANES):
            one.sent(lane, start_ns + lane, VALUES, start_ns)
        for now_ns in range(start_ns, start_ns + 60 * MS, MS // 2):
            one.due(now_ns)
        answer_all(one, start_ns + 60 * MS)
        if start_ns == 100 * MS:
            unknown = one.counters.retransmissions
    # With a timer of its own for each lane there would be a window of them each time.
    assert unknown < LANES
    assert one.counters.retransmissions == unknown


def test_what_comes_from_elsewhere_leaves_the_flight_and_teaches_nothing() -> None:
    one = recovery()
    one.sent(0, 100, VALUES, MS)
    assert one.in_flight == 1
    one.withdrawn(0)
    assert (one.in_flight, one.deadline_ns) == (0, None)
    assert one.counters.losses == one.counters.spurious == one.counters.probes == 0


@pytest.mark.parametrize("window", ["adaptive", "fixed"])
def test_a_full_window_has_room_for_chunks_below_it_alone(window: str) -> None:
    one = recovery(window=window)
    for lane in range(1, LANES):
        one.sent(lane, 1000 + lane, VALUES, MS)
    assert one.has_room_for(1 << 40)
    one.sent(0, 5000, VALUES, MS)
    assert not one.has_room_for(1001 + LANES)
    assert one.has_room_for(1000 + LANES)


@pytest.mark.parametrize("loss", [0.0, 0.01])
@pytest.mark.parametrize(
    ("window", "most_ns"),
    [("adaptive", 120_000), ("ina", 180_000)],  # three round trips; some more where they are spread
)
def test_workers_that_compute_between_tensors_hardly_resend(
    window: str, most_ns: int, loss: float
) -> None:
    """Steps of a training: each rank comes when its own computing is over, up to 30 ms apart."""
    workers, steps, elems = 4, 60, 200 * 64
    star = Star(workers, slots=256, way=even(20_000, loss), seed=3, window=Choice(window))
    late = np.random.default_rng(1).integers(0, 30, (steps, workers))
    data = np.ones(elems, np.float32)
    outs = [np.empty_like(data) for _ in range(workers)]
    for step in range(1, steps + 1):
        start_ns = star.now_ns
        for rank in np.argsort(late[step - 1], kind="stable"):
            star.run_until(start_ns + int(late[step - 1][rank]) * MS)
            star.submit(int(rank), step, data, outs[rank])
        last_ns = star.now_ns
        star.run(step)
        # Nobody lets results lie because the last ones took so long.
        assert loss > 0 or 120_000 <= star.now_ns - last_ns <= most_ns
    assert all((out == workers).all() for out in outs)
    sent = sum(worker.counters.packets_sent for worker in star.workers)
    resent = sum(worker.counters.retransmissions for worker in star.workers)
    if loss == 0:
        assert resent < 0.003 * sent  # in the first steps; then it is known how late others are
        assert all(worker.in_flight_limit == 128 for worker in star.workers)
    else:  # each loss on the way up is found by all workers, for none knows whose it is
        assert resent < 2 * workers * star.lost


def test_small_packets_take_up_as_much_of_a_window_as_they_have_bytes() -> None:
    """74 bytes of 330. They hold exponents, on which workers agree before they send values."""
    for is_small, most in ((False, 4), (True, 18)):
        one = LossRecovery(LANES, RtoLimits(), Choice("fixed", [("packets", 4.0)]))
        sent = 0
        while one.has_room_for(sent + 1000):
            one.sent(sent, sent + 1000, VALUES, MS, is_small=is_small)
            sent += 1
        assert sent == most


def test_windows_are_not_told_of_small_packets() -> None:
    for is_small in (False, True):
        one = LossRecovery(LANES, RtoLimits(), Choice("ina"))
        before = one.window_packets
        for lane in range(8):
            one.sent(lane, lane, VALUES, MS, is_small=is_small)
        for lane in range(8):
            one.answered(lane, 2 * MS)
        assert (one.window_packets > before) != is_small


@pytest.mark.parametrize(("pace", "at_once"), [(1.05, 8), (0.0, 40)])
def test_copies_leave_at_the_windows_pace(pace: float, at_once: int) -> None:
    """Forty are found to be lost at once: together they would not fit into a small queue again."""
    one = LossRecovery(LANES, RtoLimits(), Choice("ina", [("pace", pace)]))
    for lane in range(LANES):
        one.sent(lane, lane, VALUES, 0)
    for lane in range(LANES):
        one.answered(lane, RTT_NS)
    for lane in range(40):
        one.sent(lane, 100 + lane, VALUES, MS)
    one.sent(40, 200, VALUES, MS + 2 * RTT_NS)
    now_ns = MS + 4 * RTT_NS
    one.answered(40, now_ns)
    again = lanes_due(one, now_ns)
    assert len(again) == at_once
    while len(again) < 40:
        assert one.deadline_ns is not None
        assert now_ns < one.deadline_ns < now_ns + RTT_NS
        now_ns = one.deadline_ns
        again += lanes_due(one, now_ns)
    assert sorted(again) == list(range(40))
    assert now_ns < MS + 5 * RTT_NS


def test_a_small_pace_lets_one_go_a_round_trip() -> None:
    """Of a round trip that somebody's lateness made long, it would come to minutes."""
    one = LossRecovery(LANES, RtoLimits(), Choice("ina", [("pace", 0.001)]))
    one.sent(0, 0, VALUES, 0)
    one.answered(0, 2_000 * MS)
    one.sent(1, 1, VALUES, 2_000 * MS)
    assert 2_000 * MS < one.paced_ns <= 4_000 * MS
