"""Retransmission, backoff and giving up, with the time passed in."""

from __future__ import annotations

from dataclasses import replace

from ina._native.congestion import Choice
from ina._native.host import WorkerCore
from ina.protocol.codec import Header, decode
from ina.protocol.collective import Collective
from ina.protocol.spec import HEADER_BYTES, Flag
from tests.host.by_hand import DATA, OUT, SLOTS, VALUES, W, answer, sent_at, worker
from tests.worlds.virtual.cores import EPOCH, JOB, MS, worker_config

# How losses are found depends on none of them.
WINDOWS = Choice("adaptive"), Choice("fixed"), Choice("ina", [("pace", 0.0)])


def next_deadline(core: WorkerCore, now_ns: int) -> int:
    deadline = core.next_deadline_ns(now_ns)
    assert deadline is not None
    return deadline


def test_nothing_is_due_while_idle() -> None:
    core = worker(1)
    (header,) = sent_at(core, 0)
    answer(core, header, 1000)
    assert core.take_completions() == [1]
    assert core.next_deadline_ns(1000) is None


def test_an_unanswered_packet_is_sent_again_with_the_same_values() -> None:
    core = worker(1)
    (first,) = core.poll_transmit(0)
    due = next_deadline(core, 0)
    assert due == core.rto_ns
    assert core.poll_transmit(due - 1) == []
    (second,) = core.poll_transmit(due)
    assert decode(second)[0] == replace(decode(first)[0], flags=Flag.RESEND, copy=1)
    assert second[HEADER_BYTES:] == first[HEADER_BYTES:]
    assert core.counters.retransmissions == 1


def test_the_interval_doubles_up_to_its_cap_and_stays_there() -> None:
    core = worker(1)
    sent_at(core, 0)
    now_ns, intervals = 0, []
    for _ in range(12):
        due = next_deadline(core, now_ns)
        intervals.append(due - now_ns)
        now_ns = due
        assert len(sent_at(core, now_ns)) == 1
    assert intervals[:4] == [20 * MS, 40 * MS, 80 * MS, 160 * MS]
    assert set(intervals[4:]) == {200 * MS}


def test_the_timeout_follows_the_round_trip() -> None:
    core = worker(10 * W)
    now_ns = 0
    in_flight = sent_at(core, now_ns)
    for _ in range(9):
        now_ns += 10 * MS
        for header in in_flight:
            answer(core, header, now_ns)
        in_flight = sent_at(core, now_ns)
    assert 9 * MS < core.srtt_ns < 11 * MS
    assert 10 * MS <= core.rto_ns < 20 * MS
    assert core.counters.retransmissions == 0


def test_a_sample_is_never_taken_from_a_packet_sent_twice() -> None:
    core = worker(1)
    (header,) = sent_at(core, 0)
    sent_at(core, 20 * MS)
    answer(core, header, 21 * MS)
    assert core.take_completions() == [1]
    assert core.srtt_ns == 0


def test_backoff_outlives_the_packet_until_a_sample_comes() -> None:
    core = worker(3 * W)
    in_flight = sent_at(core, 0)
    now_ns = 0
    while core.counters.retransmissions < 3 * W:  # every packet was sent more than once
        now_ns = next_deadline(core, now_ns)
        sent_at(core, now_ns)
    backed_off_ns = core.rto_ns
    assert backed_off_ns > 20 * MS
    for header in in_flight:
        answer(core, header, now_ns)
    assert core.rto_ns == backed_off_ns
    for header in sent_at(core, now_ns):
        answer(core, header, now_ns + MS)
    fresh_ns = core.rto_ns
    assert fresh_ns < backed_off_ns
    sent_at(core, now_ns + MS)
    while core.rto_ns == fresh_ns:
        now_ns = next_deadline(core, now_ns + MS)
        sent_at(core, now_ns)
    assert core.rto_ns == 2 * fresh_ns  # once more from the start


def test_one_lost_packet_among_many_is_sent_again_alone() -> None:
    core = worker(10 * W)
    in_flight = sent_at(core, 0)
    lost = in_flight.pop(5)
    now_ns = 0
    resent: list[Header] = []
    for _ in range(8):
        now_ns += MS
        for header in in_flight:
            answer(core, header, now_ns)
        sent = sent_at(core, now_ns)
        resent += [header for header in sent if Flag.RESEND in header.flags]
        in_flight = [header for header in sent if Flag.RESEND not in header.flags]
    assert {header.seq for header in resent} == {lost.seq}
    assert 1 <= len(resent) <= 3


def test_a_late_worker_does_not_cause_a_storm() -> None:
    """Nothing comes back for a second: probes only, far fewer than a window for each timeout."""
    core = worker(10 * W)
    in_flight = sent_at(core, 0)
    assert len(in_flight) == W
    now_ns = 0
    while now_ns < 1000 * MS:
        now_ns = next_deadline(core, now_ns)
        sent_at(core, now_ns)
    timeouts_if_each_lane_did = 3 + (1000 - 140) // 200
    assert 0 < core.counters.retransmissions <= W // 4 * (timeouts_if_each_lane_did + 1)
    # When the results come at last, the others are not sent again before a timeout from now.
    sent_before = core.counters.retransmissions
    answer(core, in_flight[0], now_ns)
    sent = sent_at(core, now_ns)
    assert core.counters.retransmissions == sent_before
    assert [header.seq for header in sent] == [W]


def test_a_lost_packet_in_a_late_workers_window_is_recovered() -> None:
    core = worker(W)
    in_flight = sent_at(core, 0)
    now_ns = 300 * MS
    sent_at(core, now_ns)
    for header in in_flight[:-1]:
        answer(core, header, now_ns)
    lost = in_flight[-1].seq
    for _ in range(3):
        now_ns = next_deadline(core, now_ns)
        if lost in {header.seq for header in sent_at(core, now_ns)}:
            return
    raise AssertionError("the lost packet was not sent again")


def test_it_gives_up_when_nothing_completes_for_the_stall_timeout() -> None:
    core = worker(3, stall_s=1.0)
    first, second, third = sent_at(core, 0)
    answer(core, first, 500 * MS)
    answer(core, third, 600 * MS)
    now_ns = 600 * MS
    while core.stall is None and now_ns < 10_000 * MS:
        now_ns = next_deadline(core, now_ns)
        sent_at(core, now_ns)
    assert core.stall is not None
    assert now_ns == 1600 * MS
    assert core.stall.oldest_seq == second.seq
    assert core.stall.in_flight == 1
    assert core.next_deadline_ns(now_ns) is None
    answer(core, second, now_ns)
    assert core.take_completions() == []


def test_waiting_before_the_first_submission_is_no_stall() -> None:
    core = WorkerCore(worker_config(0, 2, SLOTS, VALUES, 1.0))
    core.submit(1, DATA.ctypes.data, OUT.ctypes.data, Collective(0, VALUES), 50_000 * MS)
    assert len(core.poll_transmit(50_000 * MS)) == 1
    assert core.stall is None


def test_a_lane_that_the_window_holds_back_waits_for_results_not_for_time() -> None:
    """However long it takes: what fills the window waits for a worker that is late."""
    core = WorkerCore(worker_config(0, 2, SLOTS, VALUES), 2)
    core.submit(1, DATA.ctypes.data, OUT.ctypes.data, Collective(0, 5 * VALUES), 0)
    first, second = sent_at(core, 0)
    assert (first.seq, second.seq) == (0, 1)
    for later in (2 * MS, 100 * MS, 500 * MS):
        assert all(Flag.RESEND in h.flags for h in sent_at(core, later))
    answer(core, first, 501 * MS)
    assert [h.seq for h in sent_at(core, 501 * MS) if Flag.RESEND not in h.flags] == [2]


def test_when_only_what_was_asked_for_again_comes_twice_as_much_is_asked_for_at_once() -> None:
    core = worker(10 * W)
    sent_at(core, 0)  # all of it is lost
    now_ns = next_deadline(core, 0)
    rounds = []
    while probes := [h for h in sent_at(core, now_ns) if Flag.RESEND in h.flags]:
        rounds.append(len(probes))
        assert [h.seq for h in probes] == sorted(h.seq for h in probes)
        if sum(rounds) >= W:
            break
        now_ns += MS // 10
        for header in probes:
            answer(core, header, now_ns)
    assert rounds[:2] == [4, 8]
    assert core.counters.timeouts == 1


def test_where_all_has_to_be_asked_for_twice_it_goes_on_without_timeouts() -> None:
    core = worker(60 * W)
    sent_at(core, 0)
    now_ns = next_deadline(core, 0)
    for _ in range(50):
        probes = [h for h in sent_at(core, now_ns) if Flag.RESEND in h.flags]
        assert probes
        now_ns += MS // 10
        for header in probes:
            answer(core, header, now_ns)
    assert core.counters.timeouts == 1


def with_six_unanswered(now_ns: int) -> tuple[WorkerCore, list[Header]]:
    """The end of a tensor: of 20 packets sent at 0, 14 are answered by now."""
    core = worker(20)
    in_flight = sent_at(core, 0)
    for header in in_flight[:14]:
        answer(core, header, now_ns)
    assert sent_at(core, now_ns) == []
    return core, in_flight[14:]


def test_a_loss_that_nothing_overtakes_is_probed_for_after_two_round_trips() -> None:
    core, left = with_six_unanswered(MS // 10)
    due = next_deadline(core, MS // 10)
    assert due == MS // 10 + 2 * core.srtt_ns < core.rto_ns
    assert sent_at(core, due - 1) == []
    probes = sent_at(core, due)
    assert [h.seq for h in probes] == [h.seq for h in left[:4]]
    assert core.counters.timeouts == 0
    for header in probes:
        answer(core, header, due + MS // 10)
    # They were lost, it seems all was.
    assert [h.seq for h in sent_at(core, due + MS // 10)] == [h.seq for h in left[4:]]
    assert core.counters.timeouts == 0


def test_probes_whose_first_copies_were_only_late_are_followed_by_none() -> None:
    """So it is after another worker's pause: else all that is in flight would go twice for good."""
    core, left = with_six_unanswered(MS // 10)
    due = next_deadline(core, MS // 10)
    assert len(sent_at(core, due)) == 4
    for header in left[:4]:
        answer(core, header, due + MS // 10)
    assert sent_at(core, due + MS // 10) == []


def test_a_probe_that_is_lost_is_followed_by_one_more_before_the_timeout() -> None:
    core, left = with_six_unanswered(MS // 10)
    first = next_deadline(core, MS // 10)
    silence_ns = first - MS // 10
    probes = [h.seq for h in sent_at(core, first)]
    second = next_deadline(core, first)
    assert second == first + 2 * silence_ns
    assert [h.seq for h in sent_at(core, second)] == probes
    # No third: what follows is more likely a worker that is late.
    assert next_deadline(core, second) == second + core.rto_ns
    assert core.counters.timeouts == 0
    answer(core, left[0], second + MS // 10)
    assert next_deadline(core, second + MS // 10) < second + MS // 10 + core.rto_ns  # both anew


def silence_after_slow_round_trips(shortest_ns: int, window: Choice) -> tuple[int, int]:
    """Until a probe, after one round trip that is short and many of 20 ms; and the smoothed one.

    They are long because the other worker lost what it sent.
    """
    core = WorkerCore(worker_config(0, 2, SLOTS, VALUES), congestion=window)
    core.submit(1, DATA.ctypes.data, OUT.ctypes.data, Collective(0, 60 * W * VALUES), 0)
    now_ns = shortest_ns
    in_flight = sent_at(core, 0)
    answer(core, in_flight.pop(0), now_ns)
    for _ in range(20):
        in_flight += [h for h in sent_at(core, now_ns) if Flag.RESEND not in h.flags]
        now_ns += 20 * MS
        for header in in_flight:
            answer(core, header, now_ns, others_loss=True)
        in_flight = []
    sent_at(core, now_ns)
    return next_deadline(core, now_ns) - now_ns, core.srtt_ns


def test_round_trips_that_others_losses_made_long_do_not_put_off_probes() -> None:
    for shortest_ns, most_ns in ((MS // 10, MS), (MS, 8 * MS)):
        for window in WINDOWS:
            silence_ns, smoothed_ns = silence_after_slow_round_trips(shortest_ns, window)
            assert silence_ns == most_ns < smoothed_ns


def test_what_varies_gets_more_time_before_it_is_probed_for() -> None:
    core = worker(W)
    in_flight = sent_at(core, 0)
    for number, header in enumerate(in_flight[: W // 2]):
        answer(core, header, MS // 10 + number % 2 * MS)
    now_ns = MS + MS // 10
    assert sent_at(core, now_ns) == []
    assert now_ns + 2 * core.srtt_ns < next_deadline(core, now_ns) < now_ns + core.rto_ns


def resent_when_overtaken_late(window: Choice) -> int:
    """How many are sent again, where one sent 0.3 ms later is answered after slow round trips."""
    core = WorkerCore(worker_config(0, 2, SLOTS, VALUES), congestion=window)
    core.submit(1, DATA.ctypes.data, OUT.ctypes.data, Collective(0, 60 * W * VALUES), 0)
    first, *others = sent_at(core, 0)
    answer(core, first, MS // 10)
    for header in others:
        answer(core, header, 3 * MS)
    early, *_ = sent_at(core, 3 * MS)
    answer(core, early, 3 * MS + 3 * MS // 10)
    (later,) = sent_at(core, 3 * MS + 3 * MS // 10)
    assert core.srtt_ns > MS
    answer(core, later, 3 * MS + 4 * MS // 10)
    return sum(Flag.RESEND in h.flags for h in sent_at(core, 3 * MS + 4 * MS // 10))


def test_round_trips_that_others_losses_made_long_do_not_hide_ours() -> None:
    for window in WINDOWS:
        assert resent_when_overtaken_late(window) == W - 1


def test_job_and_epoch_are_those_of_the_configuration() -> None:
    (header,) = sent_at(worker(1), 0)
    assert (header.job, header.epoch, header.worker) == (JOB, EPOCH & 0xFFFF, 0)
    assert (header.contributors, header.value_count) == (1, VALUES)


def test_an_overtaken_packet_is_sent_again_long_before_its_timer() -> None:
    core = worker(10 * W)
    now_ns = 0
    in_flight = sent_at(core, now_ns)
    lost = in_flight.pop(5)
    resent: list[tuple[int, int]] = []
    for _ in range(4):
        now_ns += MS // 10
        for header in in_flight:
            answer(core, header, now_ns)
        sent = sent_at(core, now_ns)
        resent += [(now_ns, header.seq) for header in sent if Flag.RESEND in header.flags]
        in_flight = [header for header in sent if Flag.RESEND not in header.flags]
    # Its window was answered after 0.1 ms, the packets sent then after 0.2 ms: these overtook it.
    assert resent[0] == (2 * MS // 10, lost.seq)
    assert core.counters.timeouts == 0
    assert core.counters.overtaken == len(resent) == core.counters.retransmissions


def test_packets_of_one_batch_do_not_overtake_each_other() -> None:
    core = worker(10 * W)
    for header in reversed(sent_at(core, 0)[1:]):
        answer(core, header, MS // 10)
    assert all(Flag.RESEND not in header.flags for header in sent_at(core, MS // 10))


def test_one_very_late_sample_hardly_moves_the_timeout() -> None:
    core = worker(10 * W)
    now_ns = 0
    for _ in range(8):
        in_flight = sent_at(core, now_ns)
        now_ns += MS // 2
        for header in in_flight:
            answer(core, header, now_ns)
    before_ns = core.srtt_ns
    late, *_ = sent_at(core, now_ns)
    answer(core, late, now_ns + 15 * MS // 10)  # before any timer, three times the usual
    assert before_ns < core.srtt_ns <= before_ns * 17 // 16 + 1


def test_results_after_a_pause_find_patient_timers() -> None:
    """The pause is longer than every timer; the first result must not set them all off."""
    core = worker(10 * W)
    now_ns = 0
    for _ in range(8):
        in_flight = sent_at(core, now_ns)
        now_ns += MS // 2
        for header in in_flight:
            answer(core, header, now_ns)
    in_flight = sent_at(core, now_ns)
    until_ns = now_ns + 20 * MS
    while (due := next_deadline(core, now_ns)) <= until_ns:
        now_ns = due
        sent_at(core, now_ns)
    sent_before = core.counters.retransmissions
    assert 0 < sent_before < W
    answer(core, in_flight[-1], until_ns)  # one that was sent once
    sent_at(core, until_ns)
    assert core.counters.retransmissions == sent_before


def test_small_tensors_are_in_flight_together() -> None:
    core = worker(1)
    for tensor_id in (2, 3):
        core.submit(tensor_id, DATA.ctypes.data, OUT.ctypes.data, Collective(0, VALUES), 0)
    assert [header.seq for header in sent_at(core, 0)] == [0, 1, 2]
