"""A worker of a shared-memory port that does as the test says, also what it should not.

Written from the comments of native/common/shm_ring.hpp, apart from the product's own code.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
import time
from dataclasses import dataclass

MAGIC, VERSION = 0x696E6173, 2
CONTROL_BYTES, LINE_BYTES, HEADER_BYTES = 192, 64, 32
PAYLOAD_OFFSET = LINE_BYTES - HEADER_BYTES
IN_OWN_FRAME = 0xFFFFFFFF
LEAVE_CORE_OFFSET = 4
"""In a ring's control: behind the producer's position, the core that the consumer is to leave."""
DEADLINE_S = 30.0


def store_word(memory: mmap.mmap, at: int, value: int) -> None:
    """At once: struct.pack_into fills with zeros first, and the other side may look between."""
    with memoryview(memory) as bytes_, bytes_[at : at + 4] as word, word.cast("I") as words:
        words[0] = value


@dataclass(frozen=True)
class Welcome:
    status: int
    switch_port: int
    address: int
    udp_port: int
    memory_fd: int  # -1: none came
    results_fd: int


def connect(name: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect("\0" + name)
    sock.settimeout(DEADLINE_S)
    return sock


def say_hello(
    sock: socket.socket, cells: int, payload_bytes: int, *, version: int = VERSION
) -> Welcome:
    sock.sendall(struct.pack("=IIII", MAGIC, version, cells, payload_bytes))
    data, fds, _, _ = socket.recv_fds(sock, 24, 2)
    magic, said, status, switch_port, address, udp_port = struct.unpack("=IIIIII", data)
    assert (magic, said) == (MAGIC, VERSION)
    memory_fd, results_fd = fds or (-1, -1)
    return Welcome(status, switch_port, address, udp_port, memory_fd, results_fd)


class ShmWorker:
    """One side of the rings, in plain sight."""

    def __init__(self, name: str, cells: int = 64, payload_bytes: int = 256) -> None:
        self.sock = connect(name)
        self.welcome = say_hello(self.sock, cells, payload_bytes)
        assert self.welcome.status == 0
        self.cells = cells
        self.frame_bytes = -(-(PAYLOAD_OFFSET + payload_bytes) // LINE_BYTES) * LINE_BYTES
        self.memory_fd = self.welcome.memory_fd
        self.memory = mmap.mmap(self.memory_fd, 0)
        self.frames_at = 2 * CONTROL_BYTES + 2 * cells * LINE_BYTES
        assert len(self.memory) == self.frames_at + 2 * cells * self.frame_bytes
        self.results = mmap.mmap(self.welcome.results_fd, 0, prot=mmap.PROT_READ)
        self.shared = 0
        """Packets taken whose values were in the results' area."""
        self.sent = self.received = 0

    def close(self) -> None:
        self.sock.close()
        self.memory.close()
        self.results.close()
        os.close(self.memory_fd)
        os.close(self.welcome.results_fd)

    def control(self, ring: int, line: int) -> int:
        """Ring 0: to the switch, 1: to the worker. Line 0: published, 1: released, 2: wanted."""
        at = ring * CONTROL_BYTES + line * LINE_BYTES
        return int(struct.unpack_from("=I", self.memory, at)[0])

    def core_to_leave(self) -> int:
        """1 + its number; 0: none."""
        return int(struct.unpack_from("=I", self.memory, CONTROL_BYTES + LEAVE_CORE_OFFSET)[0])

    def set_control(self, ring: int, line: int, value: int) -> None:
        at = ring * CONTROL_BYTES + line * LINE_BYTES
        store_word(self.memory, at, value & 0xFFFFFFFF)

    def cell(self, ring: int, position: int) -> int:
        index = position % self.cells
        return 2 * CONTROL_BYTES + (ring * self.cells + index) * LINE_BYTES

    def frame(self, ring: int, position: int) -> int:
        """Ring 0: where the worker may build that packet. Ring 1: the cell's own frame."""
        index = position % self.cells
        return self.frames_at + (ring * self.cells + index) * self.frame_bytes

    def write(
        self, payload: bytes, *, bytes_said: int | None = None, rest_at: int | None = None
    ) -> None:
        """Into the next cell, not yet published."""
        cell, rest = self.cell(0, self.sent), self.frame(0, self.sent) + LINE_BYTES
        length = len(payload) if bytes_said is None else bytes_said
        at = rest - self.frames_at if rest_at is None else rest_at
        struct.pack_into("=III", self.memory, cell, length, 0, at)
        head, tail = payload[:HEADER_BYTES], payload[HEADER_BYTES:]
        self.memory[cell + PAYLOAD_OFFSET : cell + PAYLOAD_OFFSET + len(head)] = head
        self.memory[rest : rest + len(tail)] = tail
        self.sent += 1

    def publish(self) -> None:
        self.set_control(0, 0, self.sent)
        self.wake()

    def wake(self) -> None:
        """Always: a worker need not look whether the switch sleeps."""
        self.sock.send(b"\0")

    def send(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.write(payload)
        self.publish()

    def take(self) -> tuple[bytes, bool]:
        """The next packet from the switch, and whether it is marked."""
        end = time.monotonic() + DEADLINE_S
        while self.control(1, 0) == self.received & 0xFFFFFFFF:
            assert time.monotonic() < end, "nothing came from the switch"
            time.sleep(0.0005)
        cell = self.cell(1, self.received)
        length, marked, rest_at = struct.unpack_from("=III", self.memory, cell)
        head_at = cell + PAYLOAD_OFFSET
        head = self.memory[head_at : head_at + min(length, HEADER_BYTES)]
        tail_bytes = max(length - HEADER_BYTES, 0)
        if rest_at == IN_OWN_FRAME:
            rest = self.frame(1, self.received) + LINE_BYTES
            tail = self.memory[rest : rest + tail_bytes]
        else:
            tail = self.results[rest_at : rest_at + tail_bytes]
            self.shared += 1
        payload = bytes(head) + bytes(tail)
        self.received += 1
        self.set_control(1, 1, self.received)
        return payload, bool(marked)

    def is_dropped(self) -> bool:
        """Whether the switch has closed the connection; bytes that wake are read and ignored."""
        self.sock.setblocking(False)
        try:
            return self.sock.recv(4096) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        finally:
            self.sock.settimeout(DEADLINE_S)
