"""A ring of reliable connections in user space: what NICs would do for mode transparent."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter

import numpy as np
import pytest

from ina.host import JobFailedError, OperationTimeoutError, Session
from ina.protocol.bth import Opcode
from ina.protocol.roce import RoceFrame
from tests.host.sums import reduce_all
from tests.worlds.fakes.ring_model import ACKNOWLEDGE, NETWORK, RingModel
from tests.worlds.fakes.udp_model import closing
from tests.worlds.parts import random_parts

ELEMS = 64 * 50 + 7


def check(sessions: list[Session], rounds: int = 2) -> None:
    for seed in range(rounds):
        for dtype in (np.int32, np.float32):
            parts = random_parts(np.dtype(dtype), len(sessions), ELEMS, seed)
            results = reduce_all(sessions, parts)
            assert len({result.tobytes() for result in results}) == 1
            if dtype == np.int32:
                np.testing.assert_array_equal(results[0], np.sum(parts, axis=0, dtype=np.int32))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_sums_go_round(count: int) -> None:
    with RingModel() as switch, closing(switch.ring_sessions(count)) as sessions:
        check(sessions)
        stats = [session.stats() for session in sessions]
        assert [it.damaged_results for it in stats] == [0] * count
        assert [it.transport for it in stats] == ["roce-soft"] * count
        sends = Counter(it.bth.psn for it in switch.frames if it.bth.opcode != ACKNOWLEDGE)
        assert {0xFFFFFE, 0xFFFFFF, 0, 1} <= set(sends)  # around the end of the numbers
        assert all(it.bth.ack_request for it in switch.frames if it.bth.opcode != ACKNOWLEDGE)


def test_losses_are_mended_by_the_connections() -> None:
    with RingModel(loss=0.03, seed=3) as switch, closing(switch.ring_sessions(3)) as sessions:
        check(sessions, 1)
        assert [session.stats().timeouts for session in sessions] == [0, 0, 0]


def test_copies_and_what_is_late_change_nothing() -> None:
    rng = random.Random(4)
    old: list[RoceFrame] = []

    def fate(frame: RoceFrame) -> list[RoceFrame]:
        old.append(frame)
        again = [it for it in rng.sample(old, min(3, len(old))) if it.dst_ipv4 == frame.dst_ipv4]
        return [frame, *again] if rng.random() < 0.9 else again

    with RingModel(fate=fate) as switch, closing(switch.ring_sessions(3)) as sessions:
        check(sessions, 1)
        assert sum(session.stats().corrupted_sums for session in sessions) == 0


def test_a_straggler_is_waited_for() -> None:
    """Longer than some of the connections' timeouts; none of them gives up."""
    with RingModel() as switch, closing(switch.ring_sessions(2)) as sessions:
        first = sessions[0].all_reduce(np.ones(500, np.int32), async_op=True)
        until = len(switch.frames)
        threading.Event().wait(0.3)
        assert len(switch.frames) > until  # it asks again
        second = sessions[1].all_reduce(np.ones(500, np.int32), async_op=True)
        assert (first.wait(30) == 2).all()
        assert (second.wait(30) == 2).all()


def test_a_switch_that_is_gone_ends_in_an_error() -> None:
    with (
        RingModel() as switch,
        closing(switch.ring_sessions(2, op_timeout_s=1.0)) as sessions,
    ):
        check(sessions, 1)
        switch.is_dead = True
        with pytest.raises((JobFailedError, OperationTimeoutError)):
            reduce_all(sessions, [np.ones(500, np.int32)] * 2)


@pytest.mark.parametrize("after", [1, 40, 333, 700])
def test_a_switch_that_restarts_ends_in_an_error_and_in_no_wrong_sum(after: int) -> None:
    """What was acknowledged before is not sent again, so some rounds stay open for ever."""
    came = 0

    def fate(frame: RoceFrame) -> list[RoceFrame]:
        nonlocal came
        came += 1
        if came == after:
            switch.forget()
        return [frame]

    with (
        RingModel(fate=fate) as switch,
        closing(switch.ring_sessions(3, op_timeout_s=1.0)) as sessions,
        contextlib.suppress(JobFailedError, OperationTimeoutError),
    ):
        check(sessions)
    assert came >= after


def test_of_each_kind_there_is_one_for_each_lane() -> None:
    with RingModel(slots=16) as switch:
        lanes = 8
        with closing(switch.ring_sessions(2)) as sessions:
            check(sessions, 1)
        pairs = {it.bth.dest_qp for it in switch.frames if it.bth.opcode == Opcode.RC_SEND_ONLY}
        assert len(pairs) == 2 * lanes


def test_a_lane_whose_messages_nobody_acknowledges_waits_and_loses_none() -> None:
    """Its connection has room for eight; sums go on to come meanwhile."""
    dropped = Counter[int]()

    def fate(frame: RoceFrame) -> list[RoceFrame]:
        if frame.bth.opcode != ACKNOWLEDGE or dropped[frame.bth.dest_qp] == 12:
            return [frame]
        dropped[frame.bth.dest_qp] += 1
        return []

    with RingModel(fate=fate, slots=2) as switch, closing(switch.ring_sessions(2)) as sessions:
        check(sessions, 1)
        assert set(dropped.values()) == {12}


def ones(sessions: list[Session]) -> None:
    """The first session has all of it, and leaves."""
    last = sessions[1].all_reduce(np.ones(5, np.int32), async_op=True)
    assert (sessions[0].all_reduce(np.ones(5, np.int32)) == 2).all()
    sessions[0].close()
    assert (last.wait(30) == 2).all()


def test_who_leaves_sees_to_its_neighbours_last_sum() -> None:
    seen = set()

    def fate(frame: RoceFrame) -> list[RoceFrame]:
        is_again = (frame.dst_ipv4, frame.bth) in seen
        seen.add((frame.dst_ipv4, frame.bth))
        is_late = frame.dst_ipv4 == int(NETWORK) + 1 and frame.bth.opcode != ACKNOWLEDGE
        return [frame] if is_again or not is_late else []

    with RingModel(fate=fate) as switch, closing(switch.ring_sessions(2)) as sessions:
        ones(sessions)


def test_who_is_owed_to_and_says_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ina.host.member.session.OWED_S", 0.05)

    def fate(frame: RoceFrame) -> list[RoceFrame]:
        return [] if frame.bth.opcode == ACKNOWLEDGE else [frame]

    with RingModel(fate=fate) as switch, closing(switch.ring_sessions(2)) as sessions:
        ones(sessions)
