"""Collectives by sessions with threads and sockets, against the reference switch."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ina.errors import InvalidInputError
from ina.host import InvalidArrayError, RanksDifferError, Session, UnsupportedDtypeError
from ina.testing import numerics
from tests.host.sums import recover
from tests.selection import LONG
from tests.worlds import collectives
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.parts import random_parts

RANKS, VALUES = 3, 64
FLOAT32 = np.dtype(np.float32)


def on_all(sessions: list[Session], do: Callable[[Session, int], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(sessions)) as pool:
        futures = [pool.submit(do, one, rank) for rank, one in enumerate(sessions)]
        return [future.result(60) for future in futures]


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_all_of_them(loss: float) -> None:
    with (
        UdpModel(values=VALUES, loss=loss, seed=1) as switch,
        closing(switch.sessions(RANKS)) as sessions,
    ):
        parts = random_parts(FLOAT32, RANKS, RANKS * 1000)
        shaped = [part.reshape(RANKS * 10, 100) for part in parts]
        for rank, got in enumerate(on_all(sessions, lambda s, r: s.reduce_scatter(shaped[r]))):
            own = [part.reshape(RANKS, -1)[rank] for part in parts]
            wanted = numerics.all_reduce(own, "sum", VALUES).reshape(10, 100)
            assert numerics.same_bits(got, wanted)
        texts = [np.array([f"rank{rank}", "é" * rank]) for rank in range(RANKS)]
        texts = [text.astype("U9") for text in texts]
        for got in on_all(sessions, lambda s, r: s.all_gather(texts[r])):
            assert got.tolist() == [text.tolist() for text in texts]
        flags = [np.arange(5000) % 7 == rank for rank in range(RANKS)]
        got = on_all(sessions, lambda s, r: s.broadcast(flags[r], 1))
        assert all(np.array_equal(one, np.arange(5000) % 7 == 1) for one in got)
        assert all(one is flag for one, flag in zip(got, flags, strict=True))
        on_all(sessions, lambda s, _: s.barrier())
        reduced = on_all(sessions, lambda s, r: s.reduce(parts[r], 2))
        assert reduced[:2] == [None, None]
        assert numerics.same_bits(reduced[2], numerics.all_reduce(parts, "sum", VALUES))


def test_more_ranks_than_a_sum_of_bytes_would_have_room_for() -> None:
    """Nothing is added: whoever does not own a byte sends none, or zeros."""
    with UdpModel(values=VALUES) as switch, closing(switch.sessions(20)) as sessions:
        given = [np.full(300, rank, np.uint8) for rank in range(20)]
        wanted = np.stack(given)
        for got in on_all(sessions, lambda s, r: s.all_gather(given[r])):
            assert np.array_equal(got.reshape(20, 300), wanted)
        for got in on_all(sessions, lambda s, r: s.all_gather(given[r][:2])):
            assert np.array_equal(got.reshape(20, 2), wanted[:, :2])
        for got in on_all(sessions, lambda s, r: s.broadcast(given[r].copy(), 19)):
            assert np.array_equal(got, wanted[19])


def test_in_place_and_at_the_same_time() -> None:
    with UdpModel(values=VALUES) as switch, closing(switch.sessions(RANKS)) as sessions:

        def do(session: Session, rank: int) -> Any:
            whole = np.zeros((RANKS, 700), np.uint16)
            whole[rank] = rank + 1
            grads = np.full(RANKS * 900, rank, np.int32)
            gathering = session.all_gather(whole[rank], out=whole, async_op=True)
            reducing = session.reduce_scatter(grads, async_op=True)
            session.barrier()
            assert gathering.wait() is whole
            return whole, reducing.wait()

        for whole, part in on_all(sessions, do):
            assert (whole == np.arange(1, RANKS + 1)[:, None]).all()
            assert (part == sum(range(RANKS))).all()


def test_ranks_that_differ_are_told() -> None:
    """In the root alone, and in what they do."""
    floats = np.zeros(9000, np.float32)
    pairs: list[Callable[[Session, int], Any]] = [
        (lambda s, r: s.broadcast(np.zeros(9000, np.uint8), min(r, 1))),
        (lambda s, r: s.barrier() if r else s.reduce_scatter(floats)),
        (lambda s, r: s.broadcast(np.zeros(9000), 0) if r else s.all_gather(np.zeros(9000))),
    ]
    for pair in pairs:
        with (
            UdpModel(values=VALUES) as switch,
            closing(switch.sessions(2)) as sessions,
            pytest.raises(RanksDifferError),
        ):
            on_all(sessions, pair)


def test_what_is_none_is_refused() -> None:
    with UdpModel(values=VALUES) as switch, closing(switch.sessions(1)) as (session,):
        with pytest.raises(InvalidInputError, match=r"root 1: want a rank, 0\.\.0"):
            session.broadcast(np.zeros(4), 1)
        with pytest.raises(UnsupportedDtypeError, match="objects are of this process alone"):
            session.all_gather(np.array([None]))
        with pytest.raises(InvalidArrayError, match="must be C-contiguous"):
            session.all_gather(np.zeros((4, 4))[:, 1])
        with pytest.raises(InvalidArrayError, match=r"must be float64 \(1, 4\)"):
            session.all_gather(np.zeros(4), out=np.zeros(4))
        memory = np.zeros(8)
        with pytest.raises(InvalidArrayError, match="overlaps"):
            session.all_gather(memory[1:5], out=memory[:4].reshape(1, 4))
        with pytest.raises(InvalidArrayError, match="of equal length"):
            session.reduce_scatter(np.zeros((), np.float32))
        frozen = np.zeros(4)
        frozen.flags.writeable = False
        assert session.broadcast(frozen, 0) is frozen


@pytest.mark.parametrize("seed", range(40 if LONG else 8))
def test_what_is_under_way_when_the_switch_is_lost_is_finished_without_it(seed: int) -> None:
    """Each kind; no value is lost, and none counts twice."""
    rng = random.Random(seed)
    with (
        UdpModel(slots=16, values=VALUES, loss=0.2, seed=seed) as switch,
        closing(switch.sessions(RANKS, recoverable=True)) as sessions,
    ):
        steps = [collectives.drawn(rng, RANKS, VALUES, 12 * VALUES) for _ in range(12)]
        handles = [
            [
                session.submit(
                    step.ins[rank].ctypes.data, step.outs[rank].ctypes.data, step.what, keep=step
                )
                for step in steps
            ]
            for rank, session in enumerate(sessions)
        ]
        handles[seed % RANKS][rng.randrange(len(steps))].wait(60)
        recover([session.freeze() for session in sessions])
        for of_rank in handles:
            for handle in of_rank:
                handle.wait(60)
        for step in steps:
            step.check()
