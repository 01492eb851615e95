"""Queues in the caller's own time: they last from call to call, drain, and mark packets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scapy.layers.inet import IP

from ina.errors import InvalidInputError
from ina.p4 import names
from ina.protocol.spec import Flag
from ina.switch.queues import WIRE_GAP_BYTES, LinkQueues
from tests.worlds.virtual.pool import VALUES, Bench, header, read

GBIT = 10**9
FRAME = bytes(1000 - WIRE_GAP_BYTES)  # 8 us at 1 Gbit/s
FRAME_NS = 8_000
ONES = [1] * VALUES


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(2)
    with made.pipeline:
        yield made


def test_a_queue_drains_at_the_rate_of_its_link() -> None:
    queues = LinkQueues(GBIT)
    assert queues.depths(0) == {}
    assert queues.put([(1, FRAME), (2, FRAME), (1, FRAME)]) == [8_000, 8_000, 16_000]
    assert queues.depths(FRAME_NS - 1) == {1: 2, 2: 1}
    assert queues.depths(FRAME_NS) == {1: 1}
    assert queues.put([(1, FRAME), (2, FRAME)]) == [24_000, 16_000]  # behind one, and at once
    assert queues.depths(3 * FRAME_NS) == {}
    assert LinkQueues(3).put([(1, b"")]) == [64 * GBIT]  # ns of 192 bits


def test_wrong_rates_and_times_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="0 bit/s"):
        LinkQueues(0)
    queues = LinkQueues(GBIT)
    queues.depths(5)
    with pytest.raises(InvalidInputError, match="4 ns is over"):
        queues.depths(4)


def marks(bench: Bench, slot: int, now_ns: int, queues: LinkQueues | None) -> list[bool]:
    """Whether the copies of a chunk's result, each contribution a call of its own, are marked."""
    sent = []
    for worker in bench.workers:
        port, frame = worker.frame(header(slot), ONES)
        sent += bench.pipeline.process(port, frame, now_ns, queues)
    assert len(sent) == len(bench.workers)
    results = [read(frame) for _, frame in sent]
    told = [bool(head.flags & Flag.ECN) for _, head, _ in results]
    assert told == [packet[IP].tos & 3 == 3 for packet, _, _ in results]
    return told


def test_results_of_several_calls_are_marked_until_the_queue_is_drained(bench: Bench) -> None:
    bench.pipeline.set_default(names.ECN_THRESHOLD, names.MARK_ABOVE, [1])
    queues = LinkQueues(GBIT)
    at_once = [marks(bench, slot, 0, queues) for slot in range(4)]
    assert at_once == [[False] * 2, [False] * 2, [True] * 2, [True] * 2]  # behind 0, 1, 2, 3
    assert bench.job_counts()[names.JOB_ECN_MARKS] == 4
    [depth] = set(queues.depths(0).values())
    assert depth == 4
    result_ns = queues.put([(99, bench.workers[0].frame(header(0), ONES)[1])])[0]
    assert marks(bench, 4, 2 * result_ns, queues) == [True] * 2  # behind 2
    assert marks(bench, 5, 4 * result_ns, queues) == [False] * 2  # behind 1
    assert bench.job_counts()[names.JOB_ECN_MARKS] == 6


def test_without_queues_each_call_finds_them_empty(bench: Bench) -> None:
    bench.pipeline.set_default(names.ECN_THRESHOLD, names.MARK_ABOVE, [0])
    assert [marks(bench, slot, 0, None) for slot in range(4)] == [[False] * 2] * 4
