"""Where all_reduces go, however ranks' steps interleave: the same way on all, in order, once.

Ranks are gates over a Gloo of this file, whose calls end one after the other, and at each rank
when it likes to, after all ranks have made them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.errors import InaError
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from ina.torch.errors import GroupClosedError
from ina.torch.fallback.gate import FIRST_BALLOT, Ballot, Gate, JoinedSession, Route
from ina.torch.fallback.sums import GlooSum
from tests.selection import LONG


@dataclass
class Call:
    """One collective of one rank; ``sums`` are named by a number."""

    sum: int | None
    ballot: Ballot | None
    ended: Callable[[Ballot | None], object]


@dataclass
class Wire:
    """Gloo, as all ranks call it."""

    calls: list[list[Call]]
    ended: list[int]

    def is_due(self, rank: int) -> bool:
        """Whether the next call of this rank can end: all ranks have made it."""
        return all(len(calls) > self.ended[rank] for calls in self.calls)

    def end(self, rank: int) -> None:
        """End it, after a look whether all ranks have made the same one."""
        number = self.ended[rank]
        self.ended[rank] += 1
        made = [calls[number] for calls in self.calls]
        assert len({one.sum for one in made}) == 1, "ranks sum different things"
        ballots = [one.ballot for one in made if one.ballot is not None]
        assert len(ballots) in (0, len(made))
        least = None
        if ballots:
            least = Ballot(
                min(it.epoch for it in ballots),
                min(it.negated for it in ballots),
                min(it.pause for it in ballots),
            )
        made[rank].ended(least)


@dataclass
class Session:
    """A session that only writes down what it was given."""

    epoch: int
    taken: list[int] = field(default_factory=list)
    before: int = -1
    error: InaError | None = None

    def count_on_from(self, sums: int) -> None:
        self.before = sums

    def start(self, one: GlooSum) -> None:
        if self.error is not None:
            raise self.error
        self.taken.append(number_of(one))
        one.end(None)


def number_of(one: GlooSum) -> int:
    return int(one.source)


NUMBER = Collective(ValueType.INT32, 1)


class Rank:
    """A gate and what it calls."""

    def __init__(self, rank: int, wire: Wire) -> None:
        self._rank, self._wire = rank, wire
        self.now_s = 0.0
        self.gate = Gate(self, self.crossed, clock=lambda: self.now_s)
        self.ways: list[tuple[int, str]] = []
        self.used: list[Session] = []
        self.candidate: Session | None = None
        self.submitted = 0
        self.sums: list[GlooSum] = []

    def start(self, one: GlooSum) -> None:
        assert one.number in (0, number_of(one) + 1)  # 0: its session had been given it
        self.ways.append((number_of(one), "gloo"))
        self._wire.calls[self._rank].append(
            Call(number_of(one), None, lambda _result: one.end(None))
        )

    def ask(self, ballot: Ballot, answered: Callable[[Ballot | None], None]) -> None:
        self._wire.calls[self._rank].append(Call(None, ballot, answered))

    def crossed(self, network: JoinedSession) -> None:
        assert isinstance(network, Session)
        self.used.append(network)
        self.candidate = None

    def submit(self) -> None:
        one = GlooSum(NUMBER, torch.tensor(self.submitted))
        self.submitted += 1
        self.now_s += 0.05 * (1 + self._rank)  # each has a speed of its own
        self.sums.append(one)
        self.gate.submit(one)


def ranks_of(count: int, *, returns: bool = True, ahead: tuple[int, ...] = ()) -> list[Rank]:
    """Ranks that have just agreed; ``ahead``: how many their sessions had been given."""
    wire = Wire([[] for _ in range(count)], [0] * count)
    ranks = [Rank(rank, wire) for rank in range(count)]
    ahead = ahead or (0,) * count
    for rank, given_sums in zip(ranks, ahead, strict=True):
        rank.gate.recover()
        rank.submitted = given_sums
        # What only some sessions were given goes first; others come to it.
        for number in range(min(ahead), given_sums):
            rank.start(GlooSum(NUMBER, torch.tensor(number)))
        rank.gate.open(given_sums, max(ahead), returns=returns)
    return ranks


def settle(ranks: list[Rank]) -> None:
    """End all that can end."""
    wire = ranks[0]._wire
    while due := [rank for rank in range(len(ranks)) if wire.is_due(rank)]:
        for rank in due:
            wire.end(rank)


class Steps:
    """What may happen next to some rank, drawn by hypothesis."""

    def __init__(self, ranks: list[Rank], data: st.DataObject, total: int) -> None:
        self.ranks, self.data, self.total = ranks, data, total
        self.epoch = 0

    def join(self) -> None:
        """All ranks get a session of the next incarnation; some may have one of the last."""
        self.epoch += 1
        for rank in self.ranks:
            is_free = rank.candidate is None or rank.gate.withdraw(rank.candidate)
            if is_free and not rank.used and self.data.draw(st.booleans()):
                rank.candidate = Session(self.epoch)
                rank.gate.offer(rank.candidate)

    def step(self) -> None:
        rank = self.data.draw(st.integers(0, len(self.ranks) - 1))
        what = self.data.draw(st.sampled_from(["submit", "submit", "submit", "end", "end", "join"]))
        if what == "submit" and self.ranks[rank].submitted < self.total:
            self.ranks[rank].submit()
        elif what == "end" and self.ranks[0]._wire.is_due(rank):
            self.ranks[0]._wire.end(rank)
        elif what == "join":
            self.join()


@given(st.data())
@settings(max_examples=2000 if LONG else 50, deadline=None)
def test_every_sum_goes_the_same_way_on_all_ranks(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    ahead = data.draw(st.tuples(*[st.integers(0, 3)] * count))
    ranks = ranks_of(count, ahead=ahead)
    steps = Steps(ranks, data, total=40)
    for _ in range(data.draw(st.integers(0, 150))):
        steps.step()
    for rank in ranks:  # the rest, one rank after the other
        while rank.submitted < steps.total:
            rank.submit()
    settle(ranks)
    for rank in ranks:
        assert all(one.done() for one in rank.sums)
        over_network = [number for one in rank.used for number in one.taken]
        over_gloo = [number for number, _ in rank.ways]
        assert over_gloo + over_network == list(range(min(ahead), steps.total))
    assert len({tuple(rank.ways[-1:]) for rank in ranks}) == 1
    used = [[(one.epoch, one.before, one.taken) for one in rank.used] for rank in ranks]
    assert all(one.before == one.taken[0] for rank in ranks for one in rank.used)
    assert all(one == used[0] for one in used)


def test_ranks_go_back_before_the_first_ballot_that_all_have_joined() -> None:
    ranks = ranks_of(2)
    for rank in ranks:
        rank.gate.offer(Session(7))
        for _ in range(10):
            rank.submit()
        assert rank.gate.way is Route.ASKING
    settle(ranks)
    for rank in ranks:
        assert rank.gate.way is Route.NETWORK
        assert rank.ways == [(number, "gloo") for number in range(FIRST_BALLOT)]
        assert rank.used[0].taken == list(range(FIRST_BALLOT, 10))
        rank.submit()  # by a caller that had seen no session yet
        assert rank.used[0].taken[-1] == 10


def test_one_that_has_not_joined_keeps_all_on_gloo() -> None:
    ranks = ranks_of(3)
    for rank in ranks[1:]:
        rank.gate.offer(Session(7))
    for rank in ranks:
        for _ in range(20):
            rank.submit()
    settle(ranks)
    assert all(len(rank.ways) == 20 and not rank.used for rank in ranks)
    assert len({rank.gate.refused for rank in ranks}) == 1
    assert ranks[0].gate.refused > 0


def test_sessions_of_two_incarnations_are_not_one() -> None:
    ranks = ranks_of(2)
    for epoch, rank in enumerate(ranks, 7):
        rank.gate.offer(Session(epoch))
        for _ in range(FIRST_BALLOT + 1):
            rank.submit()
    settle(ranks)
    assert all(not rank.used and rank.gate.way is Route.GLOO for rank in ranks)


def test_where_nobody_returns_no_ballot_is_put() -> None:
    ranks = ranks_of(2, returns=False)
    for rank in ranks:
        rank.gate.offer(Session(7))
        for _ in range(50):
            rank.submit()
    settle(ranks)
    assert all(len(rank.ways) == 50 for rank in ranks)


def test_what_was_put_in_cannot_be_taken_back_before_the_answer() -> None:
    ranks = ranks_of(2)
    mine, other = Session(7), Session(7)
    ranks[0].gate.offer(mine)
    for _ in range(FIRST_BALLOT + 1):
        ranks[0].submit()
    assert not ranks[0].gate.withdraw(mine)
    ranks[1].gate.offer(other)
    assert ranks[1].gate.withdraw(other)
    for _ in range(FIRST_BALLOT + 1):
        ranks[1].submit()
    settle(ranks)
    assert ranks[0].gate.withdraw(mine)
    assert not any(rank.used for rank in ranks)


def test_a_session_that_fails_as_it_is_used_fails_what_it_was_to_sum() -> None:
    ranks = ranks_of(1)
    error = GroupClosedError("it was closed")
    ranks[0].gate.offer(Session(7, error=error))
    for _ in range(FIRST_BALLOT + 2):
        ranks[0].submit()
    settle(ranks)
    assert [one._error for one in ranks[0].sums] == [None] * FIRST_BALLOT + [error] * 2


def test_a_ballot_that_fails_is_the_last() -> None:
    ranks = ranks_of(1)
    ranks[0].gate.offer(Session(7))
    for _ in range(FIRST_BALLOT + 1):
        ranks[0].submit()
    waiting: deque[Call] = deque(ranks[0]._wire.calls[0])
    waiting.pop().ended(None)
    assert len(ranks[0].ways) == FIRST_BALLOT + 1
    for _ in range(20):
        ranks[0].submit()
    assert len(ranks[0].ways) == FIRST_BALLOT + 21


def test_the_end_of_a_group_ends_what_waits_for_an_answer() -> None:
    ranks = ranks_of(2)
    mine = Session(7)
    ranks[0].gate.offer(mine)
    for _ in range(FIRST_BALLOT + 3):
        ranks[0].submit()
    error = GroupClosedError("it was closed")
    assert ranks[0].gate.fail(error)
    assert not ranks[0].gate.fail(error)
    assert [one._error for one in ranks[0].sums[FIRST_BALLOT:]] == [error] * 3
    assert ranks[0].gate.withdraw(mine)
    ranks[0].submit()
    assert ranks[0].sums[-1]._error is error


def test_sums_are_told_where_they_go_whenever_they_ask() -> None:
    ranks = ranks_of(1)
    ranks[0].gate.offer(Session(7))
    heard: list[bool] = []
    for _ in range(FIRST_BALLOT + 2):
        ranks[0].submit()
        ranks[0].sums[-1].when_sent(heard.append)
    assert heard == [False] * FIRST_BALLOT
    settle(ranks)
    assert heard == [False] * FIRST_BALLOT + [True] * 2


def test_ballots_are_rare_where_sums_are_many() -> None:
    (rank,) = ranks_of(1)
    for _ in range(10_000):
        rank.now_s += 0.001 - 0.05
        rank.submit()
        settle([rank])
    ballots = sum(call.ballot is not None for call in rank._wire.calls[0])
    assert 20 <= ballots <= 60  # ten seconds


def test_sums_that_start_at_once_are_not_taken_for_quick_ones() -> None:
    """Else many of them would go before ranks ask again."""
    wire = Wire([[]], [0])
    rank = Rank(0, wire)
    rank.gate.recover()
    for _ in range(2000):
        rank.submit()
    rank.now_s = 0.0
    rank.gate.open(0, 0, returns=True)
    pauses = []
    while wire.is_due(0):
        ballot = wire.calls[0][wire.ended[0]].ballot
        if ballot is None:
            rank.now_s += 0.001  # each takes
        else:
            pauses.append(ballot.pause)
        wire.end(0)
    assert pauses[0] == FIRST_BALLOT
    assert len(pauses) > 5
    assert all(200 < pause <= 250 for pause in pauses[1:])
