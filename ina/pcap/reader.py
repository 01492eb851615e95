"""Capture files, frame by frame: pcap and pcapng, told apart by their first four bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ina.pcap import classic, pcapng
from ina.pcap.errors import CaptureError
from ina.pcap.frame import CapturedFrame, CutOff

__all__ = ["Capture", "CapturedFrame"]


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
        if magic in classic.MAGICS:
            return classic.frames(magic, stream, source)
        if magic == pcapng.MAGIC:
            return pcapng.frames(stream, source)
        raise CaptureError(f"neither pcap nor pcapng: it begins with {magic.hex() or 'nothing'}")
