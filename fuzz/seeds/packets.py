"""Frames, datagrams and capture files that hold contributions and results."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from fuzz.pipeline_setup import EPOCH, JOB, SLOTS, VALUES, address_of, port_of, udp_port_of
from ina.protocol.bth import Bth, Opcode
from ina.protocol.codec import Header, encode
from ina.protocol.roce import RoceFrame, encode_frame
from ina.protocol.spec import UDP_PORT, Flag, Kind

SWITCH = 0x0A0000FE
Examples = dict[str, bytes]


def contribution(rank: int, seq: int, values: int = VALUES, **changes: Any) -> bytes:
    """A packet of a worker of the job that the pipeline has."""
    header = Header(
        job=JOB,
        epoch=EPOCH & 0xFFFF,
        worker=rank,
        slot=seq % SLOTS,
        seq=seq,
        contributors=1 << rank,
        value_count=values,
    )
    header = replace(header, **changes)
    return encode(header, np.arange(values, dtype=np.int32) - 5 if values else None)


def result(seq: int, values: int = VALUES) -> bytes:
    """What the switch makes of two of them."""
    return contribution(255, seq, values, kind=Kind.RESULT, contributors=3)


def ethernet() -> Packet:
    """Both addresses are named always: scapy would ask the network for one that is not."""
    return Ether(src="02:00:0a:00:00:01", dst="02:00:0a:00:00:fe")


def frame(payload: bytes, rank: int = 0, **ip: Any) -> Packet:
    """In a worker's frame to the switch."""
    return (
        ethernet()
        / IP(src=_dotted(address_of(rank)), dst=_dotted(SWITCH), tos=2, **ip)
        / UDP(sport=udp_port_of(rank), dport=UDP_PORT)
        / payload
    )


def frames() -> Examples:
    """By name, whole frames: ina's and others', right ones and wrong ones."""
    small = contribution(0, 0, 4)
    wrong = frame(small)
    wrong[UDP].chksum = 0x1234
    unchecked = frame(small)
    unchecked[UDP].chksum = 0
    ether = ethernet()
    packets: dict[str, Packet] = {
        "contribution": frame(contribution(0, 0)),
        "exponents": frame(contribution(0, 0, 0)),
        "result": frame(result(0, 4), 1),
        "small": frame(small),
        "wrong-checksum": wrong,
        "no-checksum": unchecked,
        "options": frame(small, options=[b"\x01\x01\x01\x00"]),
        "fragment": frame(small, flags="MF"),
        "later-fragment": frame(small, frag=8),
        "empty": frame(b""),
        "short-length": frame(small, len=40),
        "padded": frame(small, len=28 + len(small)) / (b"\0" * 9),
        "vlan": ether / Dot1Q(vlan=7) / frame(small)[IP],
        "tcp": ether / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(dport=80, flags="PA") / b"hello",
        "ipv6": ether / IPv6(src="::1", dst="::2") / UDP(dport=UDP_PORT) / small,
        "arp": ether / (b"\x00\x01" * 14),
    }
    return {name: bytes(packet) for name, packet in packets.items()}


def frame_inputs() -> Examples:
    """Each whole, and in two parts at the header's end."""
    whole = frames()
    cut = {f"{name}-cut": struct.pack("<H", 66) + data for name, data in whole.items()}
    return {name: struct.pack("<H", 0xFFFF) + data for name, data in whole.items()} | cut


def offload_inputs() -> Examples:
    """A virtio_net_hdr and a frame: to be completed, or to be cut."""

    def header(flags: int, kind: int, size: int, start: int, offset: int) -> bytes:
        return struct.pack("<BBHHHH", flags, kind, 42, size, start, offset)

    udp, tcp4, tcp6 = 5, 1, 4
    payload = contribution(0, 0, 4) * 5
    tcp = ethernet() / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(dport=80, flags="PA") / payload
    six = ethernet() / IPv6(src="::1", dst="::2") / TCP(dport=80, flags="PAC") / payload
    tagged = ethernet() / Dot1Q(vlan=7) / frame(payload)[IP]
    plain = bytes(frame(payload))
    return {
        "none": header(0, 0, 0, 0, 0) + plain,
        "checksum": header(1, 0, 0, 34, 6) + plain,
        "checksum-outside": header(1, 0, 0, 34, 60000) + plain,
        "udp": header(1, udp, 40, 34, 6) + plain,
        "udp-last-short": header(1, udp, 77, 34, 6) + plain,
        "udp-vlan": header(1, udp, 40, 38, 6) + bytes(tagged),
        "udp-ones": header(1, udp, 1, 34, 6) + plain,
        "tcp4": header(1, tcp4, 40, 34, 16) + bytes(tcp),
        "tcp4-ecn": header(1, tcp4 | 0x80, 64, 34, 16) + bytes(tcp),
        "tcp6": header(1, tcp6, 40, 54, 16) + bytes(six),
        "unknown": header(1, 9, 40, 34, 6) + plain,
    }


def datagram_inputs() -> Examples:
    """Sends of (TOS, segment bytes, payload)."""

    def send(payload: bytes, segment: int = 0, tos: int = 0) -> bytes:
        return struct.pack("<BHH", tos, segment, len(payload)) + payload

    one = contribution(0, 0, 4)
    return {
        "one": send(one),
        "full": send(contribution(0, 0, 256)),
        "empty": send(b""),
        "marked": send(one, tos=3),
        "capable": send(one, tos=2),
        "train": send(one * 6, len(one)),
        "train-last-short": send(one * 6 + one[:24], len(one)),
        "several": send(one) + send(b"") + send(one * 3, len(one), 3) + send(b"\0"),
        "long": send(bytes(range(256)) * 32),
        "ones": send(one, 1),
    }


def _sealed(kind: int, payload: bytes, wrong: int = 0, said: bytes = b"", psn: int = 0) -> bytes:
    """Of native/testing/roce_doors.cpp: what is wrong in BTH, and the number, with a right ICRC."""
    head = bytes([kind, wrong]) + said + psn.to_bytes(3, "little")
    return head + struct.pack("<H", len(payload)) + payload


def _raw(payload: bytes) -> bytes:
    return struct.pack("<BH", 1, len(payload)) + payload


def soft_roce_inputs() -> Examples:
    """SENDs, right and wrong; and bytes that are none."""
    one = contribution(0, 0, 4)
    return {
        "one": _sealed(0, one),
        "several": b"".join(_sealed(0, one, psn=psn) for psn in (0, 1, 7, 0xFFFFFF)),
        "without-values": _sealed(0, one[:32]),
        "nothing": _sealed(0, b""),
        "opcode": _sealed(0, one, 1, b"\x21") + _sealed(0, one),
        "padded": _sealed(0, one, 2, b"\x50"),
        "partition": _sealed(0, one, 4, b"\xff\x7f"),
        "another": _sealed(0, one, 8, b"\x01\x02\x03"),
        "raw": _raw(one) + _raw(b"") + _raw(b"\x24" + bytes(27)) + _sealed(0, one),
    }


def ring_inputs() -> Examples:
    """Messages in order (4) on lanes (16 times), again, too early; replies (2)."""
    one = contribution(0, 0, 4)
    ack = b"\x1f\0\0\1"
    return {
        "one": _sealed(4, one),
        "lanes": b"".join(_sealed(4 | lane << 4, one) for lane in (0, 1, 2, 3, 0)),
        "again": _sealed(4, one) + _sealed(0, one, psn=0xFFFFFF) + _sealed(4, one),
        "too-early": _sealed(0, one, psn=3) * 2 + _sealed(4, one),
        "replies": _sealed(2, ack) + _sealed(2, b"\x60\0\0\0") + _sealed(2, ack[:3]),
        "opcode": _sealed(4, one, 1, b"\x00") + _sealed(4, one),
        "another": _sealed(4, one, 8, b"\x10\0\0"),
        "raw": _raw(bytes(90)) + _sealed(4, one),
    }


def pipeline_inputs() -> Examples:
    """Frames as (how, port, where it is cut, bytes); see native/testing/pipeline_door.cpp."""
    raw, member, shared, parts = 0, 1, 2, 4

    def packet(how: int, port: int, data: bytes, cut: int = 66) -> bytes:
        return struct.pack("<BBBH", how, port, cut, len(data)) + data

    def round_of(seq: int, how: int = member, **changes: Any) -> bytes:
        return b"".join(
            packet(how, port_of(rank), contribution(rank, seq, **changes)) for rank in (0, 1)
        )

    first = packet(member, 1, contribution(0, 0))
    examples = {
        "round": round_of(0),
        "round-in-parts": round_of(0, member | parts),
        "round-shared": round_of(0, member | shared),
        "round-shared-parts": round_of(0, member | shared | parts),
        "rounds": b"".join(round_of(seq) for seq in (0, 8, 16)),
        "duplicate": first + first + round_of(0),
        "replay": round_of(0) + first,
        "late": round_of(8) + first,
        "wraps": round_of(0xFFFF_FFF8) + round_of(0),
        "non-finite": round_of(0, flags=Flag.NON_FINITE, value_type=1, exponent=130),
        "stranger": packet(member, 3, contribution(0, 0)),
        "other-rank": packet(member, 1, contribution(1, 0)),
        "other-job": packet(member, 1, contribution(0, 0, job=8)),
        "other-epoch": packet(member, 1, contribution(0, 0, epoch=1)),
        "slot-outside": packet(member, 1, contribution(0, 0, slot=9)),
        "result": packet(member, 1, result(0)),
        "cut-header": packet(member, 1, contribution(0, 0)[:20]),
        "cut-values": packet(member, 1, contribution(0, 0)[:100]),
        "too-long": packet(member, 1, contribution(0, 0) + b"x"),
        "empty": packet(member, 1, b""),
        "exponents": round_of(0, values=0),
    }
    return examples | {f"raw-{name}": packet(raw, 1, data) for name, data in frames().items()}


def pcaps(frames_of_file: Sequence[bytes], order: str, nanoseconds: bool, link: int = 1) -> bytes:
    """A classic capture file."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)]
    for number, data in enumerate(frames_of_file):
        parts.append(struct.pack(order + "IIII", 1_700_000_000, number * 10, len(data), len(data)))
        parts.append(data)
    return b"".join(parts)


def pcap_inputs() -> Examples:
    """Classic capture files."""
    all_frames = list(frames().values())
    whole = pcaps(all_frames, "<", False)
    return {
        "little": whole,
        "big": pcaps(all_frames, ">", False),
        "little-ns": pcaps(all_frames[:3], "<", True),
        "big-ns": pcaps(all_frames[:3], ">", True),
        "no-frames": pcaps([], "<", True),
        "empty-frame": pcaps([b""], "<", True),
        "other-link": pcaps(all_frames[:1], "<", True, 113),
        "with-fcs": pcaps(all_frames[:1], "<", True, 1 | 4 << 28),
        "cut-in-frame": whole[:-7],
        "cut-in-head": whole[: 24 + 9],
        "cut-in-header": whole[:11],
        "pcapng": pcapng([all_frames[0]]),
    }


def pcapng(
    frames_of_file: Sequence[bytes], order: str = "<", options: bytes = b"", kind: int = 6
) -> bytes:
    """A capture file of blocks: a section, an interface, a block a frame."""

    def block(number: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", number) + size + body + size

    section = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    parts = [section, block(1, struct.pack(order + "HHI", 1, 0, 65535) + options)]
    for number, data in enumerate(frames_of_file):
        sizes = struct.pack(order + "II", len(data), len(data))
        heads = {
            6: struct.pack(order + "III", 0, 5, number) + sizes,
            2: struct.pack(order + "HHII", 0, 0, 5, number) + sizes,
            3: sizes[:4],
        }
        parts.append(block(kind, heads[kind] + data))
    return b"".join(parts)


def capture_inputs() -> Examples:
    """Both kinds of capture files, with a round of the slot that is followed."""
    rounds = [
        *(bytes(frame(contribution(rank, seq, 4), rank)) for seq in (0, 8) for rank in (0, 1)),
        bytes(frame(result(0, 4), 1)),
    ]
    train = bytes(frame(contribution(0, 0, 4) * 3))
    name, microseconds = b"\x02\x00\x04\x00eth0", b"\x09\x00\x01\x00\x06\0\0\0"
    binary, offset = b"\x09\x00\x01\x00\x8a\0\0\0", b"\x0e\x00\x08\x00" + struct.pack("<q", 3)
    return (
        pcap_inputs()
        | {
            "round": pcaps(rounds, "<", True),
            "train": pcaps([train], "<", True),
            "raw-ip": pcaps([one[14:] for one in rounds], "<", True, 101),
            "cooked": pcaps([b"\0" * 14 + one[12:] for one in rounds], "<", True, 113),
            "ng-round": pcapng(rounds),
            "ng-big": pcapng(rounds, ">"),
            "ng-names": pcapng(rounds[:1], "<", name + microseconds + b"\0\0\0\0"),
            "ng-binary": pcapng(rounds[:1], "<", binary + offset),
            "ng-obsolete": pcapng(rounds[:1], "<", kind=2),
            "ng-simple": pcapng(rounds[:1], "<", kind=3),
            "ng-two-sections": pcapng(rounds[:1]) + pcapng(rounds[1:2], ">"),
            "ng-cut": pcapng(rounds)[:-9],
        }
        | _roce_captures()
    )


def _roce_captures() -> Examples:
    def send(payload: bytes, opcode: int, from_: int, to: int) -> bytes:
        bth = Bth(opcode, 0x80_0000 | JOB << 6, 5)
        return encode_frame(RoceFrame(bth, payload, from_, to, udp_port_of(0)))

    def round_of(opcode: int) -> list[bytes]:
        zero, one = address_of(0), address_of(1)
        return [
            send(contribution(0, 0, 4), opcode, zero, SWITCH),
            send(contribution(1, 0, 4), opcode, one, SWITCH),
            send(result(0, 4), opcode, SWITCH, one),
        ]

    sends = round_of(Opcode.UC_SEND_ONLY)
    spoilt = sends[0][:-1] + bytes([sends[0][-1] ^ 1])
    behind_udp = sends[0][42:]
    train = bytes(frame(behind_udp * 3)).replace(UDP_PORT.to_bytes(2, "big"), b"\x12\xb7", 1)
    return {
        "roce": pcaps([*sends, spoilt], "<", True),
        "roce-ring": pcaps(round_of(Opcode.RC_SEND_ONLY), "<", True),
        "roce-train": pcaps([train], "<", True),
        "roce-tunnel": pcaps([bytes(frame(behind_udp)), bytes(frame(behind_udp * 2))], "<", True),
        "roce-cut": pcaps(sends, "<", True)[:-20],
    }


def _dotted(address: int) -> str:
    return ".".join(str(byte) for byte in address.to_bytes(4, "big"))
