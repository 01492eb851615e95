"""CUBIC and DCTCP do what their RFCs, and the papers, say of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ina.extension import sim as native
from ina.sim.fabric import VirtualFabric
from ina.sim.traffic import IncastSpec, TcpSpec
from ina.sim.ways import Way
from tests.sim.flow_networks import flows, one_flow, pair, plain_star

GBIT = 10**9
MS = 1_000_000
MSS = 1460
SEGMENT_WIRE_BYTES = MSS + 54 + 24
WITHOUT_END_KIB = 1e7
C = 0.4  # of RFC 9438


@pytest.mark.parametrize(("most", "window"), [(10, 7), (1282, 897.4), (1e6, 7e5), (5, 5), (5, 9)])
def test_cubic_comes_back_after_k(most: float, window: float) -> None:
    expected_s = max((most - window) / C, 0) ** (1 / 3)
    k_s = native.cubic_back_s(most, window)
    assert k_s == pytest.approx(expected_s, abs=1e-6)
    assert native.cubic_curve(0, k_s, most) == pytest.approx(min(window, most), rel=1e-5)
    assert native.cubic_curve(k_s, k_s, most) == most
    assert native.cubic_curve(k_s + 2, k_s, most) == pytest.approx(most + C * 8)


def test_a_window_follows_cubics_curve() -> None:
    """RFC 9438, 4.2: after a loss, back to the old window, which it stays near, and beyond."""
    way = Way(bits_per_s=GBIT, delay_ns=50 * MS)
    with VirtualFabric(pair(way), seed=1) as fabric:
        flow = one_flow(fabric, WITHOUT_END_KIB, TcpSpec(min_rto_ms=500))
        network, port = fabric.network, fabric.ports["h1>h2"]
        network.run(620 * MS)  # in slow start, some 640 segments
        fabric.set_way("h1>h2", replace(way, loss=1.0))
        while not port.counters.lost_packets:
            network.run(network.now_ns + 1000)
        fabric.set_way("h1>h2", way)
        sender = flow.native.sender(0)
        assert sender is not None
        most = 0.0
        while not sender.recoveries:
            most = sender.window_bytes / MSS
            network.run(network.now_ns + 10_000)
        window = sender.window_bytes / MSS
        assert window == pytest.approx(0.7 * most, rel=1e-3)
        while sender.window_bytes / MSS <= window:
            network.run(network.now_ns + MS)
        began_ns = network.now_ns
        k_s = ((most - window) / C) ** (1 / 3)
        seen, expected = [], []
        for _ in range(26):
            network.run(network.now_ns + 500 * MS)
            since_s = (network.now_ns - began_ns) / 1e9
            seen.append(sender.window_bytes / MSS)
            expected.append(C * (since_s - k_s) ** 3 + most)
        assert since_s > k_s + 2
        # A round trip passes until what the curve says is sent, and it is followed.
        np.testing.assert_allclose(seen, expected, rtol=0.01)
        assert (sender.recoveries, sender.timeouts, port.counters.lost_packets) == (1, 0, 1)


@pytest.mark.parametrize("count", [2, 4])
def test_dctcp_keeps_the_queue_near_its_threshold(count: int) -> None:
    """Alizadeh et al. (SIGCOMM 2010), 3.3: it swings below K + N segments, by as much as the root
    of 2 N (C RTT + K), halved; the link is never idle. And the flows have equal shares."""
    threshold = 65 * SEGMENT_WIRE_BYTES
    way = Way(bits_per_s=10 * GBIT, delay_ns=25_000, marking="step", mark_bytes=threshold)
    with VirtualFabric(plain_star(count + 1, way), seed=1) as fabric:
        running = start_apart(fabric, count, "dctcp")
        port = fabric.ports[f"s1>h{count + 1}"]
        fabric.network.run(20 * MS)
        sent_bytes, before = port.counters.sent_bytes, progress(running)
        queue = []
        while fabric.network.now_ns < 60 * MS:
            fabric.network.run(fabric.network.now_ns + 7_000)
            queue.append(port.waiting_bytes / SEGMENT_WIRE_BYTES)
        carried = (port.counters.sent_bytes - sent_bytes) * 8 / (40 * MS) / 10
        assert carried == pytest.approx(1, abs=0.001)
        pipe = 10 * GBIT * 100e-6 / 8 / SEGMENT_WIRE_BYTES
        swing = np.sqrt(2 * count * (pipe + 65)) / 2
        assert max(queue) <= 65 + 2 * count  # each may also send two at once
        assert min(queue) >= 65 + count - 1.5 * swing
        assert np.mean(queue) == pytest.approx(65 + count - swing / 2, abs=swing / 2)
        assert fairness(progress(running) - before) > 0.98
        assert port.counters.full_packets == 0


@pytest.mark.parametrize("count", [2, 8])
def test_flows_of_cubic_fill_a_queue_and_have_equal_shares(count: int) -> None:
    # Without jitter the same flow finds the queue full each time (Floyd and Jacobson 1992).
    way = Way(bits_per_s=GBIT, delay_ns=100_000, queue_bytes=200_000, jitter_ns=2000)
    topology = plain_star(count + 1, replace(way, bits_per_s=10 * GBIT), way)
    with VirtualFabric(topology, seed=1) as fabric:
        running = start_apart(fabric, count, "cubic")
        port = fabric.ports[f"s1>h{count + 1}"]
        fabric.network.run(200 * MS)
        sent_bytes, before = port.counters.sent_bytes, progress(running)
        fabric.network.run(2200 * MS)
        assert (port.counters.sent_bytes - sent_bytes) * 8 / (2000 * MS) == pytest.approx(
            1, abs=0.01
        )
        assert fairness(progress(running) - before) > 0.95
        assert port.counters.full_packets > 0
        assert port.counters.longest_bytes > 195_000


def start_apart(fabric: VirtualFabric, count: int, algorithm: str) -> list[native.Traffic]:
    """A flow from each of the first hosts to the one behind them, one after the other."""
    specs = [
        IncastSpec(
            name=f"flow {i + 1}",
            sources=[f"h{i + 1}"],
            destinations=[f"h{count + 1}"],
            size_kib=WITHOUT_END_KIB,
            start_ms=0.3 * i,
            tcp=TcpSpec(algorithm="dctcp" if algorithm == "dctcp" else "cubic"),
        )
        for i in range(count)
    ]
    return [flow.native for flow in flows(fabric, specs)]


def progress(running: list[native.Traffic]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Bytes that each has brought."""
    return np.array([flow.progress()[0][1] for flow in running], np.float64)


def fairness(shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one has all."""
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))
