"""Packets that may claim no shared slot go out as if they were sent again, and count as sent first.

Under a window that gives way where others want slots (`a2tp`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ina._native.host import WorkerCore
from ina.congestion import Congestion
from ina.protocol.codec import Header, decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import Flag, Kind
from tests.worlds.virtual.cores import MS, worker_config

LANES, VALUES = 32, 4
CHUNKS = 40 * LANES


class Worker:
    """All its results say what the test likes."""

    def __init__(self, window: str = "a2tp") -> None:
        options = {"first_bytes": 1e9} if window == "a2tp" else {}
        self.core = WorkerCore(
            worker_config(1, 2, 2 * LANES, VALUES),
            congestion=Congestion(window, options).choice(),
        )
        self.data = np.zeros(CHUNKS * VALUES, np.int32)
        self.core.submit(
            1, self.data.ctypes.data, self.data.ctypes.data, Collective(0, self.data.size), 0
        )
        self.now_ns = 0
        self.sent: list[Header] = []

    def send(self) -> list[Header]:
        headers = [decode(packet)[0] for packet in self.core.poll_transmit(self.now_ns)]
        self.sent += headers
        return headers

    def answer(self, sent: Header, flags: Flag) -> None:
        digest = 2 * sent.digest % 2**16
        result = replace(
            sent, kind=Kind.RESULT, contributors=0b11, digest=digest, flags=flags, check=0
        )
        self.core.on_result(encode(result, np.full(VALUES, 5, np.int32)), self.now_ns)

    def run(self, flags: Flag) -> None:
        """To the end: each packet's result comes 0.1 ms after it was sent."""
        waiting = self.send()
        while waiting:
            self.now_ns += MS // 10
            for sent in waiting:
                self.answer(sent, flags)
            waiting = self.send()


def test_where_others_want_slots_most_lanes_claim_none() -> None:
    worker = Worker()
    worker.run(Flag.WANTED)
    counters = worker.core.counters
    passing = [header for header in worker.sent if header.flags & Flag.RESEND]
    assert len(worker.sent) == CHUNKS
    assert 0.6 * CHUNKS < len(passing) < CHUNKS
    assert counters.unclaimed == len(passing)
    assert {header.copy for header in worker.sent} == {0}
    assert counters.chunks_done == CHUNKS
    assert (worker.data == 5).all()
    # None of it is a loss, or a copy that was not needed.
    assert counters.retransmissions == counters.losses == counters.spurious == counters.probes == 0
    last_turn = worker.sent[-LANES:]
    assert [header.seq % LANES for header in last_turn if not header.flags & Flag.RESEND] == [0]


@pytest.mark.parametrize("flags", [Flag(0), Flag.REPLAY])
def test_where_nobody_wants_any_all_claim(flags: Flag) -> None:
    worker = Worker()
    worker.run(flags)
    assert worker.core.counters.unclaimed == 0
    assert not any(header.flags & Flag.RESEND for header in worker.sent)


def test_a_mark_of_a_queue_is_no_such_word() -> None:
    worker = Worker()
    worker.run(Flag.ECN)
    assert worker.core.counters.unclaimed == 0


def test_other_windows_let_all_claim() -> None:
    worker = Worker("adaptive")
    worker.run(Flag.WANTED)
    assert worker.core.counters.unclaimed == 0


def test_a_replay_is_the_same_word() -> None:
    """Whoever lost the result decides as those do who got it."""
    first, second = Worker(), Worker()
    first.run(Flag.WANTED)
    second.run(Flag.WANTED | Flag.REPLAY)
    assert [it.flags for it in first.sent] == [it.flags for it in second.sent]


def test_what_goes_out_alone_and_is_lost_is_sent_again_with_its_number() -> None:
    worker = Worker()
    waiting = worker.send()
    for _ in range(12):
        worker.now_ns += MS // 10
        for sent in waiting:
            worker.answer(sent, Flag.WANTED)
        waiting = worker.send()
    lost = next(header for header in waiting if header.flags & Flag.RESEND)
    for _ in range(3):  # the others go on, and overtake it
        worker.now_ns += MS // 10
        for sent in waiting:
            if sent.seq != lost.seq:
                worker.answer(sent, Flag.WANTED)
        waiting = worker.send()
        again = [header for header in waiting if header.seq == lost.seq]
        if again:
            break
    assert [(header.copy, header.flags & Flag.RESEND) for header in again] == [(1, Flag.RESEND)]
    for sent in waiting:
        worker.answer(sent, Flag.WANTED)
    worker.run(Flag.WANTED)
    counters = worker.core.counters
    assert (counters.retransmissions, counters.losses) == (1, 1)
    assert counters.unclaimed == sum(
        bool(header.flags & Flag.RESEND) and header.copy == 0 for header in worker.sent
    )
