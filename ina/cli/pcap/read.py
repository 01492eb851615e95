"""What `ina pcap` reads: files merged by time, filtered, counted."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ina.cli.common.progress import Progress, progress
from ina.errors import InvalidInputError
from ina.pcap import Capture, CapturedFrame, Packet, contents_of
from ina.protocol.spec import Kind

_FRAMES_TO_TELL = 10_000


@dataclass(frozen=True)
class Filter:
    """Which packets are wanted; None: any."""

    job: int | None
    slot: int | None
    worker: int | None
    seq: int | None
    kind: Kind | None

    def passes(self, packet: Packet) -> bool:
        """A packet without a header passes only where nothing is asked for.

        A result to all is for each worker, too.
        """
        names = ["job", "slot", "seq", "kind"]
        if packet.header is None or not packet.header.is_to_all:
            names.append("worker")
        for name in names:
            wanted = getattr(self, name)
            if wanted is not None and wanted != getattr(packet.header, name, None):
                return False
        return True


class CaptureFiles:
    """The packets of ina in several captures. Reading raises CaptureError, OSError."""

    def __init__(self, paths: list[Path], udp_ports: Collection[int]) -> None:
        for port in udp_ports:
            if not 0 < port < 1 << 16:
                raise InvalidInputError(f"--udp-port {port}: not in 1..65535")
        self._captures = [Capture(path) for path in paths]
        self._udp_ports = frozenset(udp_ports)
        self._frames = self._others = self._others_roce = 0
        self._packets = self._bad = self._spoilt = 0
        self._told: Progress | None = None

    def packets(self) -> Iterator[Packet]:
        """In the order of their times; of one file, in its own order."""
        for frame in self._merged():
            self._frames += 1
            self._tell()
            found = contents_of(frame, self._udp_ports)
            self._others += not found.packets
            self._others_roce += found.is_roce and not found.packets
            for packet in found.packets:
                self._packets += 1
                self._spoilt += packet.is_spoilt
                self._bad += bool(packet.problem) and not packet.is_spoilt
                yield packet

    def _merged(self) -> Iterator[CapturedFrame]:
        if len(self._captures) == 1:
            return iter(self._captures[0])
        return heapq.merge(*self._captures, key=lambda frame: frame.time_ns)

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Says how many frames were read, meanwhile."""
        with progress("reading") as self._told:
            try:
                yield
            finally:
                self._told = None

    def _tell(self) -> None:
        if self._told is not None and self._frames % _FRAMES_TO_TELL == 0:
            self._told.update(f"{self._frames:,} frames read")

    def say_what_was_read(self) -> None:
        """One line on stderr, and one for each file that ended too early."""
        for capture in self._captures:
            if capture.cut_off:
                print(f"{capture.cut_off}; what is before it was read", file=sys.stderr)
        said = f"{self._packets} packets of ina, {self._bad} of them malformed"
        said += f", {self._spoilt} with a wrong ICRC" if self._spoilt else ""
        said += f"; {self._others} frames of other traffic"
        said += f", {self._others_roce} of them RoCEv2" if self._others_roce else ""
        print(said, file=sys.stderr)
