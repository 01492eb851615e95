"""One TCP flow: what it sends, how it finds losses, what it answers to marks."""

from __future__ import annotations

import itertools
import random
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from ina.extension import sim as native
from ina.sim.fabric import VirtualFabric
from ina.sim.traffic import AllToAllSpec, Flows, TcpSpec
from ina.sim.ways import Way
from tests.sim.flow_networks import FOREVER_NS, flows, one_flow, pair, plain_star

GBIT = 10**9
MSS = 1460
MS = 1_000_000
BOTH = pytest.mark.parametrize(
    "tcp", [TcpSpec(), TcpSpec(algorithm="dctcp")], ids=["cubic", "dctcp"]
)


def traced(fabric: VirtualFabric) -> native.Trace:
    """What happens to frames, from now on."""
    trace = native.Trace(1 << 16)
    fabric.network.set_trace(trace)
    return trace


@dataclass(frozen=True)
class Segment:
    """What a header says (scapy takes as long for one as a hundred take to be simulated)."""

    record: native.TraceRecord
    sequence: int
    acknowledged: int
    flags: int


PSH, ECE, CWR = 0x08, 0x40, 0x80


def sent(trace: native.Trace, port: str) -> list[Segment]:
    """What left by a port, whatever became of it."""
    number = trace.ports.index(port)
    return [
        Segment(record, *struct.unpack_from("!IIxB", record.head, 14 + 20 + 4))
        for record in trace.records()
        if record.port == number
    ]


def test_a_capture_has_whole_segments_of_all_the_data(tmp_path: Path) -> None:
    path = tmp_path / "flow.pcap"
    with VirtualFabric(pair(Way(bits_per_s=GBIT, loss=0.03)), seed=2) as fabric:
        trace = native.Trace(0, str(path))
        fabric.network.set_trace(trace)
        flow = one_flow(fabric, 200, TcpSpec(algorithm="dctcp"))
        fabric.network.run(FOREVER_NS)
        trace.flush()
        assert len(flow.completions()) == 1
    seen: dict[int, int] = {}
    first = None
    sacks = 0
    for frame in frames_of(path):
        rebuilt = Ether(bytes(frame))
        del rebuilt[IP].chksum, rebuilt[TCP].chksum
        assert bytes(Ether(bytes(rebuilt))) == bytes(frame)
        payload = frame[IP].len - 20 - 4 * frame[TCP].dataofs
        if payload:
            first = frame[TCP].seq if first is None else first
            seen[(frame[TCP].seq - first) % 2**32] = payload
            assert frame[IP].tos & 3 in (2, 3)
        else:
            assert frame[IP].tos & 3 == 0
        sacks += any(kind == "SAck" for kind, _ in frame[TCP].options)
    assert sacks > 0
    # All that arrived, without gaps; the first of all was not lost with this seed.
    assert sorted(seen) == list(range(0, 200 * 1024, MSS))
    assert sum(seen.values()) == 200 * 1024


def frames_of(path: Path) -> list[Ether]:
    """Of a pcap file of ours."""
    data = path.read_bytes()
    found, at = [], 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        found.append(Ether(data[at + 16 : at + 16 + length]))
        at += 16 + length
    return found


def test_a_flow_alone_takes_as_long_as_its_windows_say() -> None:
    # 10, 20, 40 segments a round trip of 10 ms: 70 need three.
    way = Way(bits_per_s=GBIT, delay_ns=5 * MS)
    with VirtualFabric(pair(way), seed=1) as fabric:
        flow = one_flow(fabric, 70 * MSS / 1024, TcpSpec(min_rto_ms=50))
        fabric.network.run(FOREVER_NS)
        [done] = flow.completions()
    assert done.segments == 70
    assert done.size_bytes == 70 * MSS
    wire_ns = (MSS + 54 + 24) * 8
    # Two round trips, then the last window's 40 segments, half a round trip away. In the second
    # and third, an acknowledgement of two segments lets four go.
    least_ns = 25 * MS + 40 * wire_ns
    assert least_ns <= (done.duration_ns or 0) <= least_ns + 12 * wire_ns
    assert done.ideal_ns == 5 * MS + 70 * wire_ns


@BOTH
def test_one_loss_is_mended_without_a_timeout(tcp: TcpSpec) -> None:
    way = Way(bits_per_s=GBIT, delay_ns=MS)
    with VirtualFabric(pair(way), seed=1) as fabric:
        flow = one_flow(fabric, 2000, tcp)
        fabric.network.run(15 * MS)
        drop_one(fabric, way)
        sender = flow.native.sender(0)
        assert sender is not None
        window_bytes = 0
        while not sender.recoveries:
            window_bytes = sender.window_bytes
            fabric.network.run(fabric.network.now_ns + 1000)
        assert (sender.recoveries, sender.retransmissions, sender.timeouts) == (1, 1, 0)
        kept = 0.7 if tcp.algorithm == "cubic" else 0.5
        assert sender.threshold_bytes == pytest.approx(kept * window_bytes, rel=0.01)
        fabric.network.run(FOREVER_NS)
        [done] = flow.completions()
    assert done.done_ns is not None
    assert done.timeouts == 0


def drop_one(fabric: VirtualFabric, way: Way) -> None:
    """The next segment from ``h1`` is lost on its way."""
    lost = fabric.ports["h1>h2"].counters.lost_packets
    fabric.set_way("h1>h2", Way(bits_per_s=way.bits_per_s, delay_ns=way.delay_ns, loss=1.0))
    while fabric.ports["h1>h2"].counters.lost_packets == lost:
        fabric.network.run(fabric.network.now_ns + 1000)
    fabric.set_way("h1>h2", way)
    assert fabric.ports["h1>h2"].counters.lost_packets == lost + 1


def test_a_dead_link_is_tried_at_twice_the_distance_each_time_and_given_up() -> None:
    with VirtualFabric(pair(Way(bits_per_s=GBIT)), seed=1) as fabric:
        trace = traced(fabric)
        fabric.ports["h1>h2"].up = False
        flow = one_flow(fabric, 100, TcpSpec(min_rto_ms=10))
        fabric.network.run(FOREVER_NS)
        [given_up] = flow.completions()
        times_ns = [segment.record.sent_ns for segment in sent(trace, "h1>h2")]
    assert given_up.done_ns is None
    assert given_up.slowdown is None
    assert given_up.timeouts == 16
    # Ten at once, then one each time: one segment a window, until 60 s are between them.
    assert len(times_ns) == 10 + 15
    gaps_ns = [after - before for before, after in itertools.pairwise(times_ns[9:])]
    expected_ns = [min(10 * MS << doublings, 60_000 * MS) for doublings in range(15)]
    # The first timeout counts from the first of the ten.
    assert gaps_ns[1:] == expected_ns[1:]
    assert flow.active == 0


def test_a_link_that_comes_back_is_used_again_after_the_timeout() -> None:
    with VirtualFabric(pair(Way(bits_per_s=GBIT)), seed=1) as fabric:
        fabric.ports["h1>h2"].up = False
        flow = one_flow(fabric, 100, TcpSpec(min_rto_ms=10))
        fabric.network.run(25 * MS)
        fabric.ports["h1>h2"].up = True
        fabric.network.run(FOREVER_NS)
        [done] = flow.completions()
    # Tried at 10 and 30 ms.
    assert done.timeouts == 2
    assert 30 * MS < (done.done_ns or 0) < 35 * MS


def test_acknowledgements_come_for_every_second_segment_and_after_a_delay() -> None:
    with VirtualFabric(pair(Way(bits_per_s=GBIT, delay_ns=MS)), seed=1) as fabric:
        trace = traced(fabric)
        one_flow(fabric, 13 * MSS / 1024, TcpSpec(initial_window_segments=3, delayed_ack_us=700))
        fabric.network.run(FOREVER_NS)
        acks = sent(trace, "h2>h1")
        data = sent(trace, "h1>h2")
    first = data[0].sequence
    told = [(ack.acknowledged - first) % 2**32 // MSS for ack in acks]
    # The third segment of the first three waits alone, and the last has PSH.
    assert told[:2] == [2, 3]
    assert told[-1] == 13
    assert [bool(segment.flags & PSH) for segment in data] == [False] * 12 + [True]
    arrived_ns = data[2].record.arrives_ns
    ack_wire_ns = (54 + 24) * 8
    assert acks[1].record.sent_ns == arrived_ns + 700_000 + ack_wire_ns


def test_cubic_answers_marks_once_a_round_trip_and_dctcp_to_their_share() -> None:
    def run(tcp: TcpSpec) -> tuple[Flows, native.PortCounters, native.Trace]:
        way = Way(bits_per_s=GBIT, delay_ns=50_000, marking="step", mark_bytes=30_000)
        with VirtualFabric(plain_star(2, Way(bits_per_s=10 * GBIT), way), seed=1) as fabric:
            trace = traced(fabric)
            flow = one_flow(fabric, 4000, tcp)
            fabric.network.run(FOREVER_NS)
            flow.completions()
            return flow, fabric.ports["s1>h2"].counters, trace

    for tcp in (TcpSpec(ecn=True), TcpSpec(algorithm="dctcp")):
        flow, counters, trace = run(tcp)
        [done] = flow.completions()
        assert done.retransmissions == 0
        assert counters.marked_packets == done.marked_packets > 0
        echoes = sum(bool(ack.flags & ECE) for ack in sent(trace, "h2>s1"))
        reductions = sum(bool(segment.flags & CWR) for segment in sent(trace, "h1>s1"))
        assert 0 < reductions < echoes
        if tcp.algorithm == "cubic":
            # It goes on to echo until the sender has answered, so more than was marked.
            assert echoes > done.marked_packets / 2
    flow, counters, _ = run(TcpSpec())
    assert counters.marked_packets == 0  # it is not capable
    assert flow.completions()[0].marked_packets == 0


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_all_arrives_over_links_that_do_everything_wrong(tcp: TcpSpec, seed: int) -> None:
    draw = random.Random(seed)
    way = Way(
        bits_per_s=GBIT,
        delay_ns=20_000,
        jitter_ns=draw.choice([0, 30_000]),
        loss=draw.uniform(0, 0.1),
        duplication=0.05,
        reordering=0.05,
        reordering_ns=200_000,
        corruption=0.02,
        frame_check=False,
        queue_bytes=60_000,
        marking="red",
        red_least_bytes=10_000,
        red_most_bytes=50_000,
    )
    with VirtualFabric(plain_star(4, way), seed=seed) as fabric:
        [all_to_all] = flows(fabric, [AllToAllSpec(size_kib=30, rounds=2, tcp=tcp)])
        fabric.network.run(FOREVER_NS)
        done = all_to_all.completions()
        ports = [port.counters for port in fabric.ports.values()]
    assert len(done) == 2 * 4 * 3
    assert all(flow.done_ns is not None for flow in done)
    assert sum(flow.retransmissions for flow in done) > 0
    assert sum(port.corrupted_packets for port in ports) == 0  # none was dropped by a frame check
    assert all_to_all.active == 0
