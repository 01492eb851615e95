"""Links that drop whole trains of packets, and links on which they queue, in virtual time."""

from __future__ import annotations

import pytest

from tests.host.trains import TrainStar

KIB = 1 << 10
ANY = 1 << 30
CHUNKS = 12000  # some 16 MiB


@pytest.mark.parametrize("values", [256, 360])
@pytest.mark.parametrize("queue_bytes", [96 * KIB, 128 * KIB, 256 * KIB])
@pytest.mark.parametrize("workers", [2, 4, 8])
def test_workers_that_lose_different_trains_do_not_wait_for_each_other(
    workers: int, queue_bytes: int, values: int
) -> None:
    star = TrainStar(workers, queue_bytes, values)
    assert star.reduce(CHUNKS) > 0.85
    assert star.lost() > 0  # the first window alone overflows the queues
    for core in star.cores:
        assert core.in_flight_limit < core.window
        # Once the windows fit, only growing too far loses something.
        assert core.counters.retransmissions < CHUNKS / 8


def test_chunks_go_in_the_same_order_on_all_ranks_however_their_results_came() -> None:
    star = TrainStar(4, 128 * KIB)
    spread: list[int] = []

    def look() -> None:
        newest = [core.counters.last_seq for core in star.cores]
        spread.append(max(newest) - min(newest))

    star.reduce(CHUNKS, look)
    # A lane that is a round ahead of the others is 256 ahead.
    assert sorted(spread)[len(spread) * 9 // 10] < 256


class Pauses:
    """What the cores of a star would let their threads pause."""

    def __init__(self, star: TrainStar) -> None:
        self.star = star
        self.ns: list[int] = []
        self.in_flight: list[int] = []

    def look(self) -> None:
        for core in self.star.cores:
            if core.moderation_ns > 0:
                self.ns.append(core.moderation_ns)
                self.in_flight.append(core.in_flight)


def test_a_worker_whose_packets_stand_in_queues_lets_results_gather() -> None:
    pauses = Pauses(TrainStar(2, ANY))
    pauses.star.reduce(CHUNKS, pauses.look)
    window_ns = 256 * (360 * 4 + 66) * 8
    assert len(pauses.ns) > 100
    # A third of what queues: less than the window's time on the wire.
    assert min(pauses.ns) >= 2_000_000 // 3
    assert max(pauses.ns) < window_ns / 2
    assert min(pauses.in_flight) >= 128  # at the end of the tensor it does not


def test_where_nothing_queues_each_result_is_read_as_it_comes() -> None:
    pauses = Pauses(TrainStar(2, ANY, bits_per_s=100e9))
    pauses.star.reduce(CHUNKS, pauses.look)
    assert pauses.ns == []
