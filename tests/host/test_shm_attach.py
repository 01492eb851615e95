"""What a worker makes of the answer on a shared-memory port, from a switch written by hand."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from ina._native import shm
from ina.host.errors import NoSwitchHereError, TransportError
from ina.host.shm import ShmLink
from tests.worlds.processes.shm_worker import MAGIC, VERSION

NEWER = VERSION + 1


class Switch:
    """Answers one worker with `answer`, and as many descriptors as are wanted."""

    def __init__(self, answer: bytes, fd_count: int) -> None:
        self.address = f"@ina-test-{os.getpid()}-{threading.get_ident()}"
        self.heard = b""
        self._answer = answer
        self._fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(fd_count)]
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind("\0" + self.address[1:])
        self._socket.listen()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        worker, _ = self._socket.accept()
        with worker:
            self.heard = worker.recv(64)
            socket.send_fds(worker, [self._answer], self._fds)

    def close(self) -> None:
        self._thread.join(10)
        self._socket.close()
        for fd in self._fds:
            os.close(fd)


def welcome(status: int, version: int = VERSION) -> bytes:
    return struct.pack("=IIIIII", MAGIC, version, status, 7, 0x7F000001, 4711)


def test_both_sides_say_what_the_header_defines() -> None:
    with closing(Switch(welcome(0), 2)) as switch, closing(attach(switch)) as link:
        assert (link.switch_port, link.own.place) == (7, ("127.0.0.1", 4711))
    assert switch.heard == struct.pack("=IIII", MAGIC, VERSION, 512, 1024)


def attach(switch: Switch) -> ShmLink:
    return ShmLink.attach(switch.address, 100, 1024)


@pytest.fixture
def descriptors() -> Iterator[None]:
    """None may stay open."""
    before = os.listdir("/proc/self/fd")
    yield
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize(
    ("answer", "fd_count", "why"),
    [
        (welcome(shm.Status.BAD_HELLO), 0, "refused: it is of another version of ina"),
        (welcome(shm.Status.NOT_ALLOWED), 0, "refused: this process belongs to another user"),
        (welcome(shm.Status.FULL), 0, "refused: it has too many workers"),
        (welcome(shm.Status.NO_MEMORY), 0, "refused: it has not enough memory"),
        (welcome(99), 0, "refused: status 99"),
        (welcome(shm.Status.ATTACHED), 1, "refused: status 0"),
        (welcome(shm.Status.ATTACHED, NEWER), 2, "it is of another version of ina"),
        (welcome(shm.Status.ATTACHED)[:-1], 2, "it closed the connection"),
    ],
)
def test_a_refusal_is_told(answer: bytes, fd_count: int, why: str) -> None:
    with closing(Switch(answer, fd_count)) as switch:
        with pytest.raises(TransportError) as told:
            attach(switch)
        assert str(told.value) == f"shared memory of the switch at {switch.address}: {why}"


def test_nobody_there() -> None:
    with pytest.raises(NoSwitchHereError, match="nobody is there on this host"):
        ShmLink.attach(f"@ina-test-{os.getpid()}-nobody", 100, 1024)
