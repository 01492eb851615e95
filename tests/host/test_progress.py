"""What a worker says of itself: where its lanes are."""

from __future__ import annotations

import numpy as np

from ina._native.host import WorkerCore
from ina.protocol.collective import Collective
from tests.worlds.virtual.cores import worker_config
from tests.worlds.virtual.star import Star

MEMORY = np.zeros(1000, np.int32)


def test_the_oldest_operation_that_is_not_done() -> None:
    star = Star(1, slots=4)
    array = np.ones(160, np.float32)
    assert star.workers[0].lanes().oldest_operation is None
    for number in (1, 2):
        star.submit(0, number, array, array, ("sum", "avg")[number - 1])
    assert star.workers[0].lanes().oldest_operation == (1, (1, 160, 0, 0, 0, 0))
    star.run(1)
    assert star.workers[0].lanes().oldest_operation == (2, (1, 160, 1, 0, 0, 0))


def test_lanes_say_what_was_sent_last_and_what_waits() -> None:
    core = WorkerCore(worker_config(0, 2, 8, 8, first_seq=2**32 - 8))
    first = [2**32 - 8 + lane for lane in range(4)]
    assert core.lanes(0).seqs == [seq - 4 for seq in first]
    core.submit(1, MEMORY.ctypes.data, MEMORY.ctypes.data, Collective(0, 20), 0)  # three chunks
    core.poll_transmit(100)
    snapshot = core.lanes(1100)
    assert snapshot.seqs == [*first[:3], first[3] - 4]
    assert snapshot.waiting == b"\x07"
    assert (snapshot.in_flight, snapshot.oldest_seq) == (3, first[0])
    assert (snapshot.silent_ns, snapshot.oldest_waited_ns) == (1000, 1000)
