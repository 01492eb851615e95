"""Captures of RoCEv2: packets of ina in SENDs, their ICRC, slots that are summed of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether

from ina.cli.main import run
from ina.cli.pcap.read import CaptureFiles
from ina.pcap import UDP_PORTS, CapturedFrame, Packet, contents_of, follow, packets_of
from ina.pcap.sends import Icrc
from ina.protocol.bth import BTH_BYTES, Bth, Opcode, encode_bth
from ina.protocol.codec import Header, encode
from ina.protocol.icrc import ICRC_BYTES
from ina.protocol.roce import RoceFrame, encode_frame
from ina.protocol.spec import HEADER_BYTES, Flag
from tests.protocol.samples import sample_packets
from tests.worlds.virtual.exchange import JOB, SLOTS, Exchange, one_round
from tests.worlds.virtual.roce import IN_SENDS, in_ring, said_of_roce

HEADER = Header(job=3, worker=1, seq=8, value_count=2)
PAYLOAD = encode(HEADER, [5, -6])
WORKER, SWITCH = 0x0A000001, 0x0A0000FE
QP = 0x80_00C1


def sent(payload: bytes = PAYLOAD, opcode: int = Opcode.UC_SEND_ONLY, **fields: int) -> RoceFrame:
    return RoceFrame(Bth(opcode, QP, 8, **fields), payload, WORKER, SWITCH, 0xC001)


def read(data: bytes, ports: tuple[int, ...] = UDP_PORTS, wire_bytes: int = 0) -> list[Packet]:
    frame = CapturedFrame(1, 0, 1, data, wire_bytes or len(data), "test")
    return list(packets_of(frame, ports))


def is_foreign(data: bytes) -> bool:
    found = contents_of(CapturedFrame(1, 0, 1, data, len(data), "test"))
    return found.is_roce and not found.packets


def icrc_of(packet: Packet) -> Icrc:
    assert packet.send is not None
    return packet.send.icrc


def test_the_same_as_the_codec() -> None:
    for header, values, payload in sample_packets(50, seed=4):
        (found,) = read(encode_frame(sent(payload)))
        assert (found.header, found.problem) == (header, "")
        assert found.values is not None
        assert found.values.tolist() == values
        assert found.send is not None
        assert found.send.bth == Bth(Opcode.UC_SEND_ONLY, QP, 8)
        assert icrc_of(found) is Icrc.RIGHT


@given(bit=st.integers(0, 8 * len(encode_frame(sent())) - 1))
def test_a_flipped_bit_is_never_silent(bit: int) -> None:
    """But where switches may change a packet: MAC addresses, TOS, TTL, checksums, BTH's fifth."""
    data = bytearray(encode_frame(sent()))
    data[bit // 8] ^= 0x80 >> bit % 8
    at = bit // 8
    found = read(bytes(data))
    if at < 12 or at in (15, 22, 24, 25, 40, 41, 46):
        (packet,) = found
        assert (packet.problem, icrc_of(packet)) == ("", Icrc.RIGHT)
    else:
        assert all(packet.problem for packet in found)


def test_a_wrong_icrc_is_said_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exchange = said_of_roce(one_round(), IN_SENDS)
    broken = bytearray(bytes(exchange.frames[1]))
    broken[-ICRC_BYTES - 1] ^= 1
    exchange.frames[1] = Ether(bytes(broken))
    exchange.frames[1].time = exchange.frames[0].time
    exchange.add(Ether(encode_frame(sent(b"\0" * 32))))  # of others
    file = exchange.write(tmp_path / "a.pcap")
    assert run(["pcap", "decode", str(file)]) == 0
    out, said = capsys.readouterr()
    (line,) = [line for line in out.splitlines() if "ICRC" in line]
    assert line.split()[0] == "2"
    assert "its ICRC is wrong" in line
    assert line.endswith("UC_SEND_ONLY to queue pair 0x800401, packet 1")
    assert said == (
        "11 packets of ina, 0 of them malformed, 1 with a wrong ICRC; "
        "1 frames of other traffic, 1 of them RoCEv2\n"
    )
    assert run(["pcap", "decode", "--json", "--worker", "1", str(file)]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["rocev2"] == {
        "opcode": "UC_SEND_ONLY",
        "dest_qp": 0x80_0401,
        "psn": 1,
        "icrc": "wrong",
        "is_tunnelled": False,
    }
    (life,) = follow(CaptureFiles([file], UDP_PORTS).packets(), JOB, 1)
    told = [(event.who, event.what, event.note) for event in life.events][:4]
    assert told == [
        ("worker 0", "takes the slot", ""),
        ("worker 1", "dropped: its ICRC is wrong", ""),
        ("worker 0", "is in already: dropped", ""),
        ("worker 2", "joins", ""),
    ]


@pytest.mark.parametrize(
    "data",
    [
        encode_frame(sent(b"\x11" + PAYLOAD[1:])),
        encode_frame(sent(PAYLOAD[:-4])),
        encode_frame(sent(PAYLOAD + bytes(4))),
        encode_frame(sent(opcode=0x25)),  # with immediate data
        encode_frame(sent(bytes(4), Opcode.RC_ACKNOWLEDGE)),
        encode_frame(sent(bytes(16), Opcode.CONGESTION_NOTIFICATION)),
        encode_frame(sent(b"")),
        bytes(Ether() / IP() / UDP(sport=4791, dport=9) / PAYLOAD),
        bytes(Ether() / IP(options=b"\1\1\1\1") / UDP(dport=4791) / PAYLOAD),
    ],
)
def test_rocev2_of_others_is_counted_as_such(data: bytes) -> None:
    assert is_foreign(data)


def test_what_a_switch_does_not_take_is_said() -> None:
    (found,) = read(encode_frame(sent(pad_bytes=1, pkey=0x8001)))
    assert found.problem == "BTH with 1 bytes of padding, version 0, pkey 0x8001"
    unknown = bytes([PAYLOAD[0] | 0xF]) + PAYLOAD[1:]
    (found,) = read(encode_frame(sent(unknown)))
    assert "kind 15" in found.problem


def test_a_snap_length_leaves_the_header_and_nothing_to_verify() -> None:
    whole = encode_frame(sent())
    for kept in (42 + BTH_BYTES + HEADER_BYTES, 42 + BTH_BYTES + HEADER_BYTES + 5, len(whole) - 1):
        (found,) = read(whole[:kept], wire_bytes=len(whole))
        assert (found.cut, found.problem, icrc_of(found)) == (True, "", Icrc.NOT_CAPTURED)
        assert found.header is not None
        assert (found.values is not None) == (kept == len(whole) - 1)
    assert read(whole[:60], wire_bytes=len(whole)) == []


def test_tags_and_padding_are_not_icrcs() -> None:
    whole = encode_frame(sent(encode(Header())))
    tagged = bytes(Ether() / Dot1Q(vlan=7)) + whole[14:]
    for data in (tagged[:12] + b"\x81\0\0\7" + whole[12:], whole + b"\0" * 7):
        (found,) = read(data)
        assert icrc_of(found) is Icrc.RIGHT


def tunnelled(frame: bytes, src_port: int, dst_port: int, parts: int = 1) -> bytes:
    """The datagram that stands for a frame at a soft switch's port ``rocev2:``."""
    packet = Ether(frame)
    outside = Ether() / IP(src=packet[IP].src, dst=packet[IP].dst, id=77)
    return bytes(outside / UDP(sport=src_port, dport=dst_port) / (frame[42:] * parts))


@pytest.mark.parametrize("parts", [1, 3])
def test_a_tunnel_is_known_by_what_is_in_it(parts: int) -> None:
    """A frame's source port is the worker's, whichever way it goes."""
    frame = encode_frame(replace(sent(), src_udp=40_000))
    for ports in ((40_000, 17_760), (17_760, 40_000)):
        found = read(tunnelled(frame, *ports, parts))
        assert [it.problem for it in found] == [""] * parts
        assert all(it.send and it.send.is_tunnelled and it.header == HEADER for it in found)
    assert all(it.is_spoilt for it in read(tunnelled(frame, 17_760, 40_001, parts)))


def test_a_frame_in_a_datagram_is_read() -> None:
    """Of a soft switch's port ``frames:``, on whatever port that is."""
    frame = encode_frame(sent(opcode=Opcode.RC_SEND_ONLY))
    outside = Ether() / IP(src="127.0.0.1", dst="127.0.0.1") / UDP(sport=40_000, dport=9000)
    data = bytes(outside / frame)
    (found,) = read(data, (9000,))
    assert (found.problem, icrc_of(found), found.header) == ("", Icrc.RIGHT, HEADER)
    assert (found.datagram.src_port, found.frame.data) == (0xC001, data)
    (found,) = read(data[:-9], (9000,), wire_bytes=len(data))
    assert (found.cut, found.problem, icrc_of(found)) == (True, "", Icrc.NOT_CAPTURED)
    inside = bytes(Ether() / IP() / UDP(sport=9, dport=17_760) / PAYLOAD)
    (of_udp,) = read(bytes(outside / inside), (9000,))
    assert (of_udp.header, of_udp.problem) == (HEADER, "")


def test_uncut_frames_hold_many_packets() -> None:
    """As an interface with UDP_SEGMENT shows them; the last one may be shorter, or cut off."""
    header = Header(seq=9)
    parts = [*([encode_frame(sent())] * 3), encode_frame(sent(encode(header)))]
    inside = b"".join(part[42:] for part in parts)
    ip = IP(src="10.0.0.1", dst="10.0.0.254", id=0, flags="DF", tos=2)
    data = bytes(Ether() / ip / UDP(sport=0xC001, dport=4791) / inside)
    found = read(data)
    assert [it.problem for it in found] == [""] * 4
    assert found[-1].header == header
    kept = read(data[:-20], wire_bytes=len(data))
    assert [it.problem for it in kept] == [""] * 3
    assert is_foreign(bytes(Ether() / ip / UDP(sport=0xC001, dport=4791) / inside[:-20]))


@given(data=st.binary(max_size=120), cut=st.integers(0, 110), more_bytes=st.integers(0, 40))
def test_noise_is_never_read_past_its_end(data: bytes, cut: int, more_bytes: int) -> None:
    around = Ether() / IP(src="10.0.0.1", dst="10.0.0.254") / UDP(sport=9, dport=4791)
    begin = encode_bth(Bth(Opcode.UC_SEND_ONLY, 1, 2)) + PAYLOAD[:HEADER_BYTES]
    for noise in (bytes(around / data), bytes(around / (begin + data)), encode_frame(sent())[:cut]):
        for packet in read(noise, wire_bytes=len(noise) + more_bytes):
            assert packet.header or packet.problem


def story(exchange: Exchange, path: Path) -> list[tuple[str, str, str]]:
    (life,) = follow(CaptureFiles([exchange.write(path)], UDP_PORTS).packets(), JOB, 1)
    return [(event.who, event.what, event.note) for event in life.events]


def test_a_slot_is_followed_as_if_it_were_udp(tmp_path: Path) -> None:
    """Results come from the switch's address and their receivers' flows; nobody is an impostor."""
    plain = story(one_round(), tmp_path / "udp.pcap")
    assert story(said_of_roce(one_round(), IN_SENDS), tmp_path / "roce.pcap") == plain
    assert ("switch", "result to worker 1, again", "") in plain


def test_damage_between_two_places_is_seen(tmp_path: Path) -> None:
    before, behind = (Exchange(1), Exchange(1))
    for seen in (before, behind):
        seen.contribute(0, 1)
        said_of_roce(seen, IN_SENDS)
    (whole, *_) = before.frames
    broken = bytearray(bytes(whole))
    broken[-1] ^= 1
    behind.frames = [Ether(bytes(broken))]
    behind.frames[0].time = float(whole.time) + 0.000_001
    files = [before.write(tmp_path / "a.pcap"), behind.write(tmp_path / "b.pcap")]
    (life,) = follow(CaptureFiles(files, UDP_PORTS).packets(), JOB, 1)
    told = [(event.packet.frame.source, event.what) for event in life.events][:2]
    assert told[1] == ("b.pcap", "dropped: its ICRC is wrong")
    assert told[0][0] == "a.pcap"


def test_who_sends_to_anothers_queue_pair_is_noted(tmp_path: Path) -> None:
    exchange = Exchange(2)
    exchange.contribute(0, 1)
    exchange.contribute(0, 1, flags=Flag.RESEND)
    exchange.frames[1][UDP].sport = 1025
    told = story(said_of_roce(exchange, IN_SENDS), tmp_path / "a.pcap")
    assert told[1][2] == "worker 0 sent from 10.0.0.1, to queue pair 0x800400"


def test_a_slot_of_a_ring_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each packet is between neighbours; sums stand in place of what came."""
    exchange = said_of_roce(one_round(), in_ring(3))
    told = story(exchange, tmp_path / "ring.pcap")
    assert [what for _, what, _ in told] == [
        "takes the slot",
        "joins",
        "is in already: dropped",
        "joins, as the last: the result goes to all",
        "result to worker 0",
        "result to worker 1",
        "result to worker 2",
        "asks again: the result goes to its neighbour alone",
        "result to worker 2, again",
        "takes the slot",
        "stale: dropped",
    ]
    assert {who for who, _, _ in told} == {"worker 0", "worker 1", "worker 2", "switch"}
    assert {note for _, _, note in told} == {""}
    file = str(tmp_path / "ring.pcap")
    assert run(["pcap", "follow", file, "--job", str(JOB), "--slot", "1"]) == 0
    assert capsys.readouterr().out.startswith("job 9 slot 1; workers 0, 1, 2\n")


def test_a_ring_whose_last_worker_asks(tmp_path: Path) -> None:
    """The answer's receiver is worker 0, and no switch is taken to be above the ring's."""
    exchange = Exchange(2)
    for worker, flags in ((0, Flag(0)), (1, Flag(0)), (1, Flag.RESEND)):
        exchange.contribute(worker, 1 + SLOTS, flags=flags)
    told = story(said_of_roce(exchange, in_ring(2)), tmp_path / "a.pcap")
    assert told[-2:] == [
        ("worker 1", "asks again: the result goes to its neighbour alone", ""),
        ("switch", "result to worker 0, again", ""),
    ]
