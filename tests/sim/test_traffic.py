"""Traffic as scenarios describe it: when flows begin, how long they are, what is told of them."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from ina.extension import sim as native
from ina.fabric.shapes import fat_tree, leaf_spine, star
from ina.sim.errors import ScenarioError
from ina.sim.fabric import VirtualFabric
from ina.sim.flows import ideal_ns, path, percentile, slowdowns
from ina.sim.sizes import NAMED, mean_bytes
from ina.sim.topology import laid
from ina.sim.traffic import (
    AllToAllSpec,
    IncastSpec,
    PoissonSpec,
    TcpSpec,
    TrafficSpec,
    UdpSpec,
    UdpStream,
    add_traffic,
    check_traffic,
)
from ina.sim.ways import Way
from tests.sim.flow_networks import FOREVER_NS, flows, pair, plain_star

GBIT = 10**9
MS = 1_000_000
FAST = Way(bits_per_s=10 * GBIT, delay_ns=1000)


def test_poisson_flows_load_the_cables_as_asked() -> None:
    with VirtualFabric(plain_star(8, FAST), seed=1) as fabric:
        spec = PoissonSpec(load=0.4, sizes="fixed", size_kib=20, stop_ms=50)
        [running] = flows(fabric, [spec])
        fabric.network.run(FOREVER_NS)
        done = running.completions()
        sent_bytes = sum(fabric.ports[f"h{i + 1}>s1"].counters.sent_bytes for i in range(8))
        assert running.active == 0
    # Some 8,000 flows; acknowledgements add 3 % of the bytes.
    assert sent_bytes * 8 / (8 * 10 * 50 * MS) == pytest.approx(0.4, rel=0.05)
    starts = np.sort([flow.started_ns for flow in done])
    gaps = np.diff(starts) / np.diff(starts).mean()
    # Exponential: its deviation is its mean, and so many are below it.
    assert gaps.std() == pytest.approx(1, rel=0.05)
    assert (gaps < 1).mean() == pytest.approx(1 - math.exp(-1), rel=0.03)
    pairs = Counter((flow.source, flow.destination) for flow in done)
    assert len(pairs) == 8 * 7
    expected = len(done) / 56
    chi_square = sum((count - expected) ** 2 / expected for count in pairs.values())
    assert chi_square < 98  # 55 degrees of freedom: so much, or more, once in 5,000
    assert min(flow.slowdown or 0 for flow in done) >= 1


@pytest.mark.parametrize("sizes", ["web-search", "data-mining"])
def test_sizes_are_those_of_the_distribution(sizes: str) -> None:
    points = NAMED[sizes]
    with VirtualFabric(pair(Way(bits_per_s=10**15, delay_ns=0)), seed=4) as fabric:
        # One link of a petabit a second: flows are over as soon as they begin.
        traffic = native.add_traffic(
            fabric.network,
            "sizes",
            native.TrafficConfig(
                tcp=native.TcpConfig(initial_window_segments=1000, mss_bytes=60_000),
                mean_gap_ns=1e6,
                most_flows=600,
            ),
            points,
            [fabric.hosts["h1"]],
            [fabric.hosts["h2"]],
        )
        fabric.network.run(FOREVER_NS)
        drawn = np.array([record.bytes for record in traffic.take_records()])
    assert len(drawn) == 600
    for size_bytes, share in points:
        spread = math.sqrt(max(share * (1 - share), 1e-3) / len(drawn))
        assert abs((drawn <= size_bytes).mean() - share) < 4 * spread


def test_the_distributions_have_the_means_that_others_use() -> None:
    # In segments, as scripts of simulations with ns-2 have them.
    assert mean_bytes(NAMED["web-search"]) / 1460 == pytest.approx(1138, rel=0.01)
    assert mean_bytes(NAMED["data-mining"]) / 1460 == pytest.approx(5117, rel=0.001)


@pytest.mark.parametrize("period_ms", [0.0, 20.0])
def test_an_incast_begins_at_once_in_each_round(period_ms: float) -> None:
    with VirtualFabric(plain_star(9, FAST), seed=1) as fabric:
        spec = IncastSpec(
            destinations=["h9"], size_kib=32, rounds=3, period_ms=period_ms, start_ms=1
        )
        [running] = flows(fabric, [spec])
        fabric.network.run(FOREVER_NS)
        done = running.completions()
    assert len(done) == 3 * 8
    starts = sorted({flow.started_ns for flow in done})
    ends = [max(flow.done_ns or 0 for flow in done if flow.started_ns == at) for at in starts]
    assert starts[0] == MS
    if period_ms:
        assert starts == [MS, 21 * MS, 41 * MS]
    else:
        # It takes half a round trip until the sender knows that the last byte is there.
        assert all(0 < after - end < 5_000 for end, after in zip(ends, starts[1:], strict=False))
    # Eight times 32 KiB through one cable take at least so long.
    wire_ns = 8 * (32 * 1024 + 23 * 78) * 8 / 10
    assert all(end - start > wire_ns for start, end in zip(starts, ends, strict=True))


def test_all_to_all_is_every_pair_once() -> None:
    with VirtualFabric(plain_star(5, FAST), seed=1) as fabric:
        [running] = flows(fabric, [AllToAllSpec(size_kib=10)])
        fabric.network.run(FOREVER_NS)
        done = running.completions()
    assert Counter((flow.source, flow.destination) for flow in done) == Counter(
        (f"h{one}", f"h{other}") for one in range(1, 6) for other in range(1, 6) if one != other
    )


def test_datagrams_come_at_their_rate_whatever_is_lost() -> None:
    way = Way(bits_per_s=GBIT, delay_ns=7000, loss=0.1)
    with VirtualFabric(pair(way), seed=1) as fabric:
        spec = UdpSpec(source="h1", destination="h2", rate_gbit=0.3, stop_ms=100)
        [stream] = add_traffic(fabric, [spec])
        assert isinstance(stream, UdpStream)
        fabric.network.run(FOREVER_NS)
        counters, port = stream.counters, fabric.ports["h1>h2"].counters
    wire_bytes = 1472 + 42 + 24
    assert counters.sent_packets == math.ceil(0.3 * 100 * MS / (wire_bytes * 8))
    assert counters.received_packets == counters.sent_packets - port.lost_packets
    assert counters.received_bytes == counters.received_packets * 1472
    assert port.lost_packets == pytest.approx(counters.sent_packets / 10, rel=0.2)
    # Evenly spaced, none waits for another.
    delay_ns = 7000 + wire_bytes * 8
    assert (counters.delay_ns, counters.longest_delay_ns) == (
        counters.received_packets * delay_ns,
        delay_ns,
    )


def test_a_datagram_that_was_corrupted_is_dropped_where_it_arrives() -> None:
    way = Way(bits_per_s=GBIT, delay_ns=1000, corruption=0.2, frame_check=False)
    with VirtualFabric(pair(way), seed=1) as fabric:
        spec = UdpSpec(source="h1", destination="h2", rate_gbit=0.1, payload_bytes=64, stop_ms=50)
        [stream] = add_traffic(fabric, [spec])
        assert isinstance(stream, UdpStream)
        fabric.network.run(FOREVER_NS)
        counters = stream.counters
        arrived = fabric.ports["h1>h2"].counters.arrived_packets
    assert arrived == counters.sent_packets
    # Of the others, what was flipped is in the Ethernet header, whose check this link lacks.
    assert 0.78 < counters.received_packets / arrived < 0.85
    assert counters.longest_delay_ns == 1000 + (64 + 66) * 8


def test_flows_pass_p4_switches_and_plain_ones() -> None:
    topology = laid(leaf_spine(2, 2, 2), FAST)
    with VirtualFabric(topology, seed=1) as fabric:
        for name, switch in fabric.switches.items():
            switch.insert(fabric.forwarding(name))
        [running] = flows(fabric, [AllToAllSpec(size_kib=100, tcp=TcpSpec(algorithm="dctcp"))])
        fabric.network.run(FOREVER_NS)
        done = running.completions()
        assert len(done) == 4 * 3
        assert all(flow.done_ns is not None for flow in done)
        assert sum(switch.node.counters.sent_packets for switch in fabric.switches.values()) > 1000
    assert len(path(topology, "h1", "h2")) == 2
    assert len(path(topology, "h1", "h4")) == 4


def test_the_least_time_is_that_of_frames_that_nothing_stops() -> None:
    fast, slow = Way(bits_per_s=10 * GBIT, delay_ns=500), Way(bits_per_s=GBIT, delay_ns=700)
    tcp = TcpSpec(initial_window_segments=1000)
    for ways, there, back in (("fast first", fast, slow), ("slow first", slow, fast)):
        for segments in (1, 2, 30):
            size_bytes = segments * 1460 - 1000
            with VirtualFabric(plain_star(2, there, back), seed=1) as fabric:
                [running] = flows(
                    fabric,
                    [
                        IncastSpec(
                            sources=["h1"], destinations=["h2"], size_kib=size_bytes / 1024, tcp=tcp
                        )
                    ],
                )
                fabric.network.run(FOREVER_NS)
                [done] = running.completions()
            assert done.duration_ns == pytest.approx(done.ideal_ns, abs=2), (ways, segments)


def test_slowdowns_are_told_by_size() -> None:
    with VirtualFabric(plain_star(6, FAST), seed=2) as fabric:
        spec = PoissonSpec(load=0.5, most_flows=100)
        [running] = flows(fabric, [spec])
        fabric.network.run(FOREVER_NS)
        done = running.completions()
    rows = slowdowns(done, (10_000, 1_000_000))
    assert [(row.least_bytes, row.most_bytes) for row in rows] == [
        (0, 10_000),
        (10_000, 1_000_000),
        (1_000_000, None),
    ]
    assert sum(row.flows for row in rows) == 100
    for row in rows:
        assert 1 <= row.p50 <= row.p95 <= row.p99
        assert row.given_up == 0
    assert [percentile([1.0, 2.0, 3.0, 4.0], percent) for percent in (0, 25, 26, 50, 99, 100)] == [
        1,
        1,
        2,
        2,
        4,
        4,
    ]
    assert math.isnan(percentile([], 50))
    assert ideal_ns([Way(bits_per_s=0, delay_ns=0)], 1000, 1460, 78) == 1


def test_a_file_may_hold_each_kind() -> None:
    documents: list[dict[str, Any]] = [
        {"kind": "poisson", "load": 0.3, "sizes": "data-mining", "tcp": {"algorithm": "dctcp"}},
        {"kind": "incast", "destinations": ["h1"], "rounds": 5},
        {"kind": "all-to-all", "size_kib": 4.5},
        {"kind": "udp", "source": "h1", "destination": "h2", "rate_gbit": 1.5},
    ]
    specs = msgspec.convert(documents, list[TrafficSpec])
    assert [type(spec) for spec in specs] == [PoissonSpec, IncastSpec, AllToAllSpec, UdpSpec]
    check_traffic(laid(star(2)), specs)
    with pytest.raises(msgspec.ValidationError, match="unknown field `rounds`"):
        msgspec.convert([{"kind": "poisson", "load": 0.3, "rounds": 3}], list[TrafficSpec])
    with pytest.raises(msgspec.ValidationError, match=r"load = -1: .* - at `\$\[0\]`"):
        msgspec.convert([{"kind": "poisson", "load": -1}], list[TrafficSpec])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IncastSpec(), "destinations: an incast wants one"),
        (lambda: PoissonSpec(load=float("nan")), "load = nan"),
        (lambda: PoissonSpec(load=1, stop_ms=-1), "stop_ms = -1"),
        (lambda: AllToAllSpec(rounds=0), "rounds = 0"),
        (lambda: TcpSpec(dscp=64), "dscp = 64"),
        (lambda: TcpSpec(mss_bytes=0), "mss_bytes = 0"),
        (lambda: TcpSpec(initial_window_segments=0), "initial_window_segments = 0"),
        (lambda: TcpSpec(receive_window_kib=17_000), "receive_window_kib = 17000"),
        (lambda: TcpSpec(min_rto_ms=1, delayed_ack_us=2000), "less than min_rto_ms"),
        (
            lambda: UdpSpec(source="h1", destination="h2", rate_gbit=1, payload_bytes=8),
            "payload_bytes = 8",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        make()


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([AllToAllSpec(), AllToAllSpec()], "'all-to-all': the name is there twice"),
        ([AllToAllSpec(sources=["h3"])], "there is no host 'h3'"),
        ([IncastSpec(sources=["h1"], destinations=["h1"])], "h1 is alone in it"),
        ([UdpSpec(source="h1", destination="h1", rate_gbit=1)], "h1 is alone in it"),
    ],
)
def test_hosts_and_names_are_checked(specs: list[TrafficSpec], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        check_traffic(laid(star(2)), specs)


def test_a_load_of_cables_without_a_rate_is_refused() -> None:
    with (
        VirtualFabric(pair(Way(bits_per_s=0)), seed=1) as fabric,
        pytest.raises(ScenarioError, match="no rate"),
    ):
        add_traffic(fabric, [PoissonSpec(load=0.5)])


@pytest.mark.parametrize("k", [6, pytest.param(16, marks=pytest.mark.long)])
def test_a_fat_tree_carries_flows_between_all_hosts(k: int) -> None:
    way = Way(bits_per_s=10 * GBIT, marking="step", mark_bytes=100_000)
    topology = laid(fat_tree(k), way, edge="plain")
    assert len(topology.hosts) == k**3 // 4
    with VirtualFabric(topology, seed=1) as fabric:
        spec = PoissonSpec(load=0.3, sizes="fixed", size_kib=15, most_flows=5 * k**3)
        [running] = flows(fabric, [spec])
        fabric.network.run(FOREVER_NS)
        done = running.completions()
        assert len(done) == 5 * k**3
        assert all(flow.done_ns is not None for flow in done)
        assert sum(bridge.unrouted_packets for bridge in fabric.bridges.values()) == 0
        assert {host for flow in done for host in (flow.source, flow.destination)} == set(
            topology.hosts
        )
        # Flows spread over the ways that are as short as each other.
        up = [
            port.counters.sent_bytes
            for name, port in fabric.ports.items()
            if name.startswith("e") and ">a" in name
        ]
    assert len(up) == k**3 // 4
    assert np.std(up) < 0.5 * np.mean(up)
