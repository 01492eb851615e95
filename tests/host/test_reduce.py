"""Sums for one rank alone: the others are clocked by the same results, and nothing is written."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.errors import InvalidInputError
from ina.extension.host import VerifyMode
from ina.host import RanksDifferError, RecoveryError, Session, WorkerOptions
from ina.host.arrays import VALUE_TYPES, Array
from ina.host.recovery import Export, Lane, MappedLanes, Pending, plan
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective, CollectiveKind, Reduction
from ina.testing import numerics
from ina.testing.frames import parse
from tests.host.sums import recover
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.star import Star, scattered

FLOAT32 = np.dtype(np.float32)
DTYPES = (INT32, FLOAT32)
LOSSES = (0.0, 0.05)
UNTOUCHED = 77


def reduce_on(star: Star, turn: int, root: int | None, parts: Sequence[Array]) -> None:
    """The operation of this number, to a root or to all, and whether each got what it is to."""
    kind, to = (CollectiveKind.ALL_REDUCE, 0) if root is None else (CollectiveKind.REDUCE, root)
    outs = [np.full_like(part, UNTOUCHED) for part in parts]
    inputs = [part.copy() for part in parts]
    for rank, part in enumerate(parts):
        what = Collective(VALUE_TYPES[part.dtype], part.size, Reduction.SUM, kind, to)
        star.workers[rank].submit(part.ctypes.data, outs[rank].ctypes.data, what)
    star.run(turn)
    right = numerics.all_reduce(inputs, "sum", star.values)
    for rank, out in enumerate(outs):
        gets = root is None or rank == root
        assert numerics.same_bits(out, right if gets else np.full_like(out, UNTOUCHED)), rank


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("verify", list(VerifyMode))
@pytest.mark.parametrize("loss", LOSSES)
def test_the_root_alone_gets_the_sum(loss: float, verify: VerifyMode, keeps: bool) -> None:
    """Behind one after another, over the P4 program, with all-reduces among them."""
    star = Star(4, way=scattered(loss=loss), seed=3, verify=verify, keep_results=keeps)
    for turn, root in enumerate((2, None, 0, 3), 1):
        dtype = DTYPES[turn % 2]
        reduce_on(star, turn, root, random_parts(dtype, 4, 64 * 20 + 5, turn))
    assert (star.lost > 0) == (loss > 0)


@pytest.mark.parametrize("verify", list(VerifyMode))
@pytest.mark.parametrize("loss", LOSSES)
def test_who_gets_none_is_sent_none(loss: float, verify: VerifyMode) -> None:
    """And who gets the sum gives nothing."""
    root, brought, given = 1, [0] * 3, [0] * 3
    star = Star(3, way=scattered(loss=loss), seed=5, verify=verify, keep_results=True)

    def count(counts: list[int], rank: int, frame: bytes) -> bytes:
        header, _ = decode(parse(frame).payload)
        counts[rank] += header.value_count
        return frame

    for ports, counts in ((star.down, brought), (star.up, given)):
        for rank, port in enumerate(ports):
            port.set_tap(partial(count, counts, rank))
    for turn in range(1, 5):
        reduce_on(star, turn, root, random_parts(DTYPES[turn % 2], 3, 64 * 20, turn))
    assert [values > 0 for values in brought] == [False, True, False]
    assert [values > 0 for values in given] == [True, False, True]
    counters = [worker.counters for worker in star.workers]
    assert [count.mismatched + count.corrupted for count in counters] == [0, 0, 0]


def test_who_gets_values_takes_no_result_without(monkeypatch: pytest.MonkeyPatch) -> None:
    star = Star(2)

    def strip(frame: bytes) -> bytes:
        parsed = parse(frame)
        header, _ = decode(parsed.payload)
        bare = encode(replace(header, value_count=0))
        return replace(parsed, payload=bare, checksum=None, udp_checksum=None).build()

    star.down[1].set_tap(strip)
    part = np.ones(64, np.int32)
    out = np.full_like(part, UNTOUCHED)
    for rank in range(2):
        what = Collective(VALUE_TYPES[part.dtype], 64, Reduction.SUM, CollectiveKind.REDUCE, 1)
        star.workers[rank].submit(part.ctypes.data, out.ctypes.data, what)
    star.run_until(10**9)
    assert star.done == [[1], []]
    assert (out == UNTOUCHED).all()
    assert star.workers[1].counters.mismatched > 0


@pytest.mark.parametrize("loss", LOSSES)
def test_sessions(loss: float) -> None:
    with (
        UdpModel(loss=loss, seed=1) as switch,
        closing(switch.sessions(3)) as sessions,
        ThreadPoolExecutor(3) as pool,
    ):
        parts = [np.arange(3000, dtype=np.int32) * (rank + 1) for rank in range(3)]
        for root, op in ((0, "sum"), (2, "avg")):
            reduce_all(pool, sessions, parts, root, op)
        with pytest.raises(InvalidInputError, match=r"rank 0.*: root 3: want a rank, 0\.\.2"):
            sessions[0].reduce(parts[0], 3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_over_the_soft_switch(loss: float, dtype: np.dtype[Any]) -> None:
    options = WorkerOptions(transport="udp")
    with Embedded(64, loss_rate=loss, loss_seed=7) as embedded, ThreadPoolExecutor(2) as pool:

        def join(rank: int) -> Session:
            return Session.join(embedded.controller_addr, "job", rank, 2, options)

        with closing(list(pool.map(join, range(2)))) as sessions:
            for root in (1, 0):
                parts = random_parts(dtype, 2, 5000, root)
                reduce_all(pool, sessions, parts, root, "sum")


def reduce_all(
    pool: ThreadPoolExecutor,
    sessions: Sequence[Session],
    parts: Sequence[Array],
    root: int,
    op: str,
) -> None:
    got = list(
        pool.map(lambda it: it[0].reduce(it[1], root, op), zip(sessions, parts, strict=True))
    )
    assert [it is None for it in got] == [rank != root for rank in range(len(parts))]
    found = got[root]
    assert found is not None
    assert numerics.same_bits(found, numerics.all_reduce(parts, op, 64))


def test_ranks_that_mean_another_root_find_out() -> None:
    with UdpModel() as switch, closing(switch.sessions(2)) as sessions:
        data = np.ones(300, np.int32)
        handles = [it.reduce(data, root, async_op=True) for root, it in enumerate(sessions)]
        with pytest.raises(RanksDifferError):
            handles[0].wait(30)


def test_what_is_under_way_ends_with_the_undisturbed_sums_without_the_switch() -> None:
    """What the root lacks is summed once more of what the others gave, whose own tensors are done.

    How far each sum is as they freeze is the machine's doing: both kinds come up sooner or later.
    """
    left, handed_on = 0, 0
    for seed in itertools.count():
        if seed >= 12 and ((left and handed_on) or seed == 120):
            break
        with (
            UdpModel(slots=16, loss=0.05, seed=seed) as switch,
            closing(switch.sessions(2, recoverable=True)) as pair,
        ):
            inputs = [random_parts(DTYPES[i % 2], 2, 100 + 300 * i, i) for i in range(8)]
            given = [[part.copy() for part in parts] for parts in inputs]
            handles: list[list[Any]] = [[], []]
            for i, parts in enumerate(inputs):
                for rank, part in enumerate(parts):
                    out = part if rank == i % 2 else None
                    handles[rank].append(pair[rank].reduce(part, i % 2, out=out, async_op=True))
            handles[seed % 2][seed % 8].wait(30)
            found = recover([session.freeze() for session in pair])
            left += sum(bool(entry.undone) for entry in found.sums)
            handed_on += sum((it.operation - 1) % 2 in it.receivers for it in found.again)
            for i, parts in enumerate(given):
                right = numerics.all_reduce(parts, "sum", 64)
                assert numerics.same_bits(handles[i % 2][i].wait(30), right)
                assert handles[1 - i % 2][i].wait(30) is None
                assert numerics.same_bits(inputs[i][1 - i % 2], parts[1 - i % 2])
    assert left > 0
    assert handed_on > 0


def test_who_was_only_told_that_there_are_sums_hands_none_on() -> None:
    told = Lane(4, 1, 0, exponent_only=False, has_values=False)
    has = replace(told, has_values=True)

    def export(rank: int, lane: Lane | None) -> Export:
        left = (Pending(1, Collective(1, 64), ((0, 1),)),) if lane is None else ()
        return Export(1, 1, rank, 3, 64, 1, (MappedLanes(1, (lane,)),), left)

    (transfer,) = plan([export(0, told), export(1, has), export(2, None)]).transfers
    assert (transfer.supplier, transfer.receivers) == (1, (2,))
    with pytest.raises(RecoveryError, match="lane 0: no rank has the values of"):
        plan([export(0, told), export(1, None), export(2, None)])
