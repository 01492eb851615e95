"""Frames to packets of ina: every link type, padding, super-frames, cut captures, bad packets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Dot1Q, Ether

from ina.pcap import CapturedFrame, Packet, packets_of
from ina.protocol.codec import Header, encode
from ina.protocol.spec import HEADER_BYTES
from tests.protocol.samples import sample_packets

ETHERNET, RAW, SLL, IPV4, SLL2 = 1, 101, 113, 228, 276
PAYLOAD = encode(Header(job=3, worker=1, seq=8, value_count=2), [5, -6])
ETHER: Any = Ether()
SENT: Any = IP(src="10.0.0.1", dst="10.0.0.254") / UDP(sport=1024, dport=17760)


def captured(data: bytes, link_type: int = ETHERNET, wire_bytes: int = 0) -> CapturedFrame:
    return CapturedFrame(1, 0, link_type, data, wire_bytes or len(data), "test")


def read(packet: object, link_type: int = ETHERNET) -> list[Packet]:
    return list(packets_of(captured(bytes(packet), link_type)))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("link_type", "link"),
    [
        (ETHERNET, Ether()),
        (ETHERNET, Ether() / Dot1Q(vlan=7)),
        (ETHERNET, Ether(type=0x88A8) / Dot1Q(vlan=1) / Dot1Q(vlan=2)),
        (SLL, CookedLinux(proto=0x0800)),
        (SLL2, CookedLinuxV2(proto=0x0800)),
        (RAW, None),
        (IPV4, None),
    ],
)
def test_link_types(link_type: int, link: Ether | None) -> None:
    packet = SENT / PAYLOAD if link is None else link / SENT / PAYLOAD
    (found,) = read(packet, link_type)
    assert found.header is not None
    assert found.values is not None
    assert (found.header.job, found.values.tolist()) == (3, [5, -6])
    sent = found.datagram
    assert (str(sent.src), sent.src_port, sent.dst_port) == ("10.0.0.1", 1024, 17760)


@pytest.mark.parametrize(
    "packet",
    [
        Ether() / ARP(),
        Ether() / IPv6() / UDP(dport=17760) / PAYLOAD,
        ETHER / IP(proto=6) / PAYLOAD,
        Ether() / IP() / UDP(sport=53, dport=53) / PAYLOAD,
        Ether() / IP(frag=7) / UDP(dport=17760) / PAYLOAD,
        Ether(b"\x02" * 14),
    ],
)
def test_other_traffic_is_not_ours(packet: Ether) -> None:
    assert read(packet) == []


def test_another_udp_port_and_the_padding_of_short_frames() -> None:
    data = bytes(Ether() / IP() / UDP(sport=40000, dport=9) / encode(Header())) + b"\0" * 9
    assert list(packets_of(captured(data))) == []
    (found,) = packets_of(captured(data), {40000})
    assert found.problem == ""
    assert found.header == Header()


def test_a_super_frame_holds_many_packets() -> None:
    payloads = [encode(Header(seq=i, value_count=2), [i, i]) for i in range(5)]
    payloads.append(encode(Header(seq=5)))
    found = read(ETHER / SENT / b"".join(payloads))
    assert [p.header.seq for p in found if p.header] == list(range(6))
    assert not any(p.problem for p in found)


def test_a_snap_length_leaves_the_header() -> None:
    whole = bytes(ETHER / SENT / PAYLOAD)
    (found,) = packets_of(captured(whole[: 42 + HEADER_BYTES + 3], wire_bytes=len(whole)))
    assert (found.cut, found.problem, found.values) == (True, "", None)
    assert found.header is not None
    (found,) = packets_of(captured(whole[: 42 + 10], wire_bytes=len(whole)))
    assert (found.cut, found.header) == (True, None)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (PAYLOAD[: HEADER_BYTES - 1], "shorter"),
        (PAYLOAD[:-1], "39 bytes, 2 values make 40"),
        (PAYLOAD + b"\0", "41 bytes, 2 values make 40"),
        (b"\x11" + PAYLOAD[1:], "version 1"),
        (b"\x5f" + PAYLOAD[1:], "kind 15"),
        (b"", "shorter"),
    ],
)
def test_what_is_wrong_is_said(payload: bytes, said: str) -> None:
    (found,) = read(ETHER / SENT / payload)
    assert said in found.problem
    assert not found.cut


def test_the_same_as_the_codec() -> None:
    for header, values, payload in sample_packets(50, seed=4):
        (found,) = read(ETHER / SENT / payload)
        assert found.header == header
        assert found.values is not None
        assert found.values.tolist() == values


@given(
    data=st.binary(max_size=120),
    link_type=st.sampled_from([ETHERNET, RAW, SLL, IPV4, SLL2, 147]),
    more_bytes=st.integers(0, 40),
    cut=st.integers(0, 70),
)
def test_noise_is_never_read_past_its_end(
    data: bytes, link_type: int, more_bytes: int, cut: int
) -> None:
    for noise in (data, bytes(ETHER / SENT / data), bytes(Ether() / SENT / PAYLOAD)[:cut]):
        frame = captured(noise, link_type, len(noise) + more_bytes)
        for packet in packets_of(frame):
            assert (packet.header is None) <= bool(packet.problem)
