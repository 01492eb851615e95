"""Sparse sums over real sockets against the reference switch model."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ina.errors import InvalidInputError
from ina.host import (
    BlockHandle,
    InvalidArrayError,
    OperationTimeoutError,
    Session,
    SessionClosedError,
    SessionFrozenError,
    SwitchLostError,
    UnsupportedDtypeError,
    UnsupportedOpError,
)
from ina.host.sparse import BlockSums, RowSums
from ina.protocol.coding import CODINGS
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from ina.testing import numerics, packed
from tests.selection import LONG
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.parts import INT32, random_parts

Array = NDArray[Any]
Sessions = list[Session]
VALUES = 64


@pytest.fixture(scope="module")
def three() -> Iterator[Sessions]:
    with UdpModel(values=VALUES) as switch, closing(switch.sessions(3)) as sessions:
        yield sessions


@pytest.fixture
def pair() -> Iterator[Sessions]:
    with UdpModel(values=VALUES) as switch, closing(switch.sessions(2)) as sessions:
        yield sessions


def sparse_parts(
    dtype: np.dtype[Any], workers: int, length: int, density: float, seed: int, block: int = VALUES
) -> list[Array]:
    """Of each worker, of whose blocks so many are not zero; of rank 0 none is."""
    rng = np.random.default_rng(seed)
    parts = random_parts(dtype, workers, length, seed)
    for rank, part in enumerate(parts):
        for at in range(0, length, block):
            if rank == 0 or rng.random() >= density:
                part[at : at + block] = -0.0 if rng.random() < 0.3 else 0
    return parts


def reduce_all(sessions: Sessions, parts: Sequence[Any], **how: Any) -> list[Any]:
    return [handle.wait(60) for handle in begin_all(sessions, parts, **how)]


def begin_all(sessions: Sessions, parts: Sequence[Any], **how: Any) -> list[BlockHandle[Any]]:
    return [
        session.all_reduce_blocks(part, async_op=True, **how)
        for session, part in zip(sessions, parts, strict=True)
    ]


@pytest.mark.parametrize("density", [0.0, 0.05, 0.4, 1.0])
@pytest.mark.parametrize("dtype", [INT32, *numerics.FLOATS], ids=str)
def test_blocks_of_a_packet_have_the_bits_of_the_dense_sum(
    three: Sessions, dtype: np.dtype[Any], density: float
) -> None:
    for length in (0, 1, VALUES, 1003, 40 * VALUES):
        parts = sparse_parts(dtype, 3, length, density, length)
        for op in ("sum", "avg"):
            want = numerics.all_reduce(parts, op, VALUES)
            for result in reduce_all(three, parts, op=op):
                assert result.shape == want.shape
                assert numerics.same_bits(result, want)


@pytest.mark.parametrize("wire", ["16", "8"])
def test_packed_values_have_the_bits_of_the_dense_sum(three: Sessions, wire: str) -> None:
    parts = sparse_parts(numerics.FLOATS[0], 3, 5003, 0.1, 3, VALUES * 32 // int(wire))
    want = packed.all_reduce(parts, "sum", VALUES, CODINGS[wire])
    handles = begin_all(three, parts, wire=wire)
    assert all(numerics.same_bits(handle.wait(60), want) for handle in handles)
    assert handles[0].blocks == -(-5003 * int(wire) // (VALUES * 32))
    assert handles[0].union is not None
    assert handles[0].union < handles[0].blocks / 2


@pytest.mark.parametrize("block_elems", [1, 7, 100])
def test_other_blocks_are_within_the_bound_and_the_same_on_all_ranks(
    three: Sessions, block_elems: int
) -> None:
    """Of blocks that have other neighbours than in the dense sum; of int32 as it is."""
    ints = sparse_parts(INT32, 3, 1003, 0.2, 1, block_elems)
    want = numerics.all_reduce(ints, "sum", VALUES)
    for result in reduce_all(three, ints, block_elems=block_elems):
        assert numerics.same_bits(result, want)
    floats = sparse_parts(numerics.FLOATS[0], 3, 1003, 0.2, 1, block_elems)
    first, *others = [
        result for _ in range(2) for result in reduce_all(three, floats, block_elems=block_elems)
    ]
    assert all(numerics.same_bits(first, other) for other in others)
    # Neighbours may be any: the bound is that of one block of all.
    off = np.abs(first.astype(np.float64) - numerics.exact_result(floats, "sum"))
    assert (off <= numerics.error_bound(floats, "sum", 1003)).all()
    zero = sum(np.abs(part) for part in floats) == 0
    assert not first[zero].view(np.int32).any()  # +0


def test_nan_and_inf_are_not_zero(three: Sessions) -> None:
    for strange in (np.nan, np.inf):
        parts = [np.zeros(10 * VALUES, np.float32) for _ in range(3)]
        parts[1][5 * VALUES + 3] = strange
        want = numerics.all_reduce(parts, "sum", VALUES)
        assert np.isnan(want).any()
        assert all(numerics.same_bits(got, want) for got in reduce_all(three, parts))


def test_where_the_result_goes(three: Sessions) -> None:
    """In place, elsewhere, and new; where nothing is brought to it is +0."""
    parts = sparse_parts(numerics.FLOATS[1], 3, 1003, 0.2, 9)
    assert any(np.signbit(part[part == 0]).any() for part in parts)
    want = numerics.all_reduce(parts, "sum", VALUES)
    outs = [np.full_like(parts[0], 7), parts[1], None]
    handles = [
        session.all_reduce_blocks(part, out=out, async_op=True)
        for session, part, out in zip(three, parts, outs, strict=True)
    ]
    results = [handle.wait(60) for handle in handles]
    assert results[0] is outs[0]
    assert results[1] is parts[1]
    assert all(numerics.same_bits(result, want) for result in results)
    shaped = [np.zeros((3, 5, 7), np.int32) for _ in range(3)]
    assert [result.shape for result in reduce_all(three, shaped)] == [(3, 5, 7)] * 3


def test_what_is_counted(pair: Sessions) -> None:
    parts = [np.zeros(100 * VALUES, np.float32) for _ in range(2)]
    parts[0][: 3 * VALUES] = 1
    parts[1][2 * VALUES : 9 * VALUES] = 1
    handles = begin_all(pair, parts)
    for handle in handles:
        handle.wait(30)
    assert [(it.blocks, it.own, it.union) for it in handles] == [(100, 3, 9), (100, 7, 9)]
    assert handles[0].done()
    assert handles[0].exception() is None
    reduce_all(pair, [np.zeros(VALUES, np.float32)] * 2)
    stats = pair[0].stats()
    assert (stats.sparse_sums, stats.sparse_blocks) == (2, 101)
    assert (stats.sparse_own_blocks, stats.sparse_union_blocks) == (3, 9)
    # Counters (2 bits each), and what is not zero: of all zeros nothing follows.
    assert stats.operations_done == 4
    assert stats.bytes_done == 4 * (7 + 9 * VALUES + 1)


def test_lists_agree_on_the_next_while_one_is_summed(pair: Sessions) -> None:
    parts = [
        [sparse_parts(INT32, 2, n * VALUES, 0.2, n)[rank] for n in (30, 1, 0, 50)]
        for rank in range(2)
    ]
    handles = begin_all(pair, parts)
    after = [session.all_reduce(np.ones(5, np.int32), async_op=True) for session in pair]
    for handle in handles:
        for i, result in enumerate(handle.wait(30)):
            want = numerics.all_reduce([parts[0][i], parts[1][i]], "sum", VALUES)
            assert numerics.same_bits(result, want)
    assert handles[0].blocks == 81
    assert all((handle.wait(30) == 2).all() for handle in after)
    assert reduce_all(pair, [[], []]) == [[], []]


def test_very_many_blocks_are_counted_by_groups_first(pair: Sessions) -> None:
    """With a lower limit: groups of 1,024, and the groups of those."""
    for density in (0.0, 0.0005, 0.02):
        parts = sparse_parts(INT32, 2, 30_001, density, 5, 3)
        want = parts[0] + parts[1]
        for limit in (1, 5):
            sums = [BlockSums(it._turns, it._begin, 2, limit) for it in pair]
            begun = [it.all_reduce([(part, None)], 3) for it, part in zip(sums, parts, strict=True)]
            for (one,), part in zip(begun, parts, strict=True):
                assert one.has_ended(60)
                assert (one.wait() == want).all()
                assert one.own == np.count_nonzero(
                    [part[i : i + 3].any() for i in range(0, part.size, 3)]
                )


def test_rows(three: Sessions) -> None:
    rng = np.random.default_rng(1)
    sums = [BlockSums(it._turns, it._begin, 3) for it in three]
    streams = [it.stream() for it in sums]
    begun, wanted = [], []
    for count, counts in ((50, (0, 4, 9)), (7, (0, 0, 0)), (0, (0, 0, 0)), (5, (5, 1, 0))):
        dense = np.zeros((count, 3, 2), np.float32)
        for stream, some in zip(streams, counts, strict=True):
            numbers = np.sort(rng.choice(count, some, replace=False)).astype(np.int64)
            rows = rng.integers(-9, 9, (some, 3, 2)).astype(np.float32)
            dense[numbers] += rows
            begun.append(stream.rows(numbers, rows, count))
            wanted.append((numbers, dense))
    for stream in streams:
        stream.flush()
    for i, one in enumerate(begun):
        assert one.has_ended(30)
        result: RowSums = one.wait()
        numbers = np.union1d(np.union1d(*(wanted[i // 3 * 3 + j][0] for j in (0, 1))),
                             wanted[i // 3 * 3 + 2][0])  # fmt: skip
        assert result.numbers.tolist() == numbers.tolist()
        dense = wanted[i][1]
        assert (result.rows == dense[result.numbers]).all()
        assert one.union == numbers.size


def test_rows_that_are_none_are_refused(pair: Sessions) -> None:
    stream = BlockSums(pair[0]._turns, pair[0]._begin, 2).stream()
    rows = np.zeros((2, 4), np.float32)
    for numbers in ([1, 1], [2, 1], [-1, 0], [1, 3]):
        with pytest.raises(InvalidArrayError, match="must rise, from 0 to below 3"):
            stream.rows(np.array(numbers, np.int64), rows, 3)
    with pytest.raises(InvalidArrayError, match="must be int64"):
        stream.rows(np.array([1, 2], np.int32), rows, 3)
    with pytest.raises(InvalidArrayError, match="3 numbers are given"):
        stream.rows(np.array([0, 1, 2], np.int64), rows, 3)
    assert pair[0].stats().operations_done == 0


def test_wrong_arguments(pair: Sessions) -> None:
    session = pair[0]
    array = np.ones(8, np.float32)
    with pytest.raises(UnsupportedDtypeError):
        session.all_reduce_blocks(np.ones(3))
    with pytest.raises(UnsupportedOpError):
        session.all_reduce_blocks(array, "max")
    with pytest.raises(InvalidInputError, match="blocks of 0 values: want 1 or more"):
        session.all_reduce_blocks(array, block_elems=0)
    with pytest.raises(InvalidInputError, match="wire=9"):
        session.all_reduce_blocks(array, wire="9")
    with pytest.raises(InvalidArrayError, match="out: 1 arrays, must be 2"):
        session.all_reduce_blocks([array, array], out=[array])
    with pytest.raises(InvalidArrayError, match="C-contiguous"):
        session.all_reduce_blocks([array, array[::2]])
    with pytest.raises(InvalidArrayError, match="out: is"):
        session.all_reduce_blocks(array, out=np.ones(9, np.float32))
    with pytest.raises(InvalidInputError, match="whose stream is not flushed"):
        BlockSums(session._turns, session._begin, 2).stream().blocks(array, 4).wait()


@pytest.mark.parametrize("seed", range(12 if LONG else 3))
def test_the_order_is_the_same_whoever_waits_where(seed: int) -> None:
    """Dense sums between sparse ones; each rank in a thread, waiting at places of its own."""
    chance = random.Random(seed)
    kinds = [chance.choice(["dense", "sparse", "list"]) for _ in range(12)]
    sizes = [chance.randrange(1, 20) * VALUES for _ in kinds]
    wrong: list[str] = []

    def parts(i: int) -> list[Array]:
        return sparse_parts(INT32, 2, sizes[i], 1.0 if kinds[i] == "dense" else 0.2, 100 * seed + i)

    def work(rank: int, session: Session) -> None:
        own = random.Random(f"{seed} {rank}")
        handles: list[Any] = []
        for i, kind in enumerate(kinds):
            given = parts(i)[rank]
            if kind == "dense":
                handles.append(session.all_reduce(given, async_op=True))
            elif kind == "sparse":
                handles.append(session.all_reduce_blocks(given, async_op=True))
            else:
                handles.append(session.all_reduce_blocks([given, given], async_op=True))
            while own.random() < 0.5:
                own.choice(handles).wait(60)
        for i, handle in enumerate(handles):
            found = handle.wait(60)
            want = sum(parts(i))
            for one in found if kinds[i] == "list" else [found]:
                if not (one == want).all():
                    wrong.append(f"rank {rank}, {i}: {kinds[i]}")

    with (
        UdpModel(values=VALUES, loss=0.02, seed=seed) as switch,
        closing(switch.sessions(2)) as sessions,
    ):
        threads = [
            threading.Thread(target=work, args=(rank, it)) for rank, it in enumerate(sessions)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert wrong == []


def test_a_callback_may_wait_for_what_waits_for_its_turn(pair: Sessions) -> None:
    found: list[Any] = []
    ended = threading.Barrier(3)

    def then(session: Session, first: Any) -> None:
        part = np.ones(10 * VALUES, np.float32)
        part[VALUES:] = 0
        sparse = session.all_reduce_blocks(part, async_op=True)
        dense = session.all_reduce(part, async_op=True)  # behind it
        found.append((first.wait(30)[0], dense.wait(30)[0], sparse.wait(30).sum()))
        ended.wait(30)

    handles = [session.all_reduce(np.ones(9, np.float32), async_op=True) for session in pair]
    for session, handle in zip(pair, handles, strict=True):
        handle.add_done_callback(partial(then, session))
    ended.wait(60)
    assert found == [(2, 2, 2 * VALUES)] * 2


def queued(session: Session) -> list[Any]:
    """A sparse sum whose counters wait for the other rank, and what waits behind it."""
    array = np.ones(300, np.float32)
    return [
        session.all_reduce_blocks(array, async_op=True),
        session.all_reduce(array, async_op=True),
        session.submit(0, 0, Collective(ValueType.FLOAT32, 0), keep=array),
        session.reduce(array, 0, async_op=True),
        session.all_reduce_blocks([array, array], async_op=True),
    ]


def test_a_session_that_fails_ends_what_waits_for_its_turn(pair: Sessions) -> None:
    handles = queued(pair[0])
    with pytest.raises(OperationTimeoutError):
        handles[1].wait(0.01)
    assert not any(handle.done() for handle in handles)
    heard = threading.Semaphore(0)
    for handle in handles:
        handle.add_done_callback(lambda _: heard.release())
    pair[0].fail(SwitchLostError("lost"))
    for handle in handles:
        with pytest.raises(SwitchLostError):
            handle.wait(30)
        assert isinstance(handle.exception(), SwitchLostError)
        assert heard.acquire(timeout=30)
    assert pair[0].stats().sparse_sums == 0


def test_a_session_that_is_closed_ends_what_waits_for_its_turn(pair: Sessions) -> None:
    handles = queued(pair[0])
    pair[0].close()
    for handle in handles:
        with pytest.raises(SessionClosedError):
            handle.wait(30)
    with pytest.raises(SessionClosedError):
        pair[0].all_reduce_blocks(np.ones(3, np.float32))


def test_a_session_that_is_frozen_takes_no_values_after_counters() -> None:
    with (
        UdpModel(values=VALUES) as switch,
        closing(switch.sessions(2, recoverable=True)) as (session, _),
    ):
        handles = queued(session)
        frozen = session.freeze()
        (counters,) = frozen.export.pending
        frozen.complete(counters.operation)
        for handle in handles:
            with pytest.raises(SessionFrozenError):
                handle.wait(30)
