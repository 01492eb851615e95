"""RoCEv2 frames: scapy, which others wrote, reads and writes the same; ICRC notices each bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from ina.protocol.bth import BTH_BYTES, UC_SENDS, Bth, Opcode, decode_bth, encode_bth
from ina.protocol.codec import Header, decode, encode
from ina.protocol.errors import (
    FieldRangeError,
    ForeignPacketError,
    IcrcError,
    OverlongPacketError,
    PacketError,
    TruncatedPacketError,
)
from ina.protocol.icrc import ICRC_BYTES, MASKED_OFFSETS, icrc, without_icrc
from ina.protocol.roce import (
    RoceFrame,
    decode_frame,
    encode_frame,
    ipv4_checksum,
    opcode_of,
    psn_of,
)

ETHERNET_BYTES, IPV4_END = 14, 34

bths = st.builds(
    Bth,
    opcode=st.sampled_from(Opcode) | st.integers(0, 255),
    dest_qp=st.integers(0, (1 << 24) - 1),
    psn=st.integers(0, (1 << 24) - 1),
    solicited=st.integers(0, 1),
    migrated=st.integers(0, 1),
    pad_bytes=st.integers(0, 3),
    version=st.integers(0, 15),
    pkey=st.integers(0, 0xFFFF),
    congestion=st.integers(0, 255),
    ack_request=st.integers(0, 1),
    reserved=st.integers(0, 127),
)
words = st.integers(0, 1100).flatmap(
    lambda count: st.binary(min_size=4 * min(count, 8), max_size=4 * min(count, 8)).map(
        lambda some: (some * (count // 8 + 1))[: 4 * count] or some
    )
)
frames = st.builds(
    RoceFrame,
    bth=bths,
    payload=words,
    src_ipv4=st.integers(0, (1 << 32) - 1),
    dst_ipv4=st.integers(0, (1 << 32) - 1),
    src_udp=st.integers(0, 0xFFFF),
    src_mac=st.integers(0, (1 << 48) - 1),
    dst_mac=st.integers(0, (1 << 48) - 1),
    tos=st.integers(0, 255),
    ttl=st.integers(0, 255),
    identification=st.integers(0, 0xFFFF),
    flags=st.sampled_from((0, 0x4000)),
)


def a_frame(count: int = 3) -> RoceFrame:
    header = Header(job=3, seq=77, value_count=count)
    bth = Bth(Opcode.UC_SEND_ONLY, 0x800301, psn_of(77))
    return RoceFrame(bth, encode(header, range(count)), 0x0A000001, 0x0A0000FE, 49152)


def as_scapy_has_it(frame: RoceFrame) -> bytes:
    """The frame, written by scapy alone."""
    bth = frame.bth
    ethernet = Ether(
        dst=frame.dst_mac.to_bytes(6, "big").hex(":"), src=frame.src_mac.to_bytes(6, "big").hex(":")
    )
    ipv4 = IP(
        src=".".join(map(str, frame.src_ipv4.to_bytes(4, "big"))),
        dst=".".join(map(str, frame.dst_ipv4.to_bytes(4, "big"))),
        tos=frame.tos,
        ttl=frame.ttl,
        id=frame.identification,
        flags=frame.flags >> 13,
    )
    said = BTH(
        opcode=bth.opcode,
        solicited=bth.solicited,
        migreq=bth.migrated,
        padcount=bth.pad_bytes,
        version=bth.version,
        pkey=bth.pkey,
        fecn=bth.congestion >> 7,
        becn=bth.congestion >> 6 & 1,
        resv6=bth.congestion & 63,
        dqpn=bth.dest_qp,
        ackreq=bth.ack_request,
        resv7=bth.reserved,
        psn=bth.psn,
    )
    udp = UDP(sport=frame.src_udp, dport=4791, chksum=0)
    return bytes(ethernet / ipv4 / udp / said / Raw(frame.payload))


@given(frames)
@settings(max_examples=120)
def test_scapy_writes_the_same_bytes(frame: RoceFrame) -> None:
    wire = encode_frame(frame)
    assert wire == as_scapy_has_it(frame)
    assert decode_frame(wire) == frame


@pytest.mark.parametrize("count", [0, 56, 248, 504, 1016])
@pytest.mark.parametrize("opcode", UC_SENDS)
def test_scapy_reads_each_build(count: int, opcode: Opcode) -> None:
    frame = a_frame(count)
    frame = replace(frame, bth=replace(frame.bth, opcode=opcode))
    wire = encode_frame(frame)
    bth = Ether(wire)[BTH]
    assert (bth.opcode, bth.dqpn, bth.psn, bth.migreq) == (opcode, 0x800301, 77, 1)
    assert (
        bth.icrc.to_bytes(4, "big")
        == wire[-ICRC_BYTES:]
        == bth.compute_icrc(bytes(bth)[:-ICRC_BYTES])
    )
    header, values = decode(decode_frame(wire).payload)
    assert (header.seq, values.tolist()) == (77, list(range(count)))


@given(bths)
@settings(max_examples=60)
def test_a_bth_comes_back(bth: Bth) -> None:
    wire = encode_bth(bth)
    assert len(wire) == BTH_BYTES
    assert decode_bth(wire + b"more") == bth


@given(st.integers(0, 40).map(a_frame), st.data())
@settings(max_examples=60)
def test_what_switches_may_change_changes_nothing(frame: RoceFrame, data: st.DataObject) -> None:
    packet = encode_frame(frame)[ETHERNET_BYTES:]
    changed = bytearray(packet)
    for offset in MASKED_OFFSETS:
        changed[offset] = data.draw(st.integers(0, 255))
    assert without_icrc(bytes(changed)) == changed[:-ICRC_BYTES]


def test_each_flipped_bit_is_noticed() -> None:
    """Of all that it covers, and of itself."""
    packet = encode_frame(a_frame(8))[ETHERNET_BYTES:]
    for bit in range(8 * len(packet)):
        if bit // 8 in MASKED_OFFSETS:
            continue
        changed = bytearray(packet)
        changed[bit // 8] ^= 0x80 >> bit % 8
        with pytest.raises(IcrcError):
            without_icrc(bytes(changed))


def changed(wire: bytes, offset: int, number: int, width: int = 1) -> bytes:
    """With another number there, and the IP header's checksum as it must be."""
    out = bytearray(wire)
    out[offset : offset + width] = number.to_bytes(width, "big")
    out[24:26] = ipv4_checksum(out[ETHERNET_BYTES:IPV4_END]).to_bytes(2, "big")
    return bytes(out)


WIRE = encode_frame(a_frame())
REFUSED = {
    "no UDP header": (WIRE[:41], TruncatedPacketError),
    "ARP": (changed(WIRE, 12, 0x0806, 2), ForeignPacketError),
    "options": (changed(WIRE, 14, 0x46), ForeignPacketError),
    "TCP": (changed(WIRE, 23, 6), ForeignPacketError),
    "another port": (changed(WIRE, 36, 17760, 2), ForeignPacketError),
    "a fragment": (changed(WIRE, 20, 0x2000, 2), ForeignPacketError),
    "cut off": (WIRE[:-1], TruncatedPacketError),
    "a tail": (WIRE + b"\0", OverlongPacketError),
    "no room for BTH and ICRC": (
        changed(changed(WIRE[:57], 16, 43, 2), 38, 23, 2),
        TruncatedPacketError,
    ),
    "UDP too short": (changed(WIRE, 38, 20, 2), OverlongPacketError),
    "UDP too long": (changed(WIRE, 38, 2000, 2), TruncatedPacketError),
    "IP checksum": (WIRE[:24] + bytes([WIRE[24] ^ 1]) + WIRE[25:], PacketError),
    "ICRC": (WIRE[:-1] + bytes([WIRE[-1] ^ 1]), IcrcError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    wire, error = REFUSED[name]
    with pytest.raises(error) as caught:
        decode_frame(wire)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [{"tos": 256}, {"src_udp": -1}, {"dst_mac": 1 << 48}, {"payload": bytes(65536)}],
    ids=str,
)
def test_numbers_that_do_not_fit(change: dict[str, int]) -> None:
    with pytest.raises(FieldRangeError):
        encode_frame(replace(a_frame(), **change))  # type: ignore[arg-type]


def test_numbers_that_do_not_fit_a_bth() -> None:
    with pytest.raises(FieldRangeError, match="psn 16777216 does not fit 24 bits"):
        encode_bth(Bth(Opcode.UC_SEND_ONLY, 1, 1 << 24))
    with pytest.raises(TruncatedPacketError, match="11 bytes are no BTH"):
        decode_bth(bytes(11))
    with pytest.raises(TruncatedPacketError, match="39 bytes are no RoCEv2 packet"):
        icrc(bytes(39))
    with pytest.raises(TruncatedPacketError):
        without_icrc(bytes(3))


@given(st.integers(0, 2**32 - 1), st.sampled_from((1, 2, 4, 8, 256)))
def test_a_message_is_one_first_and_one_last(seq: int, segments: int) -> None:
    start = seq & ~(segments - 1)
    places = [opcode_of(start + at, segments) for at in range(segments)]
    if segments == 1:
        assert places == [Opcode.UC_SEND_ONLY]
    else:
        middle = [Opcode.UC_SEND_MIDDLE] * (segments - 2)
        assert places == [Opcode.UC_SEND_FIRST, *middle, Opcode.UC_SEND_LAST]
    assert (psn_of(seq + 1) - psn_of(seq)) % (1 << 24) == 1


@pytest.mark.parametrize("segments", [-1, 0, 3, 12])
def test_messages_of_another_length(segments: int) -> None:
    with pytest.raises(FieldRangeError, match="a power of two is wanted"):
        opcode_of(0, segments)
