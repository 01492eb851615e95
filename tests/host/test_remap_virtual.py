"""Workers that change to another mapping under any schedule, in the virtual network: the core and
the P4 program that ship. Frozen at any moment, too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from ina._native.host import VerifyMode
from tests.selection import examples
from tests.worlds.virtual.changes import Change
from tests.worlds.virtual.disturbed import Job
from tests.worlds.virtual.star import Star, late, scattered

SIZES = st.sampled_from([2, 4, 8, 16, 32])


def run(
    seed: int, workers: int, sizes: Sequence[int], lengths: Sequence[int], loss: float, steps: int
) -> tuple[Job, list[int]]:
    """A job that changes to one size after the other; until `steps`, or 0: until all is done."""
    rng = random.Random(seed)
    shares = [min(rng.choice([1, 1, 2, 4]), sizes[0] // 2) for _ in range(workers)]
    way, back = scattered(loss, loss / 2, most_ns=300_000), late(loss / 2, loss, loss / 2)
    star = Star(
        workers, slots=sizes[0], way=way, back=back, seed=seed, keep_results=True, shares=shares,
        verify=VerifyMode.ACCIDENTS,
    )  # fmt: skip
    job = Job(star, lengths, seed)
    paces = [rng.choice([0, 0, 2, 15, 60]) for _ in range(workers)]
    begins = sorted(rng.randrange(1, 120) for _ in sizes[1:])
    change: Change | None = None
    number, step = 0, 0
    while step < steps or not steps:
        step += 1
        assert step < 20_000, "it does not end"
        for rank in range(workers):
            due = step >= paces[rank] * job.submitted[rank]
            if due and job.submitted[rank] < len(lengths):
                job.submit(rank)
        if change is None and number < len(begins) and step >= begins[number]:
            number += 1
            change = Change(star, number, sizes[number], rng)
        if change is not None:
            change.go_on()
            change = None if change.is_over else change
        star.step()
        job.reuse_what_is_done()
        if any(len(results) < len(lengths) for results in job.results):
            continue
        if number == len(begins) if change is None else change.first > len(lengths) + 1:
            break  # what is left of it would take more tensors
    assert star.failed == [None] * workers
    stages = [3] * workers if change is None else change.stages
    return job, stages


LENGTHS = st.one_of(
    st.lists(st.integers(0, 720), min_size=1, max_size=6),
    st.lists(st.sampled_from([40, 40, 72]), min_size=9, max_size=30),  # some are guessed
)


@settings(max_examples=examples(300), deadline=None)
@example(seed=0, workers=4, sizes=[4, 32], lengths=[0, 0, 0, 0, 1], loss=0.0)  # S is an empty one
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 4),
    sizes=st.lists(SIZES, min_size=2, max_size=4),
    lengths=LENGTHS,
    loss=st.floats(0, 0.2),
)
def test_sums_are_those_of_a_run_without(
    seed: int, workers: int, sizes: list[int], lengths: list[int], loss: float
) -> None:
    """Ranks hear of each step at different times; several changes follow each other."""
    job, stages = run(seed, workers, sizes, lengths, loss, 0)
    job.check()
    stats = [worker.counters for worker in job.star.workers]
    assert all(one.corrupted == 0 for one in stats)
    if set(stages) == {3}:
        assert {worker.window for worker in job.star.workers} == {sizes[-1] // 2}
    event(f"guessed: {any(one.guessed_chunks for one in stats)}")
    event(f"over: {set(stages) == {3}}")


@settings(max_examples=examples(300), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(2, 4),
    sizes=st.lists(SIZES, min_size=2, max_size=3),
    lengths=LENGTHS,
    loss=st.floats(0, 0.2),
    steps=st.integers(1, 300),
)
def test_ranks_frozen_at_any_moment_of_a_change_end_with_these_sums(
    seed: int, workers: int, sizes: list[int], lengths: list[int], loss: float, steps: int
) -> None:
    job, stages = run(seed, workers, sizes, lengths, loss, steps)
    found = job.recover(job.freeze())
    job.check()
    event(f"stages: {min(stages)}..{max(stages)}")
    event(f"mappings with transfers: {len({transfer.epoch for transfer in found.transfers})}")
