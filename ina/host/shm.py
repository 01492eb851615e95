"""Shared memory with a switch on this host: how a worker attaches to the switch's port.

What both sides say is in native/common/shm_ring.hpp. The descriptors of the memory, this worker's
and that of all results, come with the answer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from ipaddress import IPv4Address

from ina.extension import shm
from ina.extension.host import Framing, RtoLimits, Transport, TransportOptions, WorkerConfig
from ina.host.errors import NoSwitchHereError, TransportError
from ina.protocol.peer import Peer

_UCRED = struct.Struct("=iII")  # pid, uid, gid
_TIMEVAL = struct.Struct("@ll")  # seconds, microseconds
_LEAST_CELLS = 512
_TIMEOUT_S = 15  # of a switch that is there; a machine may be very busy
_REFUSALS: dict[int, str] = {
    shm.Status.BAD_HELLO: "it is of another version of ina",
    shm.Status.NOT_ALLOWED: "this process belongs to another user",
    shm.Status.FULL: "it has too many workers",
    shm.Status.NO_MEMORY: "it has not enough memory",
}


class ShmLink:
    """The connection to a switch's shared-memory port, its memory and that of all results."""

    name = "shared memory"
    is_shm = True
    leads_to: Peer | None = None
    # Nothing is lost there, unless a test wants it: what is late waits for a processor.
    rto = RtoLimits(initial_ns=20_000_000, min_ns=10_000_000)
    framing = Framing()

    def __init__(
        self,
        sock: socket.socket,
        fds: tuple[int, int],
        cells: int,
        packet_bytes: int,
        welcome: shm.Welcome,
    ) -> None:
        self._socket = sock
        self._fds = fds
        self._cells, self._packet_bytes = cells, packet_bytes
        self.switch_port = welcome.switch_port
        self.own = Peer(IPv4Address(welcome.address), welcome.udp_port)

    def lead_to(self, node: Peer) -> None:
        """It leads to who has the memory, whatever addresses that goes by."""

    @classmethod
    def attach(cls, address: str, packets: int, packet_bytes: int) -> ShmLink:
        """Attach to the port at abstract Unix `address` ("@..."), for so many packets in flight.

        Raises NoSwitchHereError: nobody is at that address on this host (in this network
        namespace); TransportError: the switch refuses, or does not answer in 15 s.
        """
        where = f"shared memory of the switch at {address}"
        cells = cells_for(packets)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        fds: list[int] = []
        try:
            # Not settimeout(): with it, connect() fails at once where others are just connecting.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(_TIMEOUT_S, 0))
            sock.connect("\0" + address.removeprefix("@"))
            sock.settimeout(_TIMEOUT_S)
            _check_peer(sock, where)
            sock.sendall(shm.hello(cells, packet_bytes))
            data, fds, _, _ = socket.recv_fds(sock, shm.WELCOME_BYTES, 2)
            if len(data) != shm.WELCOME_BYTES:
                raise TransportError(f"{where}: it closed the connection")
            welcome = shm.read_welcome(data)
            if welcome is None:
                raise TransportError(f"{where}: {_REFUSALS[shm.Status.BAD_HELLO]}")
            if welcome.status or len(fds) != 2:
                why = _REFUSALS.get(welcome.status, f"status {welcome.status}")
                raise TransportError(f"{where}: refused: {why}")
            sock.settimeout(None)
            return cls(sock, (fds[0], fds[1]), cells, packet_bytes, welcome)
        except BaseException as error:
            sock.close()
            for fd in fds:
                os.close(fd)
            if isinstance(error, OSError):
                if error.errno == errno.ECONNREFUSED:
                    raise NoSwitchHereError(f"{where}: nobody is there on this host") from None
                raise TransportError(f"{where}: {error}") from None
            raise

    @property
    def is_listening(self) -> bool:
        """Never: each worker's results come to its own memory."""
        return False

    def stop_listening(self) -> None:
        """Nothing."""

    def set_dscp(self, dscp: int) -> None:
        """Nothing: no packet has an IP header before the switch makes one."""

    def transport(self, config: WorkerConfig, options: TransportOptions) -> Transport:
        """Start to work over it, with one thread: a ring has one end. Raises RuntimeError."""
        return Transport.shm(
            self._socket.fileno(),
            *self._fds,
            self._cells,
            self._packet_bytes,
            config,
            options,
        )

    def close(self) -> None:
        """Close the connection and the memory's descriptors. Idempotent."""
        self._socket.close()
        fds, self._fds = self._fds, (-1, -1)
        for fd in fds:
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)


def cells_for(packets: int) -> int:
    """Return how many cells, and frames, the memory has for a window of so many packets.

    Each packet and a copy of it: copies, sent because something was late, push nothing out. While
    the job changes to another mapping, both have their frames in it: there is room for one with
    twice the window, and for any small one.
    """
    wanted = 1 << (3 * packets - 1).bit_length()
    return min(max(wanted, _LEAST_CELLS), shm.MAX_CELLS)


def _check_peer(sock: socket.socket, where: str) -> None:
    """Any user may take an abstract address: trust only this process's user, and root."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(credentials)
    if uid not in (os.geteuid(), 0):
        raise TransportError(f"{where}: it belongs to another user (uid {uid})")
