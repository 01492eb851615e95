"""One frame of a capture file, and reading a stream that may end too early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from ina.errors import InvalidInputError

MAX_FRAME_BYTES = 1 << 20
"""More than any link or super-frame has: a larger length means a damaged file."""


class CutOff(Exception):  # noqa: N818 (the end of a file that is still written is no error)
    """The file ends inside a record."""


@dataclass(frozen=True)
class CapturedFrame:
    """``data`` holds the first bytes of a frame of ``wire_bytes`` bytes; more were not kept."""

    number: int  # in its file, from 1
    time_ns: int  # since 1970; 0 where the file has no time
    link_type: int  # LINKTYPE_* of tcpdump.org
    data: bytes
    wire_bytes: int
    source: str  # the file's name, and the interface's where the file says it


def read_exactly(stream: BinaryIO, count_bytes: int) -> bytes:
    """Returns as many bytes. Raises CutOff when there are fewer."""
    data = stream.read(count_bytes)
    if len(data) < count_bytes:
        raise CutOff
    return data


class CaptureError(InvalidInputError):
    """Not a capture file, or one that is damaged."""
