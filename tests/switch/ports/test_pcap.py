"""pcap ports: files in both byte orders and resolutions, and files that are not whole."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from ina._native import switch as native
from tests.switch.ports.conftest import Reflector, wait_until
from tests.switch.ports.pcap_files import MAGIC_NS, MAGIC_US, frames_of, pcap_bytes


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [MAGIC_US, MAGIC_NS])
def test_round_trip(
    tmp_path: Path,
    reflector: Callable[..., Reflector],
    run_loop: Callable[..., native.PortLoop],
    order: str,
    magic: int,
) -> None:
    frames = [bytes([i % 256]) * (14 + i % 1500) for i in range(1000)] + [b"\0" * 65535]
    source, target = tmp_path / "in.pcap", tmp_path / "out.pcap"
    source.write_bytes(pcap_bytes(frames, order, magic))
    reading = native.PcapPort(1, str(source), "", 0.0, 0)
    writing = native.PcapPort(2, "", str(target), 0.0, 0)
    loop = run_loop([reading, writing])
    assert reading.stats()["rx_packets"] == 0  # a file waits for the program
    pipeline = reflector(to_port=2)
    loop.set_pipeline(pipeline.pipeline, pipeline.state)
    wait_until(lambda: writing.stats()["tx_packets"] == len(frames), "all written")
    assert reading.stats()["finished"] == 1
    assert frames_of(target) == frames


def datagram(payload: bytes, port: int = 17760) -> bytes:
    frame = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=9, dport=port) / Raw(payload)
    return bytes(frame)


def forwarded(
    frames: list[bytes],
    tmp_path: Path,
    reflector: Callable[..., Reflector],
    run_loop: Callable[..., native.PortLoop],
) -> tuple[list[bytes], int]:
    """What comes out at another port, and how many were dropped for their checksum."""
    source, target = tmp_path / "in.pcap", tmp_path / "out.pcap"
    source.write_bytes(pcap_bytes(frames))
    reading = native.PcapPort(1, str(source), "", 0.0, 0)
    writing = native.PcapPort(2, "", str(target), 0.0, 0)
    loop = run_loop([reading, writing])
    pipeline = reflector(to_port=2)
    loop.set_pipeline(pipeline.pipeline, pipeline.state)
    wait_until(lambda: reading.stats()["finished"] == 1, "all read")
    dropped = reading.stats()["wrong_checksum_packets"]
    left = len(frames) - dropped
    wait_until(lambda: writing.stats()["tx_packets"] == left, "all written")
    return frames_of(target), dropped


def test_flipped_bits_do_not_reach_the_aggregation(
    tmp_path: Path, reflector: Callable[..., Reflector], run_loop: Callable[..., native.PortLoop]
) -> None:
    """Any one bit of UDP header and payload: the frame is dropped, or is not to the aggregation."""
    good, other = datagram(bytes(range(1, 40))), bytearray(datagram(b"other", 17761))
    other[-1] ^= 1  # not to the aggregation: forwarded, its receiver checks it
    without = bytearray(good)
    without[40:42], without[-1] = b"\0\0", 0  # no checksum
    flipped = []
    for bit in range(34 * 8, len(good) * 8):
        frame = bytearray(good)
        frame[bit // 8] ^= 1 << bit % 8
        flipped.append(bytes(frame))
    passed = [good, bytes(other), bytes(without)]
    found, dropped = forwarded(passed + flipped, tmp_path, reflector, run_loop)
    assert found[:3] == passed
    assert all(frame[36:38] != good[36:38] or int.from_bytes(frame[38:40], "big") > len(good) - 34
               for frame in found[3:])  # fmt: skip
    assert dropped >= (len(good) - 42) * 8


def with_checksum_ffff() -> bytes:
    """Of which the sum comes out as 0, which would say that there is none."""
    frame = datagram(datagram(b"\0\0odd")[40:42] + b"odd")
    assert frame[40:42] == b"\xff\xff"
    return frame


def test_what_is_checked_is_what_a_udp_socket_would_check(
    tmp_path: Path, reflector: Callable[..., Reflector], run_loop: Callable[..., native.PortLoop]
) -> None:
    good = datagram(b"values")
    wrong = good[:-1] + b"!"
    ethernet, ip, udp = good[:14], good[14:34], good[34:]

    def of_ip(changes: dict[int, int], options: bytes = b"", rest: bytes = wrong[34:]) -> bytes:
        header = bytearray(ip)
        for place, byte in changes.items():
            header[place] = byte
        return ethernet + header + options + rest

    def with_options(rest: bytes) -> bytes:
        header = {0: 0x46, 3: len(ip) + 4 + len(udp)}
        return of_ip(header, b"\1\1\1\0", rest)

    tagged = wrong[:12] + b"\x81\0\0\7" + wrong[12:]
    short = len(udp) - 2  # of the datagram: what follows it in the IP packet is not its own
    by_length = bytearray(datagram(b"valu"))
    by_length[16:18] = (len(ip) + len(udp)).to_bytes(2, "big")
    passed = [
        good + bytes(7),  # padded
        with_checksum_ffff(),
        with_options(udp),
        bytes(by_length) + b"es",
        of_ip({6: 0x20}),  # the first fragment: its checksum is of all of them
        of_ip({6: 0, 7: 1}),  # a later one, which has no UDP header
        wrong[:-1],  # cut short
        tagged,  # not looked into
    ]
    assert int.from_bytes(by_length[38:40], "big") == short
    by_length[-1] ^= 1
    dropped = [
        wrong,
        wrong + bytes(7),
        with_options(wrong[34:]),
        bytes(by_length) + b"es",
        of_ip({6: 0x40}),
    ]
    found, dropped_packets = forwarded(dropped + passed, tmp_path, reflector, run_loop)
    assert found == passed
    assert dropped_packets == len(dropped)


def test_every_cut_of_a_file_is_refused_or_whole(tmp_path: Path) -> None:
    whole = pcap_bytes([b"a" * 20, b"b" * 7])
    boundaries = {24, 24 + 36, len(whole)}
    path = tmp_path / "cut.pcap"
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        if size in boundaries:
            native.PcapPort(1, str(path), "", 0.0, 0)
            continue
        with pytest.raises(ValueError, match=r"cut\.pcap, byte \d+"):
            native.PcapPort(1, str(path), "", 0.0, 0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x0a\x0d\x0d\x0a" + b"\0" * 40, "pcapng"),
        (b"GIF89a" + b"\0" * 40, "not a pcap file"),
        (pcap_bytes([], link_type=101), "link type 101"),
        (pcap_bytes([]) + struct.pack("<IIII", 1, 1, 1 << 31, 1 << 31), "packet of 2147483648"),
    ],
)
def test_wrong_files(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "wrong.pcap"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        native.PcapPort(1, str(path), "", 0.0, 0)


@given(st.binary(max_size=200), st.sampled_from(["<", ">"]))
def test_random_files_never_crash(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes, order: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.pcap"
    path.write_bytes(pcap_bytes([b"x" * 14], order) + tail)
    with contextlib.suppress(ValueError):
        native.PcapPort(1, str(path), "", 0.0, 0)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        native.PcapPort(1, str(tmp_path / "none"), "", 0.0, 0)
