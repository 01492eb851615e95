"""A relay between one worker and the switch, where its packets can be seen and others put in.

To the switch the relay is the worker; to the worker it is the switch. So tests hold what an
attacker on the path, or one who can forge an address, would hold, without being root.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from ina.protocol.peer import Peer

MAX_BYTES = 65536
_POLL_S = 0.2
_BUFFER_BYTES = 4 << 20

Meddler = Callable[[bool, bytes], Sequence[bytes]]
"""What becomes of a payload: told whether it comes from the worker, says what is sent on."""


class _TappedSocket(socket.socket):
    """A worker's socket, which says the relay's address for its own."""

    tap: Tap

    def getsockname(self) -> Any:
        return self.tap.outer.getsockname()


class Tap:
    """Context manager; :meth:`open` stands in for :func:`ina.host.udp.open_socket`."""

    def __init__(self, host: str = "127.0.0.1", meddle: Meddler | None = None) -> None:
        self.host = host
        self._meddle = meddle or (lambda _, packet: (packet,))
        self.sent: deque[bytes] = deque(maxlen=4096)
        """The worker's last contributions."""
        self.inner = _bound("127.0.0.1")  # the worker's switch
        self.outer = _bound(host)  # the switch's worker
        self.worker: tuple[str, int] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._relay, daemon=True)

    def open(self, switch: Peer, own_host: str | None = None) -> Any:
        self.outer.connect(switch.place)
        sock = _TappedSocket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.tap = self
        sock.connect(self.inner.getsockname())
        self.worker = socket.socket.getsockname(sock)
        self._thread.start()
        return sock

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self.inner.close()
        self.outer.close()

    def _relay(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.inner, selectors.EVENT_READ)
            selector.register(self.outer, selectors.EVENT_READ)
            while not self._stopping.is_set():
                for key, _ in selector.select(_POLL_S):
                    self._forward(key.fileobj is self.inner)

    def _forward(self, from_worker: bool) -> None:
        source, target = (self.inner, self.outer) if from_worker else (self.outer, self.inner)
        try:
            while True:
                packet = source.recv(MAX_BYTES)
                if from_worker:
                    self.sent.append(packet)
                for one in self._meddle(from_worker, packet):
                    if from_worker:
                        target.send(one)
                    elif self.worker is not None:
                        target.sendto(one, self.worker)
        except BlockingIOError:
            pass
        except ConnectionRefusedError:
            pass  # one end is closing


def _bound(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock
