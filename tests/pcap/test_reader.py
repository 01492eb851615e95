"""Capture files of every kind are read as others read them; damaged ones are refused in a line."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import RawPcapWriter

from ina.pcap import Capture, CaptureError
from ina.pcap.reader import CLASSIC
from tests.worlds.virtual.exchange import BEGIN_S, STEP_S, one_round


def test_pcap_and_pcapng_hold_the_same_frames(tmp_path: Path) -> None:
    exchange = one_round()
    classic = list(Capture(exchange.write(tmp_path / "a.pcap")))
    section = list(Capture(exchange.write_pcapng(tmp_path / "a.pcapng")))
    assert [f.data for f in classic] == [bytes(packet) for packet in exchange.frames]
    assert [f.number for f in classic] == list(range(1, len(exchange.frames) + 1))
    assert [f.data for f in section] == [f.data for f in classic]
    for read in (classic, section):
        since_ns = [f.time_ns - int(BEGIN_S) * 10**9 for f in read]
        assert since_ns == pytest.approx(
            [i * STEP_S * 1e9 for i in range(len(read))],
            abs=1000,  # files have microseconds
        )
    assert all(f.link_type == 1 and f.wire_bytes == len(f.data) for f in classic)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_byte_orders_and_resolutions(order: str, nano: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    writer = RawPcapWriter(str(path), linktype=1, endianness=order, nano=nano)
    writer.write_header(None)
    writer.write_packet(b"x" * 60, sec=7, usec=21, wirelen=1500)
    writer.close()
    (read,) = Capture(path)
    assert read.time_ns == 7 * 10**9 + 21 * (1 if nano else 1000)
    assert (read.data, read.wire_bytes, read.link_type) == (b"x" * 60, 1500, 1)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


@pytest.mark.parametrize("order", "<>")
def test_pcapng_interfaces_resolutions_and_block_types(order: str, tmp_path: Path) -> None:
    def option(code: int, value: bytes) -> bytes:
        return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)

    section = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    eth = struct.pack(order + "HHI", 1, 0, 0) + option(2, b"veth0") + option(9, b"\x09")
    raw = struct.pack(order + "HHI", 101, 0, 3) + option(9, b"\x8a")  # 2**-10 s
    packet = struct.pack(order + "IIIII", 0, 1, 5, 4, 9) + b"abcd" + option(1, b"note")
    old = struct.pack(order + "HHIIII", 1, 0, 0, 2048, 3, 3) + b"xyz"
    simple = struct.pack(order + "I", 2) + b"mn"
    path = tmp_path / "a.pcapng"
    blocks = [(1, eth), (1, raw), (0xBAD, b"??"), (6, packet), (2, old), (3, simple)]
    path.write_bytes(section + b"".join(block(order, *b) for b in blocks) + section)
    first, second, third = Capture(path)
    assert (first.data, first.wire_bytes, first.source) == (b"abcd", 9, "a.pcapng:veth0")
    assert first.time_ns == 2**32 + 5
    assert (second.data, second.link_type, second.time_ns) == (b"xyz", 101, 2 * 10**9)
    assert (third.data, third.time_ns, third.number) == (b"mn", 0, 3)


@pytest.mark.parametrize("name", ["a.pcap", "a.pcapng"])
def test_a_capture_that_is_still_written_gives_what_is_whole(name: str, tmp_path: Path) -> None:
    exchange, path = one_round(), tmp_path / name
    exchange.write_pcapng(path) if name == "a.pcapng" else exchange.write(path)
    whole = len(list(Capture(path)))
    path.write_bytes(path.read_bytes()[:-7])
    capture = Capture(path)
    assert len(list(capture)) == whole - 1
    assert capture.cut_off == f"{path}: ends in the middle of frame {whole}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "neither pcap nor pcapng: it begins with nothing"),
        (b"hello", "68656c6c"),
        (b"\xd4\xc3\xb2\xa1" + bytes(20) + b"\0" * 8 + b"\xff" * 8, "damaged"),
        (bytes.fromhex("0a0d0d0a1c0000000badf00d") + bytes(20), "byte order"),
        (block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + b"\1\0\0\0" * 2,
         "block of 1 bytes"),
        (block("<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block("<", 6, b""),
         "block of type 6"),
    ],
)  # fmt: skip
def test_what_is_no_capture_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=said) as refusal:
        list(Capture(path))
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


STARTS = st.sampled_from(
    [*CLASSIC, bytes.fromhex("0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff")]
)


@given(start=STARTS, rest=st.binary(max_size=200))
def test_noise_is_refused_or_read_and_nothing_else(
    start: bytes, rest: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(start + rest)
    try:
        frames = list(Capture(path))
    except CaptureError:
        return
    assert sum(len(f.data) for f in frames) <= len(rest)
