"""What became of the packets sent again: losses, spurious resends and probes, counted apart."""

from __future__ import annotations

import numpy as np
import pytest

from tests.host.network import MS, Link, Network, all_reduce
from tests.host.shaped import Star

CHUNKS = 800
VALUES = 64


def parts(workers: int, chunks: int) -> list[np.ndarray]:
    return [np.full(chunks * VALUES, rank + 1, np.int32) for rank in range(workers)]


def totals(network: Network) -> dict[str, int]:
    """Sums over the workers, long after the last result."""
    for core in network.workers:
        core.settle_resends(network.now_ns + 1000 * MS)
    names = ("retransmissions", "losses", "spurious", "probes")
    return {name: sum(getattr(core.counters, name) for core in network.workers) for name in names}


@pytest.mark.parametrize("workers", [2, 4])
def test_waiting_for_a_late_worker_is_no_loss(workers: int) -> None:
    network = Network(workers, slots=128, values=VALUES)
    outs = [np.empty(100 * VALUES, np.int32) for _ in range(workers)]
    inputs = parts(workers, 100)
    for step in range(1, 4):
        for rank in range(workers - 1):
            network.submit(rank, step, inputs[rank], outs[rank])
        network.run_until(network.now_ns + 200 * MS)
        network.submit(workers - 1, step, inputs[-1], outs[-1])
        network.run(step)
    counts = totals(network)
    assert counts["losses"] == 0
    assert counts["probes"] > 0
    assert sum(counts.values()) == 2 * counts["retransmissions"]


@pytest.mark.parametrize("workers", [2, 6])
@pytest.mark.parametrize("jitter", [False, True], ids=["in order", "reordered"])
def test_losses_are_what_the_network_dropped(workers: int, jitter: bool) -> None:
    link = Link(loss=0.02, min_delay_ns=40_000, max_delay_ns=90_000 if jitter else 40_000)
    network = Network(workers, slots=256, values=VALUES, link=link, seed=4)
    all_reduce(network, parts(workers, CHUNKS))
    counts = totals(network)
    # Without a doubt: what one of several copies brought, or a copy that nobody needed, may be
    # lost, too; and a result that comes after the lane's next one is taken for lost.
    assert 0.8 * network.lost < counts["losses"] <= 1.05 * network.lost
    assert sum(counts.values()) == 2 * counts["retransmissions"]


def test_packets_that_overtake_each_other_are_no_losses() -> None:
    link = Link(min_delay_ns=20_000, max_delay_ns=150_000)
    network = Network(2, slots=128, values=VALUES, link=link, seed=2)
    all_reduce(network, parts(2, CHUNKS))
    counts = totals(network)
    assert counts["losses"] == 0
    assert counts["spurious"] + counts["probes"] == counts["retransmissions"] > 0


def test_a_queue_that_overflows_is_a_loss() -> None:
    star = Star(4, slots=1024, queue_packets=40, window="fixed")
    star.reduce(1, CHUNKS)
    for core in star.cores:
        core.settle_resends(star.now_ns + 1000 * MS)
    losses = sum(core.counters.losses for core in star.cores)
    # All lose the same chunks here; of each, only who came last knows that it was lost.
    assert star.lost() / 5 < losses <= star.lost()
