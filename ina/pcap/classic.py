"""Classic pcap files (tcpdump, BMv2, the soft switch's pcap ports): times in µs or ns."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from ina.pcap.errors import CaptureError
from ina.pcap.frame import MAX_FRAME_BYTES, CapturedFrame, CutOff, read_exactly

MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),  # byte order, ns to a tick
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_NS_PER_S = 1_000_000_000
_LINK_TYPE_MASK = 0xFFFF  # the upper bits tell of a frame check sequence


def frames(magic: bytes, stream: BinaryIO, source: str) -> Iterator[CapturedFrame]:
    """Yields what follows the magic number. Raises CaptureError, CutOff."""
    order, ns_per_tick = MAGICS[magic]
    header, record = struct.Struct(order + "HHiIII"), struct.Struct(order + "IIII")
    *_, network = header.unpack(read_exactly(stream, header.size))
    number = 0
    while head := stream.read(record.size):
        number += 1
        if len(head) < record.size:
            raise CutOff
        seconds, ticks, held_bytes, wire_bytes = record.unpack(head)
        if held_bytes > MAX_FRAME_BYTES:
            raise CaptureError(f"a frame of {held_bytes} bytes: the file is damaged")
        data = read_exactly(stream, held_bytes)
        time_ns = seconds * _NS_PER_S + ticks * ns_per_tick
        yield CapturedFrame(number, time_ns, network & _LINK_TYPE_MASK, data, wire_bytes, source)
