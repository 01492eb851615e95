"""Capture files, frame by frame: pcap and pcapng, told apart by their first four bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ina.pcap import pcapng
from ina.pcap.frame import MAX_FRAME_BYTES, CapturedFrame, CaptureError, CutOff, read_exactly

__all__ = ["Capture", "CapturedFrame"]


CLASSIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),  # byte order, ns to a tick
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_NS_PER_S = 1_000_000_000
_LINK_TYPE_MASK = 0xFFFF  # the upper bits tell of a frame check sequence


def _classic_frames(magic: bytes, stream: BinaryIO, source: str) -> Iterator[CapturedFrame]:
    """Yields what follows the magic number of a classic file. Raises CaptureError, CutOff."""
    order, ns_per_tick = CLASSIC[magic]
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


class Capture:
    """The frames of one file, each time anew.

    A file that ends inside a frame (its capture is running, or was killed) gives the frames before
    it; ``cut_off`` then says so. Iterating raises CaptureError (no capture, a damaged one) and
    OSError (no such file).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut_off = ""

    def __iter__(self) -> Iterator[CapturedFrame]:
        self.cut_off = ""
        number = 0
        with self.path.open("rb") as stream:
            try:
                for frame in self._frames(stream):
                    number = frame.number
                    yield frame
            except CutOff:
                self.cut_off = f"{self.path}: ends in the middle of frame {number + 1}"
            except CaptureError as error:
                where = f"after frame {number}: " if number else ""
                raise CaptureError(f"{self.path}: {where}{error}") from None

    def _frames(self, stream: BinaryIO) -> Iterator[CapturedFrame]:
        magic = stream.read(4)
        source = self.path.name
        if magic in CLASSIC:
            return _classic_frames(magic, stream, source)
        if magic == pcapng.MAGIC:
            return pcapng.frames(stream, source)
        raise CaptureError(f"neither pcap nor pcapng: it begins with {magic.hex() or 'nothing'}")
