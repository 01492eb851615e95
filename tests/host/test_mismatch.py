"""Workers that have submitted different things: none of them takes a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ina._native.host import WorkerCore
from ina._native.sim import WorkerEvent
from ina.protocol.codec import Header, decode, encode
from ina.protocol.collective import Collective, Reduction
from ina.protocol.spec import Kind, ValueType
from tests.worlds.virtual.cores import MS, SECOND, Array, worker_config
from tests.worlds.virtual.star import Star, scattered

VALUES, SLOTS = 64, 16
I32, F32 = np.dtype(np.int32), np.dtype(np.float32)
Op = tuple[int, np.dtype[np.int32] | np.dtype[np.float32], str]
MEMORY = np.zeros(1000, np.int32)
SAME: Op = (640, F32, "sum")  # 10 chunks, on all 8 lanes


def submit(star: Star, rank: int, number: int, op: Op) -> Array:
    elems, dtype, reduction = op
    part, out = np.ones(elems, dtype), np.full(elems, -7, dtype)
    star.submit(rank, number, part, out, reduction)
    return out


def run_apart(first: Sequence[Op], then: Sequence[Op], **options: Any) -> Star:
    """All reduce `first` with each other, then rank i its `then[i]`; until each has stopped."""
    star = Star(len(then), slots=SLOTS, **options)
    for number, op in enumerate(first, start=1):
        for rank in range(len(then)):
            submit(star, rank, number, op)
    star.run(len(first))
    outs = [submit(star, rank, len(first) + 1, op) for rank, op in enumerate(then)]
    star.run_out(len(first) + 1)
    assert all((out == -7).all() for out in outs), "a worker took something of a wrong sum"
    assert [len(done) for done in star.done] == [len(first)] * len(then)
    assert star.failed == [WorkerEvent.MISMATCH] * len(then)
    return star


@pytest.mark.parametrize("first", [[], [SAME, (3, I32, "sum")]], ids=["first", "third"])
@pytest.mark.parametrize(
    "other",
    [
        (641, F32, "sum"),
        (577, F32, "sum"),
        (64, F32, "sum"),
        (3200, F32, "sum"),
        (640, I32, "sum"),
        (640, F32, "avg"),
    ],
    ids=str,
)
@pytest.mark.parametrize("odd", [[1], [0, 2], [0, 0, 1], [3, 1, 1, 1]], ids=str)
def test_every_rank_notices(first: list[Op], other: Op, odd: list[int]) -> None:
    """`odd`: of each rank what it reduces, the same number for the same."""
    kinds = {0: SAME, 1: other, 2: (576, F32, "sum"), 3: (7, I32, "avg")}
    then = [SAME, other] if odd == [1] else [kinds[kind] for kind in odd]
    star = run_apart(first, then)
    sent = [worker.counters.packets_sent for worker in star.workers]
    star.run_until(star.now_ns + 10 * SECOND)
    assert [worker.counters.packets_sent for worker in star.workers] == sent
    for worker in star.workers:
        found = worker.mismatch()
        assert found is not None
        assert found.operation == len(first) + 1
        assert worker.agreed == len(first)


@pytest.mark.parametrize("seed", range(20))
def test_loss_does_not_hide_it(seed: int) -> None:
    way = scattered(loss=0.2, duplication=0.1)
    star = run_apart([SAME], [SAME, SAME, (641, F32, "sum")], way=way, seed=seed)
    assert all(worker.mismatch() for worker in star.workers)


def test_with_several_threads() -> None:
    """Each share knows what was submitted to all of them; the first that notices tells."""
    star = Star(2, slots=SLOTS, shares=[1, 4])
    apart = [submit(star, rank, 1, (3, I32, "sum")) for rank in range(2)]
    star.run(1)
    assert [out.tolist() for out in apart] == [[2, 2, 2]] * 2
    outs = [submit(star, rank, 2, op) for rank, op in enumerate([SAME, (641, F32, "sum")])]
    star.run_out(2)
    assert star.workers[0].mismatch() is not None
    assert all((out == -7).all() for out in outs)


def test_packets_that_do_not_meet_complete_nothing() -> None:
    """Small tensors come back to lanes of their own: these are on others. Heartbeats tell."""
    star = Star(2, slots=SLOTS)
    for number, op in enumerate([(64, F32, "sum"), (128, F32, "sum")] * 2, start=1):
        for rank in range(2):
            submit(star, rank, number, op)
    star.run(4)
    outs = [submit(star, 0, 5, (64, F32, "sum")), submit(star, 1, 5, (128, F32, "sum"))]
    star.run_until(star.now_ns + 100 * MS)
    assert all((out == -7).all() for out in outs)
    assert [worker.mismatch() for worker in star.workers] == [None, None]


def test_an_empty_tensor_more_is_a_difference() -> None:
    """It has no packets: the next one's tell."""
    star = Star(2, slots=SLOTS)
    submit(star, 0, 1, (0, F32, "sum"))
    outs = [submit(star, 0, 2, SAME), submit(star, 1, 1, SAME)]
    star.run_out(2)
    assert all(worker.mismatch() for worker in star.workers)
    assert all((out == -7).all() for out in outs)


def contribution(*ops: tuple[int, int, bool], first_seq: int = 0) -> Header:
    """The first packet of a job's last operation, where those before it are empty."""
    core = WorkerCore(worker_config(0, 2, SLOTS, VALUES, first_seq=first_seq))
    memory = MEMORY.ctypes.data
    for number, (elems, value_type, average) in enumerate(ops, start=1):
        core.submit(number, memory, memory, Collective(value_type, elems, Reduction(average)), 0)
    return decode(core.poll_transmit(0)[0])[0]


def test_the_digest_is_of_all_that_was_submitted_and_of_nothing_else() -> None:
    history = [(0, 0, False), (0, 1, True), (9, 0, False)]
    digest = contribution(*history).digest
    assert contribution(*history).digest == digest
    others = [
        contribution(*history[1:]).digest,
        contribution(history[1], history[0], history[2]).digest,
        contribution(*history[:2], (10, 0, False)).digest,
        contribution(*history[:2], (9, 0, True)).digest,
        contribution((0, 0, True), *history[1:]).digest,
        contribution((0, 1, False), *history[1:]).digest,
        contribution(*history, first_seq=SLOTS).digest,  # each round is another throw
    ]
    assert len({digest, *others}) == 8


def test_digests_are_spread_evenly() -> None:
    """Of 1,000 sizes and rounds about as many pairs are equal as chance makes."""
    sizes = [contribution((elems, 0, False)).digest for elems in range(1, 1001)]
    rounds = [contribution((9, 0, False), first_seq=SLOTS * n).digest for n in range(1000)]
    for digests in (sizes, rounds):
        assert len(set(digests)) > 970  # expected: 1000 - 1000 * 999 / 2 / 65536 = 992
        bits = sum((np.array(digests)[:, None] >> np.arange(16)) & 1)
        assert (abs(bits - 500) < 80).all()  # five standard deviations


@pytest.mark.parametrize("workers", [1, 2, 3, 17, 32])
def test_only_n_times_its_own_digest_is_taken(workers: int) -> None:
    data = np.arange(VALUES, dtype=np.int32)
    out = np.full(VALUES, -7, np.int32)
    core = WorkerCore(worker_config(0, workers, SLOTS, VALUES))
    core.submit(1, data.ctypes.data, out.ctypes.data, Collective(ValueType.INT32, VALUES), 0)
    sent = decode(core.poll_transmit(0)[0])[0]
    whole = (1 << workers) - 1
    result = replace(
        sent, kind=Kind.RESULT, contributors=whole, digest=workers * sent.digest % 2**16
    )
    # Not everybody's: no digest to judge by.
    part = replace(result, contributors=whole ^ 1 << workers - 1, digest=1)
    core.on_result(encode(part, data), 1)
    assert core.mismatch is None
    wrong = replace(result, digest=(result.digest + 0x8000) % 2**16)
    other = WorkerCore(worker_config(0, workers, SLOTS, VALUES))
    other.submit(1, data.ctypes.data, out.ctypes.data, Collective(ValueType.INT32, VALUES), 0)
    other.poll_transmit(0)
    other.on_result(encode(wrong, data), 1)
    assert other.mismatch is not None
    assert other.mismatch.seq == 0
    assert (out == -7).all()
    core.on_result(encode(result, data), 2)
    assert core.take_completions() == [1]
    assert core.agreed == 1
