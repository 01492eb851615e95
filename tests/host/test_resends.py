"""What became of the packets sent again: losses, spurious resends and probes, counted apart."""

from __future__ import annotations

import numpy as np
import pytest

from ina._native.congestion import Choice
from ina.sim.ways import Way
from tests.worlds.virtual.cores import MS, SECOND, Array
from tests.worlds.virtual.star import Star, even, scattered

CHUNKS = 800
VALUES = 64


def parts(workers: int, chunks: int, values: int = VALUES) -> list[Array]:
    return [np.full(chunks * values, rank + 1, np.int32) for rank in range(workers)]


def totals(star: Star) -> dict[str, int]:
    """Sums over the workers, long after the last result."""
    star.run_until(star.now_ns + SECOND)
    names = ("retransmissions", "losses", "spurious", "probes")
    return {name: sum(getattr(one.counters, name) for one in star.workers) for name in names}


@pytest.mark.parametrize("workers", [2, 4])
def test_waiting_for_a_late_worker_is_no_loss(workers: int) -> None:
    star = Star(workers, slots=128)
    outs = [np.empty(100 * VALUES, np.int32) for _ in range(workers)]
    inputs = parts(workers, 100)
    for step in range(1, 4):
        for rank in range(workers - 1):
            star.submit(rank, step, inputs[rank], outs[rank])
        star.run_until(star.now_ns + 200 * MS)
        star.submit(workers - 1, step, inputs[-1], outs[-1])
        star.run(step)
    counts = totals(star)
    assert counts["losses"] == 0
    assert counts["probes"] > 0
    assert sum(counts.values()) == 2 * counts["retransmissions"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("workers", [2, 6])
@pytest.mark.parametrize("jitter", [False, True], ids=["in order", "reordered"])
def test_losses_are_what_the_network_dropped(workers: int, jitter: bool, seed: int) -> None:
    way = scattered(loss=0.02, least_ns=40_000, most_ns=90_000) if jitter else even(40_000, 0.02)
    star = Star(workers, slots=256, way=way, seed=seed)
    star.all_reduce(parts(workers, CHUNKS))
    counts = totals(star)
    # Without a doubt: what one of several copies brought, or a copy that nobody needed, may be
    # lost, too; and a result that comes after the lane's next one is taken for lost.
    assert 0.8 * star.lost < counts["losses"] <= 1.05 * star.lost
    assert sum(counts.values()) == 2 * counts["retransmissions"]


def test_packets_that_overtake_each_other_are_no_losses() -> None:
    star = Star(2, slots=128, way=scattered(most_ns=150_000), seed=2)
    star.all_reduce(parts(2, CHUNKS))
    counts = totals(star)
    assert counts["losses"] == 0
    assert counts["spurious"] + counts["probes"] == counts["retransmissions"] > 0


def test_a_queue_that_overflows_is_a_loss() -> None:
    way = Way(bits_per_s=10**9, delay_ns=20_000, queue_bytes=40 * (4 * 256 + 94))
    star = Star(4, slots=1024, values=256, way=way, window=Choice("fixed"))
    star.all_reduce(parts(4, CHUNKS, 256))
    losses = totals(star)["losses"]
    # All lose the same chunks here; of each, only who came last knows that it was lost.
    assert star.lost / 5 < losses <= star.lost
