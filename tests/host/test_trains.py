"""Links whose queues drop whole trains of packets (GSO), and links on which they queue."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from ina.sim.ways import Way
from tests.selection import LONG
from tests.worlds.virtual.cores import MS
from tests.worlds.virtual.star import Star
from tests.worlds.virtual.wire import GBIT, reduce, star_of

KIB = 1 << 10
ANY = 1 << 40
CHUNKS = 12000  # some 16 MiB
LOOK_NS = MS // 20


def train_star(workers: int, queue_bytes: int, values: int = 360, bits_per_s: int = GBIT) -> Star:
    """Links take up to 60 µs more now and then, so that no two workers do the same."""
    way = Way(bits_per_s=bits_per_s, delay_ns=20_000, jitter_ns=60_000, queue_bytes=queue_bytes)
    return star_of(workers, way, values=values, trains=True)


@pytest.mark.parametrize(
    ("workers", "queue_bytes", "values"),
    itertools.product([2, 4, 8], [96 * KIB, 128 * KIB, 256 * KIB], [256, 360])
    if LONG
    else [
        (2, 96 * KIB, 256),
        (2, 256 * KIB, 360),
        (4, 128 * KIB, 256),
        (4, 96 * KIB, 360),
        (8, 256 * KIB, 256),
        (8, 128 * KIB, 360),
    ],
)
def test_workers_that_lose_different_trains_do_not_wait_for_each_other(
    workers: int, queue_bytes: int, values: int
) -> None:
    star = train_star(workers, queue_bytes, values)
    assert reduce(star, 1, CHUNKS) > 0.85
    assert star.lost > 0  # the first window alone overflows the queues
    for worker in star.workers:
        assert worker.in_flight_limit < worker.window
        # Once the windows fit, only growing too far loses something.
        assert worker.counters.retransmissions < CHUNKS / 8


def reduce_looking(star: Star, look: Callable[[], None]) -> None:
    """Reduces a tensor, and looks again and again meanwhile."""
    data = np.zeros(CHUNKS * star.values, np.int32)
    for rank in range(len(star.workers)):
        star.submit(rank, 1, data, data)
    while not all(star.done):
        star.run_until(star.now_ns + LOOK_NS)
        look()


def test_chunks_go_in_the_same_order_on_all_ranks_however_their_results_came() -> None:
    star = train_star(4, 128 * KIB)
    spread: list[int] = []

    def look() -> None:
        newest = [worker.counters.last_seq for worker in star.workers]
        spread.append(max(newest) - min(newest))

    reduce_looking(star, look)
    # A lane that is a round ahead of the others is 256 ahead.
    assert sorted(spread)[len(spread) * 9 // 10] < 256


class Pauses:
    """For how long the workers of a star let results gather, and what they have in flight then."""

    def __init__(self, star: Star) -> None:
        self.ns: list[int] = []
        self.in_flight: list[int] = []
        self._star = star
        reduce_looking(star, self._look)

    def _look(self) -> None:
        for worker in self._star.workers:
            if worker.moderation_ns > 0:
                self.ns.append(worker.moderation_ns)
                self.in_flight.append(worker.in_flight)


def test_a_worker_whose_packets_stand_in_queues_lets_results_gather() -> None:
    pauses = Pauses(train_star(2, ANY))
    window_ns = 256 * (360 * 4 + 94) * 8
    assert len(pauses.ns) > 100
    # Less than the window's time on the wire.
    assert min(pauses.ns) == MS // 2
    assert max(pauses.ns) < window_ns / 2
    assert min(pauses.in_flight) >= 128  # at the end of the tensor it does not


def test_where_nothing_queues_each_result_is_read_as_it_comes() -> None:
    assert Pauses(train_star(2, ANY, bits_per_s=100 * GBIT)).ns == []
