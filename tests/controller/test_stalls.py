"""Who is missing, from what the workers report of their lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ina.controller.watch.stalls import (
    UNDECIDED,
    LanesAt,
    Report,
    Stall,
    check_progress,
    find_stall,
    last_seq,
    oldest_waited_for,
)
from ina.rpc import controller_pb2 as pb2
from ina.trees.errors import JobRequestError
from tests.selection import examples

WRAP = 1 << 32
FIRST_SLOT = 100
OTHER_FIRST_SLOT = 500
"""Of a mapping that the job changes to, which has other lanes."""


def report(
    seqs: list[int],
    waits: list[bool],
    *,
    silent_s: float = 3.0,
    at_s: float = 10.0,
    mapping_epoch: int = 0,
) -> Report:
    """A worker's; it waits in the lanes where ``waits``."""
    bits = sum(1 << lane for lane, waiting in enumerate(waits) if waiting)
    progress = pb2.Progress(
        in_flight=sum(waits),
        silent_s=silent_s if any(waits) else 0.0,
        lane_seqs=[seq % WRAP for seq in seqs],
        lanes_waiting=bits.to_bytes((len(seqs) + 7) // 8, "little"),
        mapping_epoch=mapping_epoch,
    )
    return Report(progress, at_s, at_s)


def all_lanes(reports: dict[int, Report], first_slot: int, epoch: int = 0) -> LanesAt:
    """At one root, of the mapping of this epoch."""
    said = (it.progress for it in reports.values() if it.progress.mapping_epoch == epoch)
    return LanesAt("s", first_slot, range(max((len(it.lane_seqs) for it in said), default=1)))


def find(
    reports: dict[int, Report],
    *,
    left: set[int] | None = None,
    now_s: float = 10.0,
    ranks: int = 0,
    roots: Sequence[LanesAt] | None = None,
) -> Stall | str | None:
    return find_stall(
        reports,
        here=frozenset(range(ranks)) if ranks else frozenset(reports),
        left=frozenset(left or ()),
        roots={
            1: roots or [all_lanes(reports, FIRST_SLOT)],
            2: [all_lanes(reports, OTHER_FIRST_SLOT, 2)],
        },
        heartbeat_s=2.0,
        now_s=now_s,
    )


def test_the_one_who_has_not_sent_is_missing() -> None:
    found = find(
        {
            0: report([8, 9, 6, 7], [True, True, False, False]),
            1: report([4, 5, 6, 7], [False] * 4),
            2: report([8, 9, 6, 7], [True, True, False, False]),
        }
    )
    assert found == Stall(8, FIRST_SLOT, (1,), (0, 2), 7.0)


@pytest.mark.parametrize(
    ("seq", "slot"), [(8, 100), (9, 101), (10, 500), (11, 501), (12, 102), (15, 503)]
)
def test_of_lanes_dealt_among_two_roots_the_slot_is_that_root_s(seq: int, slot: int) -> None:
    """Of 4 lanes each has 2, and the second slot of each behind the first ones."""
    seqs = [seq - 4 + (lane - seq) % 4 for lane in range(4)]
    sent = [seq if lane == seq % 4 else before for lane, before in enumerate(seqs)]
    waits = [lane == seq % 4 for lane in range(4)]
    two = [LanesAt("a", 100, range(2)), LanesAt("b", 500, range(2, 4))]
    found = find({0: report(sent, waits), 1: report(seqs, [False] * 4)}, roots=two)
    assert isinstance(found, Stall)
    assert (found.seq, found.slot, found.missing) == (seq, slot, (1,))


@pytest.mark.parametrize(
    ("seq", "root", "slot"),
    [(8, "a", 100), (9, "b", 500), (11, "b", 502), (12, "a", 101), (13, "b", 503), (15, "b", 505)],
)
def test_of_trees_with_unequal_shares_the_slot_is_that_root_s(
    seq: int, root: str, slot: int
) -> None:
    """Of 4 lanes one has 1, the other 3."""
    seqs = [seq - 4 + (lane - seq) % 4 for lane in range(4)]
    sent = [seq if lane == seq % 4 else before for lane, before in enumerate(seqs)]
    waits = [lane == seq % 4 for lane in range(4)]
    two = [LanesAt("a", 100, range(1)), LanesAt("b", 500, range(1, 4))]
    found = find({0: report(sent, waits), 1: report(seqs, [False] * 4)}, roots=two)
    assert isinstance(found, Stall)
    assert (found.root, found.slot, found.missing) == (root, slot, (1,))


def test_of_several_lanes_the_oldest_number_counts() -> None:
    found = find(
        {
            0: report([8, 5], [True, False]),
            1: report([6, 7], [False, True]),
        }
    )
    assert found == Stall(7, FIRST_SLOT + 3, (0,), (1,), 7.0)


def test_all_have_sent_and_nothing_comes_back() -> None:
    reports = {rank: report([4, 5], [True, False]) for rank in range(3)}
    assert find(reports) == Stall(4, FIRST_SLOT, (), (0, 1, 2), 7.0)


def test_of_ranks_that_have_left_only_those_are_missing_that_are_known_not_to_have_sent() -> None:
    reports = {rank: report([4, 5], [True, False]) for rank in range(3)}
    assert find(reports, left={3}) == Stall(4, FIRST_SLOT, (), (0, 1, 2), 7.0, (3,))
    reports[3] = report([4, 5], [True, True])
    assert find(reports, left={3}, ranks=3) == Stall(4, FIRST_SLOT, (), (0, 1, 2), 7.0)
    reports[3] = report([2, 5], [False, True])
    assert find(reports, left={3}, ranks=3) == Stall(4, FIRST_SLOT, (3,), (0, 1, 2), 7.0)
    reports[3] = report([4, 5], [True, True], mapping_epoch=2)
    assert find(reports, left={3}, ranks=3) == Stall(4, FIRST_SLOT, (), (0, 1, 2), 7.0, (3,))


def test_who_waits_by_the_new_mapping_waits_for_those_who_are_not_there_yet() -> None:
    found = find(
        {
            0: report([9], [True], mapping_epoch=2),
            1: report([4, 5], [False, False]),
            2: report([9], [True], mapping_epoch=2),
            3: report([8], [False], mapping_epoch=2),
        }
    )
    assert found == Stall(9, OTHER_FIRST_SLOT + 1, (1, 3), (0, 2), 7.0)


def test_who_has_gone_over_is_not_missed_by_the_former_mapping() -> None:
    reports = {
        0: report([9], [True], mapping_epoch=2),
        1: report([4, 5], [True, False], mapping_epoch=1),
        2: report([2, 5], [False, False]),
    }
    assert find(reports) == Stall(4, FIRST_SLOT, (2,), (1,), 7.0)
    del reports[2]
    assert find(reports) == Stall(4, FIRST_SLOT, (), (1,), 7.0)


def test_a_report_by_a_mapping_that_is_gone_says_nothing_of_the_new_one() -> None:
    reports = {
        0: report([9, 8], [True, False], mapping_epoch=2),
        1: report([9, 8, 7, 6], [False] * 4, mapping_epoch=1),
    }

    def find_at(now_s: float) -> Stall | str | None:
        return find_stall(
            *(
                reports,
                frozenset(reports),
                frozenset(),
                {2: [LanesAt("s", OTHER_FIRST_SLOT, range(2))]},
            ),
            heartbeat_s=2.0,
            now_s=now_s,
        )

    assert find_at(10.0) == UNDECIDED
    # Nothing was heard of it since.
    assert find_at(100.0) == Stall(9, OTHER_FIRST_SLOT + 1, (1,), (0,), 7.0)
    reports[1] = report([9, 8, 7, 6], [True] * 4, silent_s=30.0, mapping_epoch=1)
    assert find_at(10.0) == UNDECIDED
    reports[0] = report([9, 8], [False] * 2, mapping_epoch=2)
    assert find_at(100.0) is None


@pytest.mark.parametrize("silent_s", [0.0, 1.9])
def test_a_short_wait_is_none(silent_s: float) -> None:
    waiting = report([4, 5], [True, False], silent_s=silent_s)
    assert find({0: waiting, 1: report([2, 5], [False, False])}) is None


def test_nobody_waits() -> None:
    assert find({rank: report([4, 5], [False, False]) for rank in range(2)}) is None
    assert find({}) is None


def test_what_is_older_than_the_wait_decides_nothing_until_it_is_too_old() -> None:
    reports = {
        0: report([4, 5], [True, False], at_s=10.0),
        1: report([2, 5], [False, False], at_s=6.9),
    }
    assert find(reports, now_s=10.0) == UNDECIDED
    assert find(reports, now_s=12.0) == Stall(4, FIRST_SLOT, (1,), (0,), 7.0)


def test_who_never_said_anything_is_missing_in_the_end() -> None:
    reports = {0: report([4, 5], [True, False])}
    assert find(reports, ranks=2, now_s=11.0) == UNDECIDED
    assert find(reports, ranks=2, now_s=13.0) == Stall(4, FIRST_SLOT, (1,), (0,), 7.0)


def test_a_wait_that_may_be_over_decides_nothing() -> None:
    reports = {
        0: report([4, 5], [True, False], at_s=10.0),
        1: report([6, 5], [True, False], at_s=11.0, silent_s=0.5),
    }
    assert find(reports, now_s=11.0) == UNDECIDED


@st.composite
def stalls(draw: st.DrawFn) -> tuple[list[list[int]], list[list[bool]]]:
    """Lanes by rank, as they can be: in each lane ranks are at most one number apart."""
    ranks, lanes = draw(st.integers(2, 5)), 1 << draw(st.integers(0, 4))
    base = draw(st.sampled_from([0, WRAP - 2 * lanes, WRAP - 64 * lanes])) + lanes
    seqs: list[list[int]] = [[] for _ in range(ranks)]
    waits: list[list[bool]] = [[] for _ in range(ranks)]
    for lane in range(lanes):
        newest = base + lane + lanes * draw(st.integers(0, 2))
        has_sent = draw(st.lists(st.booleans(), min_size=ranks, max_size=ranks))
        for rank in range(ranks):
            seqs[rank].append(newest if has_sent[rank] else newest - lanes)
            waits[rank].append(has_sent[rank] and not all(has_sent))
    return seqs, waits


@settings(max_examples=examples(100))
@given(stalls())
def test_the_missing_are_those_whose_lane_is_behind(
    case: tuple[list[list[int]], list[list[bool]]],
) -> None:
    seqs, waits = case
    lanes = len(seqs[0])
    waited_for = [
        (seqs[rank][lane], lane)
        for rank in range(len(seqs))
        for lane in range(lanes)
        if waits[rank][lane]
    ]
    assume(waited_for)
    seq, lane = min(waited_for)
    found = find({rank: report(*each) for rank, each in enumerate(zip(*case, strict=True))})
    assert isinstance(found, Stall)
    assert (found.seq, found.slot) == (seq % WRAP, FIRST_SLOT + seq % (2 * lanes))
    assert found.missing == tuple(r for r in range(len(seqs)) if seqs[r][lane] < seq)
    assert found.waiting == tuple(r for r in range(len(seqs)) if seqs[r][lane] == seq)
    assert found.missing
    assert found.waiting


@settings(max_examples=examples(100))
@given(stalls(), st.integers(0, 2**32 - 1))
def test_where_numbers_begin_makes_no_difference(
    case: tuple[list[list[int]], list[list[bool]]], turns: int
) -> None:
    seqs, waits = case
    shift = 2 * len(seqs[0]) * turns
    here = find({r: report(s, w) for r, (s, w) in enumerate(zip(seqs, waits, strict=True))})
    there = find(
        {
            rank: report([seq + shift for seq in seqs[rank]], waits[rank])
            for rank in range(len(seqs))
        }
    )
    if isinstance(here, Stall) and isinstance(there, Stall):
        assert (here.slot, here.missing, here.waiting) == (there.slot, there.missing, there.waiting)
    else:
        assert here == there


def test_the_last_number_is_the_newest_sent() -> None:
    assert last_seq(report([WRAP + 2, WRAP - 1], [True, False]).progress) == 2
    assert last_seq(pb2.Progress(in_flight=1, oldest_seq=7)) == 7
    assert last_seq(pb2.Progress(chunks_done=7)) is None


def test_the_oldest_number_waited_for_holds_where_numbers_wrap() -> None:
    waits = [pb2.Progress(in_flight=1, oldest_seq=seq) for seq in (2, WRAP - 1, 1)]
    assert oldest_waited_for(waits) == WRAP - 1
    assert oldest_waited_for([pb2.Progress(oldest_seq=7)]) is None


@pytest.mark.parametrize(("lanes", "octets"), [(4, 2), (4, 0), (0, 1), (8, 1), (3, 1)])
def test_lanes_of_another_job_are_refused(lanes: int, octets: int) -> None:
    progress = pb2.Progress(lane_seqs=range(lanes), lanes_waiting=bytes(octets))
    with pytest.raises(JobRequestError, match=f"'j': reports {lanes} lanes.*the job has 4 lanes"):
        check_progress(progress, 14, "job 'j'")


@pytest.mark.parametrize("seconds", [-math.inf, 1e300, math.inf, math.nan])
@pytest.mark.parametrize("field", ["silent_s", "oldest_waited_s"])
def test_times_that_are_none_are_refused(field: str, seconds: float) -> None:
    """Operators' commands would fail with them, and leases never end."""
    progress = pb2.Progress()
    setattr(progress, field, seconds)
    with pytest.raises(JobRequestError, match=r"'j': reports to have waited for \S+ s"):
        check_progress(progress, 14, "job 'j'")


def test_lanes_may_be_left_out() -> None:
    check_progress(pb2.Progress(), 14, "job 'j'")
    check_progress(pb2.Progress(lane_seqs=range(4), lanes_waiting=b"\x0f"), 14, "job 'j'")
