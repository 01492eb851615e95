"""Ordinary traffic crosses the compiled program as it would cross any switch."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.layers.inet import IP, UDP, IPOption_Router_Alert
from scapy.layers.l2 import ARP, Ether

from ina.p4 import names
from ina.protocol.spec import UDP_PORT
from ina.switch.match import Exact, Lpm
from tests.worlds.virtual.pool import Bench, checksum_is_right, header, ip, mac

ROUTER, HOST_A, HOST_B = "02:aa:00:00:00:01", "02:aa:00:00:00:0a", "02:aa:00:00:00:0b"


def ether(dst: str, src: str = HOST_A, **fields: Any) -> Any:
    """An Ethernet header; scapy's own types do not know what follows it."""
    return Ether(src=src, dst=dst, **fields)


@pytest.fixture(scope="module")
def bench() -> Bench:
    bench = Bench(1)
    pipeline = bench.pipeline
    pipeline.insert(names.DMAC, [Exact(mac(HOST_A))], names.FORWARD, [1])
    pipeline.insert(names.DMAC, [Exact(mac(HOST_B))], names.FORWARD, [2])
    pipeline.insert(names.DMAC, [Exact(mac("01:80:c2:00:00:0e"))], names.SEND_TO_CONTROLLER, [])
    pipeline.set_default(names.DMAC, names.FLOOD, [1])
    pipeline.set_multicast(1, [(1, 1), (2, 1), (3, 1)])
    pipeline.insert(names.ROUTER_MACS, [Exact(mac(ROUTER))], names.NO_ACTION, [])
    for network, bits, port in (("10.1.0.0", 16, 3), ("10.1.2.0", 24, 4)):
        pipeline.insert(
            names.IPV4_LPM,
            [Lpm(ip(network), bits)],
            names.ROUTE,
            [port, mac(ROUTER), mac(HOST_B)],
        )
    return bench


def test_known_addresses_get_the_frame_as_it_is(bench: Bench) -> None:
    packets = [
        ether(HOST_B) / IP(dst="10.1.2.3") / UDP(dport=53) / b"query",
        ether(HOST_B, type=0x86DD) / bytes(40),
        ether(HOST_B, type=0x88B5),
        ether(HOST_B) / IP(options=[IPOption_Router_Alert()]) / b"x",
        ether(HOST_B) / IP(chksum=1) / b"not ours to judge",
        ether(HOST_B, type=0x0800) / b"too short for IPv4",
    ]
    for packet in packets:
        assert bench.send(1, packet) == [(2, bytes(packet))]


def test_results_of_other_switches_pass(bench: Bench) -> None:
    packet = ether(HOST_B) / IP() / UDP(sport=UDP_PORT, dport=4000) / bytes(24)
    assert bench.send(1, packet) == [(2, bytes(packet))]


def test_unknown_addresses_are_flooded_but_not_back(bench: Bench) -> None:
    packet = bytes(ether("ff:ff:ff:ff:ff:ff") / ARP())
    assert bench.send(1, packet) == [(2, packet), (3, packet)]
    assert bench.send(3, packet) == [(1, packet), (2, packet)]


@pytest.mark.parametrize("ttl", [2, 64, 255])
@pytest.mark.parametrize(("destination", "port"), [("10.1.9.9", 3), ("10.1.2.9", 4)])
@pytest.mark.parametrize("options", [[], [IPOption_Router_Alert()]])
def test_routing(bench: Bench, ttl: int, destination: str, port: int, options: list) -> None:  # type: ignore[type-arg]
    for ident in range(0, 65536, 1021):  # checksums of all sizes, with and without carries
        sent = ether(ROUTER)
        sent /= IP(src="10.5.6.7", dst=destination, ttl=ttl, id=ident, options=options) / b"data"
        ((out_port, frame),) = bench.send(1, sent)
        received = Ether(frame)
        assert out_port == port
        assert (received.src, received.dst) == (ROUTER, HOST_B)
        assert (received[IP].ttl, received[IP].id) == (ttl - 1, ident)
        assert bytes(received[IP].payload) == b"data"
        assert checksum_is_right(frame)


@pytest.mark.parametrize(
    "datagram",
    [
        IP(dst="10.1.2.3", ttl=1),
        IP(dst="10.1.2.3", ttl=0),
        IP(dst="10.1.2.3", chksum=0xBEEF),
        IP(dst="192.168.0.1"),
        IP(dst="10.1.2.3", version=5),
        IP(dst="10.1.2.3", ihl=4),
    ],
)
def test_what_cannot_be_routed_is_dropped(bench: Bench, datagram: IP) -> None:
    assert bench.send(1, ether(ROUTER) / datagram) == []


@pytest.mark.parametrize(("ecn", "marked"), [(0, 0), (1, 3), (2, 3), (3, 3)])
def test_a_long_queue_marks_who_understands_it(bench: Bench, ecn: int, marked: int) -> None:
    bench.pipeline.set_default(names.ECN_THRESHOLD, names.MARK_ABOVE, [0])
    to_zero = Ether(bytes(ether(HOST_B) / IP(tos=0x40 | ecn, id=0) / b"data"))[IP].chksum
    for ident in (*range(0, 65536, 1021), to_zero):  # a checksum of 0 carries twice
        frame = bytes(ether(HOST_B) / IP(tos=0x40 | ecn, id=ident) / b"data")
        (_, first), (_, second) = bench.pipeline.process_batch([(1, frame), (1, frame)])
        assert first == frame
        assert Ether(second)[IP].tos == 0x40 | marked
        assert checksum_is_right(second)
    bench.pipeline.set_default(names.ECN_THRESHOLD, None)


def test_packet_out_leaves_as_it_is_even_if_it_looks_like_a_contribution(bench: Bench) -> None:
    frame = bytes(bench.workers[0].packet(header()))
    out = (5 << 7).to_bytes(2, "big") + frame
    assert bench.send(names.CPU_PORT, out) == [(5, frame)]


def test_packet_in_says_where_it_came_from(bench: Bench) -> None:
    frame = bytes(ether("01:80:c2:00:00:0e", type=0x88CC) / b"lldp")
    assert bench.send(3, frame) == [(names.CPU_PORT, (3 << 7).to_bytes(2, "big") + frame)]


def test_direct_counters_count_packets_and_bytes() -> None:
    bench = Bench(1)
    handle = bench.pipeline.insert(names.DMAC, [Exact(mac(HOST_B))], names.FORWARD, [2])
    bench.send(1, ether(HOST_B) / bytes(46))
    bench.send(1, ether(HOST_B) / bytes(86))
    assert bench.pipeline.direct_counter(names.DMAC, handle) == (2, 60 + 100)
