"""pcapng files (Wireshark, dumpcap, tshark): sections, interfaces, packets; the rest is skipped."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ina.pcap.frame import MAX_FRAME_BYTES, CapturedFrame, CaptureError, CutOff, read_exactly

MAGIC = b"\x0a\x0d\x0d\x0a"
_SECTION, _INTERFACE, _OBSOLETE_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_IF_NAME, _IF_TSRESOL, _IF_TSOFFSET = 2, 9, 14
_NS_PER_S = 1_000_000_000
_WIRE_GAP_BYTES = 12  # type, length, and the length again
_MAX_BLOCK_BYTES = MAX_FRAME_BYTES + (1 << 20)


@dataclass(frozen=True)
class _Interface:
    link_type: int
    snap_bytes: int
    source: str
    ticks_per_s: int
    offset_s: int


def frames(stream: BinaryIO, source: str) -> Iterator[CapturedFrame]:
    """Yields the packets of all sections. Raises CaptureError, CutOff."""
    order, number = "", 0
    interfaces: list[_Interface] = []
    head = MAGIC + stream.read(4)  # the reader has taken the magic number
    while head:
        if len(head) < 8:
            raise CutOff
        if head[:4] == MAGIC:
            mark = read_exactly(stream, 4)
            if mark not in _ORDERS:
                raise CaptureError(f"section without a byte order: {mark.hex()}")
            order, interfaces = _ORDERS[mark], []
            body = mark + _rest(stream, order, head, len(mark))
        else:
            body = _rest(stream, order, head, 0)
        (kind,) = struct.unpack_from(order + "I", head)
        try:
            if kind == _INTERFACE:
                interfaces.append(_interface(order, body, source))
            elif kind in (_PACKET, _OBSOLETE_PACKET, _SIMPLE_PACKET):
                number += 1
                yield _frame(order, kind, body, interfaces, number)
        except (struct.error, IndexError):
            raise CaptureError(f"block of type {kind} does not hold what it says") from None
        head = stream.read(8)


def _rest(stream: BinaryIO, order: str, head: bytes, taken_bytes: int) -> bytes:
    """What a block holds behind its type and length."""
    (block_bytes,) = struct.unpack_from(order + "I", head, 4)
    body_bytes = block_bytes - _WIRE_GAP_BYTES - taken_bytes
    if block_bytes % 4 or body_bytes < 0 or block_bytes > _MAX_BLOCK_BYTES:
        raise CaptureError(f"block of {block_bytes} bytes: the file is damaged")
    return read_exactly(stream, body_bytes + 4)[:body_bytes]


def _interface(order: str, body: bytes, source: str) -> _Interface:
    link_type, _, snap_bytes = struct.unpack_from(order + "HHI", body)
    name, resolution, offset_s = "", 6, 0
    for code, value in _options(order, body[8:]):
        if code == _IF_NAME:
            name = value.decode(errors="replace").rstrip("\0")
        elif code == _IF_TSRESOL:
            resolution = value[0]
        elif code == _IF_TSOFFSET:
            (offset_s,) = struct.unpack(order + "q", value)
    power = resolution & 0x7F
    ticks_per_s = 2**power if resolution & 0x80 else 10**power
    source = f"{source}:{name}" if name else source
    return _Interface(link_type, snap_bytes, source, ticks_per_s, offset_s)


def _options(order: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(order + "HH", data, at)
        if code == 0:
            return
        yield code, data[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4


def _frame(
    order: str, kind: int, body: bytes, interfaces: list[_Interface], number: int
) -> CapturedFrame:
    ticks, index = 0, 0
    if kind == _SIMPLE_PACKET:  # no time, no length of its own
        (wire_bytes,) = struct.unpack_from(order + "I", body)
        data, held_bytes = body[4:], wire_bytes
        if interfaces[0].snap_bytes:
            held_bytes = min(held_bytes, interfaces[0].snap_bytes)
    else:
        places = "IIIII" if kind == _PACKET else "HHIIII"  # the older block counts drops, too
        numbers = struct.unpack_from(order + places, body)
        index, (high, low, held_bytes, wire_bytes) = numbers[0], numbers[-4:]
        ticks, data = high << 32 | low, body[20:]
    if held_bytes > len(data):
        raise CaptureError(f"frame {number} of {held_bytes} bytes in a block of {len(data)}")
    interface = interfaces[index]
    time_ns = ticks * _NS_PER_S // interface.ticks_per_s + interface.offset_s * _NS_PER_S
    return CapturedFrame(
        number,
        time_ns if kind != _SIMPLE_PACKET else 0,
        interface.link_type,
        data[:held_bytes],
        wire_bytes,
        interface.source,
    )
