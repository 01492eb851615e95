"""Ranks that lose the switch at any moment get, together, what an undisturbed run gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ina._native.congestion import Choice
from ina.errors import InaError
from ina.host import RecoveryError
from ina.host.recovery import Export, Lane, MappedLanes, Pending, Plan, Sum, Transfer, average, plan
from ina.protocol.collective import Collective
from ina.testing import numerics
from tests.selection import LONG
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.cores import EPOCH
from tests.worlds.virtual.disturbed import DTYPES, Job
from tests.worlds.virtual.star import Star, late, scattered

EVERY = 1 if LONG else 5
"""So many moments lie between two that are tried; types and operations come all up by it."""


@settings(max_examples=4000 if LONG else 150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 4),
    slots=st.sampled_from([2, 4, 8, 16]),
    lengths=st.one_of(
        st.lists(st.integers(0, 720), min_size=1, max_size=5),
        st.lists(st.sampled_from([40, 40, 72]), min_size=9, max_size=30),  # some are guessed
    ),
    loss=st.floats(0, 0.3),
)
def test_ranks_frozen_at_any_moment_end_with_the_sums_of_an_undisturbed_run(
    seed: int, workers: int, slots: int, lengths: list[int], loss: float
) -> None:
    """All types and operations; ranks freeze and submit at different times, by the seed."""
    rng = random.Random(seed)
    begin, spread = rng.randint(0, 150), rng.choice([0, 3, 30])
    freezes = [begin + rng.randint(0, spread) for _ in range(workers)]
    paces = [rng.choice([0, 0, 2, 15, 60]) for _ in range(workers)]  # steps from one to the next
    way, back = scattered(loss, loss / 2, most_ns=500_000), late(loss / 2, loss, loss / 2)
    shares = [min(rng.choice([1, 1, 2, 4]), slots // 2) for _ in range(workers)]
    star = Star(
        workers,
        slots=slots,
        way=way,
        back=back,
        seed=seed,
        first_seq=rng.choice([0, 2**32 - slots]),
        keep_results=True,
        shares=shares,
    )
    job = Job(star, lengths, seed)
    for step in range(max(freezes)):
        for rank in range(workers):
            if step == freezes[rank]:
                star.workers[rank].freeze()
            due = step >= paces[rank] * job.submitted[rank]
            if due and step < freezes[rank] and job.submitted[rank] < len(lengths):
                job.submit(rank)
        star.step()
        job.reuse_what_is_done()
    found = job.recover(job.freeze())
    job.check()
    event(f"shares: {max(shares)}")
    event(f"transfers: {bool(found.transfers)}")
    event(f"guessed: {any(worker.counters.guessed_chunks for worker in star.workers)}")
    event(f"missed: {any(worker.counters.missed_guesses for worker in star.workers)}")
    event(f"partly done: {any(s.undone and s.undone[0][0] > 0 for s in found.sums)}")
    event(f"done: {found.submitted - len(found.sums)}, left: {len(found.sums)}")


@pytest.mark.parametrize("shares", [[1, 1, 1], [1, 2, 2]], ids=str)
def test_every_moment_of_one_run(shares: list[int]) -> None:
    """Three tensors on two lanes, frozen after each step of a clean run and of a lossy one."""
    moments, transfers = 0, 0
    for loss in (0.0, 0.25):
        for moment in range(0, 400, EVERY):
            way = scattered(loss)
            star = Star(3, slots=4, way=way, seed=5, keep_results=True, shares=shares)
            job = Job(star, [240, 72, 328], seed=moment)
            for rank in range(3):
                for _ in range(3 - rank % 2):  # rank 1 has not submitted the last one
                    job.submit(rank)
            for _ in range(moment):
                star.step()
                job.reuse_what_is_done()
            frozen = job.freeze()
            over = all(not one.export.pending for one in frozen[1:2])
            transfers += len(job.recover(frozen).transfers)
            job.check()
            moments += 1
            if over:
                break
    assert moments > 100 // EVERY
    assert transfers > 20 // EVERY


def test_every_moment_of_a_run_with_guesses() -> None:
    """Operations alike, one after the other: their exponents are guessed, right and wrong."""
    right, wrong, transfers = 0, 0, 0
    for loss in (0.0, 0.25):
        for moment in range(0, 400, EVERY):
            # A window that waits for no pace: moments are those of packets alone.
            star = Star(
                3,
                slots=4,
                way=scattered(loss),
                seed=5,
                keep_results=True,
                window=Choice("fixed"),
            )
            job = Job(star, [72] * 9, 0, numerics.FLOATS[:1])
            for _ in range(moment):
                done = [len(results) for results in job.results]
                for rank in range(3):
                    if job.submitted[rank] == done[rank] and done[rank] < 9:
                        job.submit(rank)
                star.step()
                job.reuse_what_is_done()
            frozen = job.freeze()
            over = all(len(results) == 9 for results in job.results)
            transfers += len(job.recover(frozen).transfers)
            job.check()
            if over:
                break
        right += star.workers[0].counters.guessed_chunks
        wrong += star.workers[0].counters.missed_guesses
    assert right > 2
    assert wrong > 0
    assert transfers > 20 // EVERY


def test_without_kept_results_there_is_nothing_to_hand_on() -> None:
    job = Job(Star(1, slots=2), [24], seed=0)
    job.submit(0)
    while not job.results[0]:
        job.star.step()
        job.reuse_what_is_done()
    (frozen,) = job.freeze()
    lane = frozen.export.mappings[0].lanes[0]
    assert lane is not None
    with pytest.raises(RecoveryError, match="does not have the result"):
        frozen.lane_data(Transfer(EPOCH, 0, lane.seq, 1, 0, 0, ()))


def test_a_rank_says_which_lanes_it_has_and_what_they_wait_for() -> None:
    worker = Star(2, slots=8, shares=[2, 1], keep_results=True).workers[0]
    with pytest.raises(RuntimeError, match="not frozen"):
        worker.lane_result(EPOCH, 0)
    assert worker.freeze()
    for lane in (4, 2**32 - 1):
        with pytest.raises(ValueError, match=rf"lane must be 2\.\.3, got {lane}"):
            worker.lane_result(EPOCH, lane)
    with pytest.raises(ValueError, match="lane 1, sequence number 1: the lane does not wait"):
        worker.put_result(EPOCH, 1, 1, bytes(256))


# The rule by itself, and what it refuses.


def export(rank: int, lanes: Sequence[Lane | None], *pending: Pending, n: int = 2) -> Export:
    return Export(1, 1, rank, n, 64, 2, (MappedLanes(1, tuple(lanes)),), pending)


WHOLE = Pending(1, Collective(1, 300), ((0, 5),))


def test_the_newest_result_goes_to_those_who_lack_it() -> None:
    newest, before = Lane(2, 1, 2, False), Lane(0, 1, 0, False)
    other = Lane(1, 1, 1, False)
    found = plan(
        [
            export(0, [before, other], replace(WHOLE, undone=((2, 5),)), n=3),
            export(1, [newest, other], replace(WHOLE, undone=((3, 5),)), n=3),
            export(2, [before, None], replace(WHOLE, undone=((1, 5),)), n=3),
        ]
    )
    assert found == Plan(
        transfers=(Transfer(1, 0, 2, 1, 2, 1, (0, 2)), Transfer(1, 1, 1, 1, 1, 0, (2,))),
        sums=(Sum(1, Collective(1, 300), ((3, 5),)),),
        submitted=2,
    )


def test_an_operation_that_ended_elsewhere_needs_only_transfers() -> None:
    last = Lane(4, 1, 4, False)
    found = plan([export(0, [None], replace(WHOLE, undone=((4, 5),))), export(1, [last])])
    assert found.transfers == (Transfer(1, 0, 4, 1, 4, 1, (0,)),)
    assert found.sums == (Sum(1, Collective(1, 300), ()),)


def test_results_without_values_are_not_handed_on() -> None:
    found = plan([export(0, [None], WHOLE), export(1, [Lane(0, 1, 0, True)], WHOLE)])
    assert found == Plan((), (Sum(1, Collective(1, 300), ((0, 5),)),), 2)


def test_chunks_in_the_middle_are_cut_out() -> None:
    lanes = [Lane(2, 1, 2, False), None]
    here = replace(WHOLE, undone=((0, 2), (3, 5)))
    found = plan([export(0, [None, None], WHOLE), export(1, lanes, here)])
    assert found.sums[0].undone == ((0, 2), (3, 5))


LANE = Lane(2, 1, 2, False)


@pytest.mark.parametrize(
    ("exports", "why"),
    [
        ([], r"got those of \[\]"),
        ([export(0, [None])], r"got those of \[0\]"),
        ([export(0, [None]), export(0, [None])], r"got those of \[0, 0\]"),
        ([export(0, [None]), export(1, [None, None])], r"epoch 1 has \[1, 2\] lanes"),
        ([export(0, [None]), replace(export(1, [None]), epoch=2)], "different jobs"),
        ([export(0, [LANE]), export(1, [replace(LANE, seq=0)])], "lane 0: rank . has"),
        ([export(0, [LANE]), export(1, [replace(LANE, chunk=3)])], "lane 0: rank . has"),
        ([export(0, [None], WHOLE), export(1, [None])], "lack different chunks"),
        (
            [export(0, [None], WHOLE), export(1, [None], replace(WHOLE, what=Collective(0, 300)))],
            "disagree on elements",
        ),
        (
            [export(0, [None], replace(WHOLE, undone=((0, 2),))), export(1, [LANE])],
            "would arrive where they are done",
        ),
        (
            [
                export(0, [None], replace(WHOLE, operation=3, undone=((1, 5),))),
                export(1, [None]),
            ],
            "not all ranks submitted it",
        ),
    ],
)
def test_exports_that_do_not_fit_together(exports: list[Export], why: str) -> None:
    with pytest.raises(RecoveryError, match=why) as refused:
        plan(exports)
    assert isinstance(refused.value, InaError)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_average_divides_as_the_data_path_does(dtype: np.dtype[Any]) -> None:
    (sums,) = random_parts(dtype, 1, 500, seed=3)
    for n in (1, 3, 7):
        got = average(sums, n)
        if dtype == INT32:
            want = np.array([int(abs(int(x)) // n) * (1 if x >= 0 else -1) for x in sums], np.int32)
        else:
            want = (sums.astype(np.float32) * np.float32(1 / n)).astype(dtype)
        assert numerics.same_bits(got, want)
