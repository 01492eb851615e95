"""Leases: who is dead when, and that a worker who is heard in time never is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ina.controller.watch.leases import AWAY_S, LeaseTable, Member
from tests.selection import examples

LEASE_S = 10.0
A, B = Member(1, 0), Member(1, 1)
SILENT = "is dead, stopped or not running Python: no heartbeat for"


def table() -> LeaseTable:
    leases = LeaseTable(LEASE_S)
    leases.keep([A, B], 0.0)
    return leases


def look(leases: LeaseTable, *times_s: float) -> dict[Member, str]:
    """Asks at each time, as the controller's timer does; the last answer."""
    return [leases.lost(time_s) for time_s in times_s][-1]


def test_who_is_silent_for_a_lease_is_dead() -> None:
    leases = table()
    times = [float(second) for second in range(10)]
    assert look(leases, *times) == {}
    leases.renew(B, 9.0)
    assert leases.lost(10.0) == {A: f"{SILENT} 10 s"}
    leases.keep([B], 10.0)
    assert leases.lost(10.5) == {}
    assert leases.left_s(B, 12.0) == 7.0
    assert A not in leases


def test_workers_of_a_former_controller_with_longer_leases_have_time_to_come() -> None:
    leases = LeaseTable(1.0)
    leases.keep([A], 0.0)
    times = [float(second) for second in range(10)]
    assert look(leases, *times) == {}
    leases.keep([A, B], 9.0)  # B's job has started since
    assert leases.lost(10.0) == dict.fromkeys([A, B], f"{SILENT} 1 s")


def test_a_broken_connection_shortens_the_wait_until_the_worker_is_heard() -> None:
    leases = table()
    assert leases.broken_s == 3.0  # longer than a heartbeat's 2 s
    for member in (A, B):
        leases.watch_begins(member, 0.0)
    leases.watch_ends(A, 1.0)
    leases.watch_ends(B, 1.0)
    leases.renew(B, 2.0)
    assert look(leases, 2.0, 3.0, 3.9) == {}
    assert leases.left_s(A, 3.0) == 1.0
    assert leases.lost(4.0) == {
        A: "has died, or is stopped: its connection broke and no heartbeat came for 3 s"
    }
    assert leases.left_s(B, 4.0) == 8.0


def test_who_answers_pings_lives_whatever_its_heartbeats_do() -> None:
    leases = table()
    leases.watch_begins(A, 0.0)
    leases.renew(B, 0.0)
    assert set(look(leases, *range(61))) == {B}
    assert leases.left_s(A, 60.0) == 10.0
    leases.watch_ends(A, 60.0)  # it may be that a ping of 53 s was the last to be answered
    assert set(look(leases, 61.0, 62.0, 62.9)) == {B}
    assert set(look(leases, 63.0)) == {A, B}


def test_pings_break_the_stream_of_who_is_stopped_so_that_it_is_dead_after_a_lease() -> None:
    for lease_s in (5.0, 10.0, 15.0, 3600.0):
        leases = LeaseTable(lease_s)
        assert leases.ping_s + leases.ping_timeout_s + leases.broken_s == lease_s
        assert 1.0 <= leases.ping_s <= 2.0
    shortest = LeaseTable(1.0)
    assert (shortest.ping_s, shortest.ping_timeout_s) == (1.0, 1.0)  # gRPC can no less


def test_a_sum_that_completes_shows_that_all_took_part() -> None:
    leases = table()
    other = Member(2, 0)
    leases.keep([A, B, other], 0.0)
    leases.renew(B, 8.0)
    look(leases, *range(9))
    leases.took_part(1, 7.0)
    assert leases.left_s(A, 8.0) == 9.0
    assert leases.left_s(B, 8.0) == 10.0
    assert set(look(leases, 9.0, 10.0, 11.0)) == {other}
    leases.watch_begins(A, 11.0)
    leases.watch_ends(A, 11.0)
    leases.took_part(1, 10.0)  # before it broke
    leases.took_part(1, 12.0)
    assert set(look(leases, 12.0, 13.0, 14.0)) == {other}
    assert set(look(leases, 15.0)) == {A, other}


def test_who_should_have_been_heard_is_overdue() -> None:
    leases = table()
    leases.watch_begins(A, 0.0)
    assert not leases.is_overdue(A, 4.0)
    assert leases.is_overdue(A, 4.1)
    leases.renew(A, 5.0)
    assert not leases.is_overdue(A, 5.0)
    leases.watch_ends(A, 6.0)
    assert leases.is_overdue(A, 6.0)
    assert not leases.is_overdue(Member(9, 9), 6.0)


def test_workers_of_a_former_controller_may_be_dead_until_they_are_heard() -> None:
    """They have time to come; who starts their job again meanwhile waits for what it finds."""
    leases = LeaseTable(LEASE_S)
    leases.keep([A], 0.0)
    assert leases.is_overdue(A, 0.0)
    assert look(leases, 0.0) == {}
    leases.renew(A, 1.0)
    assert not leases.is_overdue(A, 1.0)
    later = Member(2, 0)
    leases.keep([A, later], 1.0)  # of a job that this controller has started
    assert not leases.is_overdue(later, 1.0)


def test_a_second_stream_takes_over_from_the_first() -> None:
    leases = table()
    leases.watch_begins(A, 0.0)
    leases.watch_begins(A, 1.0)
    leases.watch_ends(A, 1.5)
    assert leases.is_watching(A)
    assert look(leases, 2.0, 4.0, 6.0) == {}


def test_a_stream_that_outlives_its_job_changes_nothing() -> None:
    leases = table()
    leases.watch_begins(A, 0.0)
    leases.keep([B], 1.0)
    leases.watch_ends(A, 2.0)
    assert A not in leases


def test_a_controller_that_was_stopped_itself_blames_nobody() -> None:
    leases = table()
    leases.watch_begins(A, 0.0)
    leases.watch_ends(A, 0.5)
    assert look(leases, 1.0, 500.0, 501.0) == {}
    assert set(look(leases, 502.0, 503.0, 504.0)) == {A}
    assert set(look(leases, 506.0, 508.0, 509.5)) == {A, B}


@given(st.floats(1, 3600))
def test_a_healthy_worker_heartbeats_before_any_time_is_over(lease_s: float) -> None:
    leases = LeaseTable(lease_s)
    assert leases.heartbeat_s < leases.broken_s <= lease_s
    assert leases.heartbeat_s <= 2.0


class Renewing(RuleBasedStateMachine):
    """Without a stream A is heard every 9.9 s, and within 2.9 s of a break; B is never heard."""

    def __init__(self) -> None:
        super().__init__()
        self.leases = table()
        self.now_s = 0.0
        self.watches = 0
        self.must_be_heard_s = 9.9
        self.asked_s = 0.0
        self.listened_s = 0.0

    @rule(step_s=st.floats(0, 20))
    def time_passes(self, step_s: float) -> None:
        self.now_s = min(self.now_s + step_s, self.must_be_heard_s)

    @rule()
    def heartbeat(self) -> None:
        self.leases.renew(A, self.now_s)
        self.must_be_heard_s = self.now_s + (1e6 if self.watches else 9.9)

    @rule()
    def watch(self) -> None:
        self.leases.watch_begins(A, self.now_s)
        self.watches += 1
        self.must_be_heard_s = self.now_s + 1e6

    @rule()
    def breaks(self) -> None:
        if self.watches:
            self.watches -= 1
            self.leases.watch_ends(A, self.now_s)
            if not self.watches:
                self.must_be_heard_s = min(self.must_be_heard_s, self.now_s + 2.9)

    @rule()
    def controller_starts_anew_with_others(self) -> None:
        self.leases.keep([A, B, Member(2, 0)], self.now_s)

    @invariant()
    def who_is_heard_lives_and_who_is_not_dies(self) -> None:
        lost = self.leases.lost(self.now_s)
        gap_s, self.asked_s = self.now_s - self.asked_s, self.now_s
        self.listened_s += gap_s if gap_s <= AWAY_S else 0.0
        assert A not in lost
        assert (B in lost) == (self.listened_s >= LEASE_S) or abs(self.listened_s - LEASE_S) < 1e-6


TestRenewing = Renewing.TestCase
TestRenewing.settings = settings(max_examples=examples(100))
