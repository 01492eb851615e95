"""What CRC-32 costs by itself: of as many bytes as a RoCEv2 packet's ICRC covers, in memory."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from functools import reduce
from operator import xor

from ina.bench.pipeline_frames import Bytes
from ina.errors import InaError
from ina.switch.targets import bare_crc


class WrongCrcError(InaError):
    """zlib says otherwise."""


@dataclass(frozen=True)
class CrcCost:
    """CPU time of one core, of one CRC."""

    ours_ns: float
    zlib_ns: float


class CrcBench:
    """The last bytes of some frames but their trailer."""

    def __init__(self, frames: Bytes, size_bytes: int, trailer_bytes: int) -> None:
        """``frames``: by chunk and worker, one behind the other. Raises as
        :func:`~ina.switch.targets.bare_crc`."""
        self._crc, self._size_bytes = bare_crc(), size_bytes
        first = frames.shape[-1] - trailer_bytes - size_bytes
        self._covered = frames[:, :, first : first + size_bytes]

    def measure(self, rounds: int) -> CrcCost:
        """Raises WrongCrcError."""
        each = [row for of_chunk in self._covered for row in of_chunk]
        at, stride_bytes = self._covered.ctypes.data, self._covered.strides[1]
        start = time.thread_time_ns()
        for _ in range(rounds):
            ours = self._crc.of_each(at, stride_bytes, self._size_bytes, len(each))
        between = time.thread_time_ns()
        for _ in range(rounds):
            theirs = [zlib.crc32(row) for row in each]
        end = time.thread_time_ns()
        for _ in range(rounds):
            empty = [zlib.crc32(b"") for _ in each]  # what a call takes
        last = time.thread_time_ns()
        assert not any(empty)
        if ours != reduce(xor, theirs):
            raise WrongCrcError(f"CRC {ours:#x} of {len(each)} frames is not what zlib says")
        total = rounds * len(each)
        return CrcCost((between - start) / total, (end - between - (last - end)) / total)
