"""What a worker says of itself: its lanes, and digests of what it has submitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ina._native.host import WorkerCore
from tests.host.network import Network, worker_config

MEMORY = np.zeros(1000, np.int32)
SUM, AVG = False, True


def digests_of(*operations: tuple[int, int, bool]) -> Sequence[int]:
    core = WorkerCore(worker_config(0, 2, 8, 8))
    for number, (elems, value_type, average) in enumerate(operations, start=1):
        address = MEMORY.ctypes.data
        core.submit(number, address, address, elems, value_type, average, 0)
    return core.lanes(0).digests


def test_digests_are_of_the_first_1_2_4_8_operations() -> None:
    operations = [(elems, elems % 4, elems % 3 == 0) for elems in range(9)]
    all_of_them = digests_of(*operations)
    assert [len(digests_of(*operations[:n])) for n in range(10)] == [0, 1, 2, 2, 3, 3, 3, 3, 4, 4]
    assert len(set(all_of_them)) == 4
    assert digests_of(*operations[:4]) == all_of_them[:3]


@pytest.mark.parametrize("other", [(9, 1, SUM), (8, 2, SUM), (8, 1, AVG)])
def test_digests_differ_where_the_operations_do(other: tuple[int, int, bool]) -> None:
    same, changed = [(8, 1, SUM)] * 4, [(8, 1, SUM)] * 4
    changed[2] = other
    one, two = digests_of(*same), digests_of(*changed)
    assert one[:2] == two[:2]
    assert one[2] != two[2]
    assert digests_of((8, 1, SUM), other)[1] != digests_of(other, (8, 1, SUM))[1]


def test_the_oldest_operation_that_is_not_done() -> None:
    network = Network(1, slots=4, values=8)
    array = np.ones(20, np.float32)
    assert network.workers[0].lanes(0).oldest_operation is None
    for number in (1, 2):
        network.submit(0, number, array, array, ("sum", "avg")[number - 1])
    assert network.workers[0].lanes(0).oldest_operation == (1, 20, 1, False)
    network.run(1)
    assert network.workers[0].lanes(0).oldest_operation == (2, 20, 1, True)


def test_lanes_say_what_was_sent_last_and_what_waits() -> None:
    core = WorkerCore(worker_config(0, 2, 8, 8, first_seq=2**32 - 8))
    first = [2**32 - 8 + lane for lane in range(4)]
    assert core.lanes(0).seqs == [seq - 4 for seq in first]
    core.submit(1, MEMORY.ctypes.data, MEMORY.ctypes.data, 20, 0, False, 0)  # three chunks
    core.poll_transmit(100)
    snapshot = core.lanes(1100)
    assert snapshot.seqs == [*first[:3], first[3] - 4]
    assert snapshot.waiting == b"\x07"
    assert (snapshot.in_flight, snapshot.oldest_seq) == (3, first[0])
    assert (snapshot.silent_ns, snapshot.oldest_waited_ns) == (1000, 1000)
