"""A link that is a token bucket lets pass what Linux' tbf lets pass, and when."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from ina.extension import sim as native
from ina.protocol.spec import HEADER_BYTES
from ina.sim.fabric import VirtualFabric
from ina.sim.reading import make
from ina.sim.run import Simulation
from ina.sim.traffic import UdpSpec, add_traffic
from ina.sim.ways import Way
from tests.sim.flow_networks import pair

RATE_BIT_S = 10**8
NS_A_BYTE = 8 * 10**9 // RATE_BIT_S
BURST_BYTES = 20_000
PAYLOAD_BYTES = 958
FRAME_BYTES = 1000  # with Ethernet, IPv4 and UDP; a bucket has no gaps here


def left_ns(way: Way, spec: UdpSpec) -> tuple[list[int], native.PortCounters]:
    """When each datagram has left, in order."""
    trace = native.Trace(1 << 16)
    with VirtualFabric(pair(way), seed=3) as fabric:
        fabric.network.set_trace(trace)
        add_traffic(fabric, [spec])
        fabric.network.run(2**63 - 1)
        counters = fabric.ports["h1>h2"].counters
    there = trace.ports.index("h1>h2")
    return [it.sent_ns for it in trace.records() if it.port == there], counters


def stream(rate_gbit: float, stop_ms: float, spacing: str = "even") -> UdpSpec:
    return UdpSpec(
        source="h1",
        destination="h2",
        rate_gbit=rate_gbit,
        payload_bytes=PAYLOAD_BYTES,
        spacing=spacing,  # type: ignore[arg-type]
        stop_ms=stop_ms,
    )


BUCKET = Way(bits_per_s=RATE_BIT_S, burst_bytes=BURST_BYTES, wire_gap_bytes=0, delay_ns=0)


def test_a_burst_passes_at_once_and_then_the_rate_holds() -> None:
    """A gigabit's worth of datagrams: 20 frames of tokens, and what comes in meanwhile."""
    left, counters = left_ns(BUCKET, stream(1.0, 1.0))
    assert counters.sent_packets == len(left) == 125
    gap_ns = FRAME_BYTES * NS_A_BYTE // 10  # at which they come
    for number, at_ns in enumerate(left):
        came_ns = number * gap_ns
        # The bucket was full at 0; so many bytes are beyond it.
        tokens_ns = ((number + 1) * FRAME_BYTES - BURST_BYTES) * NS_A_BYTE
        assert at_ns == max(came_ns, tokens_ns)
    assert left[21] == 21 * gap_ns  # at once
    assert left[-1] - left[-2] == FRAME_BYTES * NS_A_BYTE


def test_no_interval_has_more_than_the_burst_and_the_rate() -> None:
    left, counters = left_ns(BUCKET, stream(0.09, 200.0, "poisson"))
    assert counters.full_packets == 0
    assert len(left) > 2000
    # Each bound is met by some interval: else the bucket would be smaller than it says.
    most_bytes = 0.0
    tokens_since_ns = [
        at_ns - number * FRAME_BYTES * NS_A_BYTE for number, at_ns in enumerate(left)
    ]
    highest = tokens_since_ns[0]
    for since_ns in tokens_since_ns:
        highest = max(highest, since_ns)
        most_bytes = max(most_bytes, (highest - since_ns) / NS_A_BYTE + FRAME_BYTES)
    assert most_bytes <= BURST_BYTES + 1
    assert most_bytes > BURST_BYTES - FRAME_BYTES


def test_the_gap_is_what_the_link_says() -> None:
    for gap in (0, 24, 100):
        left, counters = left_ns(
            replace(BUCKET, wire_gap_bytes=gap, burst_bytes=1200), stream(1.0, 1.0)
        )
        assert left[-1] - left[-2] == (FRAME_BYTES + gap) * NS_A_BYTE
        assert counters.sent_bytes == counters.sent_packets * (FRAME_BYTES + gap)


def test_what_waits_for_tokens_is_in_the_queue() -> None:
    """Two frames have room: the one whose tokens are not all there, and one behind it."""
    _, counters = left_ns(replace(BUCKET, burst_bytes=1000, queue_bytes=2000), stream(1.0, 1.0))
    wire = Way(bits_per_s=RATE_BIT_S, wire_gap_bytes=0, delay_ns=0, queue_bytes=2000)
    _, beside = left_ns(wire, stream(1.0, 1.0))
    # A wire has one more under way; and the bucket has sent its first at once.
    assert counters.longest_bytes == beside.longest_bytes == 2000
    assert counters.full_packets == beside.full_packets > 100


@pytest.mark.parametrize("burst_kib", [0.0, 80.0])
def test_a_super_packet_leaves_a_bucket_as_one_and_a_wire_frame_by_frame(burst_kib: float) -> None:
    trace = native.Trace(1 << 16)
    payload_bytes = HEADER_BYTES + 256 * 4
    link = {"rate_gbit": 0.1, "burst_kib": burst_kib, "wire_gap_bytes": 0, "delay_us": 1}
    job = {"workers": 2, "steps": 1, "tensors": [{"elems": 100_000, "dtype": "int32"}]}
    scenario = make(
        {
            **{"job": [job], "topology": {"hosts": 2}, "limit_s": 10, "values": 256},
            **{"link": link, "host": {"trains": True}, "switch": {"trains": True}},
            "congestion": {"algorithm": "fixed"},  # which has no pace that cuts trains
        }
    )
    report = Simulation(scenario, 1, trace=trace).run()
    assert report.violations == []
    for way in ("h1>s1", "s1>h2"):
        port = trace.ports.index(way)
        times = [it.arrives_ns for it in trace.records() if it.port == port]
        together = [len(list(group)) for _, group in itertools.groupby(times)]
        # A worker sends 65000 bytes at once, at most; so much then comes to the switch at once.
        assert max(together) == (65000 // payload_bytes if burst_kib else 1)
