"""Writes what passes each switch port to a pcap file: ``python -m ina.emulate.capture`` in ``net``.

Both directions are in one file, which Wireshark, tcpdump and ``ina pcap`` read. One thread of
Python keeps up with some 50,000 packets a second; what it misses is counted and told at the end.
"""

from __future__ import annotations

import selectors
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ina.errors import InaError, InvalidInputError

_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_BUFFER_BYTES = 32 << 20
_MAX_FRAME_BYTES = 1 << 16
_PCAP_MAGIC_NS, _LINKTYPE_ETHERNET = 0xA1B23C4D, 1
_BATCH = 256
_FLUSH_S = 0.5


def capture_command(folder: Path, interfaces: Sequence[str]) -> list[str]:
    """The command line; it writes ``folder/INTERFACE.pcap``, and prints ``ready`` when it does."""
    return [sys.executable, "-m", "ina.emulate.capture", str(folder), *interfaces]


class _Tap:
    """One interface and its file."""

    def __init__(self, interface: str, file: BinaryIO) -> None:
        self.interface, self._file = interface, file
        self.written = self.missed = 0
        file.write(
            struct.pack(
                "<IHHiIII", _PCAP_MAGIC_NS, 2, 4, 0, 0, _MAX_FRAME_BYTES, _LINKTYPE_ETHERNET
            )
        )
        # Protocol 0: nothing arrives before bind(), so no other interface's frames get in.
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self.sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.sock.setblocking(False)
        try:
            self.sock.bind((interface, _ETH_P_ALL))
        except OSError as error:
            raise InvalidInputError(f"interface {interface}: {error.strerror}") from None

    def drain(self) -> None:
        """Writes what waits, up to a batch: the others get their turn."""
        for _ in range(_BATCH):
            try:
                frame, control, _, _ = self.sock.recvmsg(_MAX_FRAME_BYTES, 64)
            except BlockingIOError:
                return
            except OSError:  # the interface is gone: the end is near
                return
            seconds = nanoseconds = 0
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                    seconds, nanoseconds = struct.unpack("qq", data[:16])
            self._file.write(
                struct.pack("<IIII", seconds & 0xFFFFFFFF, nanoseconds, len(frame), len(frame))
            )
            self._file.write(frame)
            self.written += 1

    def flush(self) -> None:
        """Lets readers see what is there; counts what the kernel dropped (reading resets it)."""
        self._file.flush()
        said = self.sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self.missed += struct.unpack("II", said)[1]


def main(arguments: Sequence[str]) -> int:
    """Captures until SIGTERM."""
    folder, interfaces = Path(arguments[0]), arguments[1:]
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    selector = selectors.DefaultSelector()
    taps = []
    for interface in interfaces:
        tap = _Tap(interface, (folder / f"{interface}.pcap").open("wb"))
        selector.register(tap.sock, selectors.EVENT_READ, tap)
        taps.append(tap)
    print("ready", flush=True)
    while not stopping:
        for key, _ in selector.select(_FLUSH_S):
            key.data.drain()
        if not stopping and not selector.select(0):
            for tap in taps:
                tap.flush()
    for tap in taps:
        tap.drain()
        tap.flush()
        missed = f", {tap.missed} missed: the machine was too busy" if tap.missed else ""
        print(f"{tap.interface}: {tap.written} packets{missed}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InaError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
