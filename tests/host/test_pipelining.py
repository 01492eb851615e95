"""Reductions one after the other: the window stays full from one to the next, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ina._native.congestion import Choice
from ina.sim.ways import Way
from ina.testing import numerics
from tests.worlds.parts import random_parts
from tests.worlds.virtual.star import Star, even, scattered

VALUES = 64
W = 8
EVEN = even(50_000)
UNEVEN = scattered(least_ns=20_000, most_ns=90_000)
WINDOW = Choice("fixed")  # one that does not spread what it sends
# What one rank submits at once; chunks a tensor.
STEPS = {
    "buckets of a DDP step": [40 * W, 40 * W, 40 * W, 7],
    "not a multiple of the window": [5 * W + 3, 3 * W + 1, 9 * W + 5],
    "many small ones": [3] * 100,
}


class Run:
    """Two ranks that submit everything at once; notes what rank 0 has in flight at each event."""

    def __init__(self, dtype: np.dtype[np.generic], chunks: list[int], way: Way) -> None:
        self.star = Star(2, slots=2 * W, way=way, window=WINDOW)
        self.chunks = chunks
        self.tensors = [
            random_parts(dtype, 2, count * VALUES, seed) for seed, count in enumerate(chunks)
        ]
        self.expected = [numerics.all_reduce(parts, "sum", VALUES) for parts in self.tensors]
        for number, parts in enumerate(self.tensors, start=1):
            for rank, part in enumerate(parts):
                self.star.submit(rank, number, part, part)

    def events(self) -> Iterator[tuple[int, int, int]]:
        """Yields, after each, of rank 0: chunks done, packets in flight, tensors done."""
        worker = self.star.workers[0]
        while any(len(done) < len(self.chunks) for done in self.star.done):
            self.star.step()
            yield worker.counters.chunks_done, worker.in_flight, len(self.star.done[0])
        for parts, want in zip(self.tensors, self.expected, strict=True):
            assert all(numerics.same_bits(part, want) for part in parts)


@pytest.mark.parametrize("way", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("chunks", STEPS.values(), ids=STEPS)
def test_the_window_never_drains_between_tensors(
    chunks: list[int], dtype: type[np.generic], way: Way
) -> None:
    """At every sending, until the lanes that are ahead run out of chunks."""
    run = Run(np.dtype(dtype), chunks, way)
    total = sum(chunks)
    lows = [in_flight for chunks_done, in_flight, _ in run.events() if total - chunks_done > 10 * W]
    assert lows
    small = chunks[0] <= W  # they have lanes of their own, by turns, which differ in length
    assert min(lows) >= (W // 2 if small else W)


def test_packets_of_the_next_tensor_leave_before_the_first_is_complete() -> None:
    run = Run(np.dtype(np.float32), [4 * W, 4 * W], UNEVEN)
    sent = 0
    for chunks_done, in_flight, tensors_done in run.events():
        sent = max(sent, chunks_done + in_flight)
        if tensors_done == 0 and sent > 4 * W:
            return
    raise AssertionError("the second tensor began when the first was complete")


def test_back_to_back_tensors_cost_no_round_but_the_first() -> None:
    """Float tensors queued take as long as int32 ones, and one exponent round more."""
    times = {}
    for dtype in (np.int32, np.float32):
        run = Run(np.dtype(dtype), [20 * W] * 5, EVEN)
        for _ in run.events():
            pass
        times[dtype] = run.star.now_ns
    round_trip_ns = 100_000
    assert times[np.int32] == 100 * round_trip_ns
    assert times[np.float32] == 101 * round_trip_ns


def test_all_lanes_advance_alike() -> None:
    """With half the window in flight, no lane falls behind another by more than a few rounds."""
    star = Star(2, slots=2 * W, way=UNEVEN, in_flight=[W // 2, W // 2], window=WINDOW)
    parts = random_parts(np.dtype(np.int32), 2, 60 * W * VALUES, 1)
    for rank, part in enumerate(parts):
        star.submit(rank, 1, part, part)
    while not star.done[0]:
        star.step()
        seqs = star.workers[0].lanes().seqs
        rounds = [(seq + W) % 2**32 // W for seq in seqs]
        if max(rounds) < 60:
            assert max(rounds) - min(rounds) <= 4
