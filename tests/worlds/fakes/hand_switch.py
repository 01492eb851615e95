"""The switch's side of shared memory, played by a test: it reads and answers when it likes."""

from __future__ import annotations

import mmap
import os
import socket
import struct
from dataclasses import dataclass, replace

from ina._native.host import RtoLimits, Transport, WorkerConfig
from ina.protocol.codec import Header, Values, decode, encode
from ina.protocol.spec import Flag, Kind
from tests.worlds.processes.shm_worker import (
    CONTROL_BYTES,
    HEADER_BYTES,
    IN_OWN_FRAME,
    LEAVE_CORE_OFFSET,
    LINE_BYTES,
    PAYLOAD_OFFSET,
    store_word,
)

CELLS, WINDOW, VALUES = 4096, 4, 4  # cells: many, for none is released
FRAME_BYTES = 2 * LINE_BYTES  # a line with the header at its end, one with the values
FRAMES_AT = 2 * CONTROL_BYTES + 2 * CELLS * LINE_BYTES
BYTES = FRAMES_AT + 2 * CELLS * FRAME_BYTES


@dataclass
class Cell:
    """What the worker has announced: a header of its own, and where the values are."""

    head: bytes
    rest_at: int


class HandSwitch:
    """The switch's side of the rings. It releases nothing: all that was announced can be seen."""

    def __init__(self) -> None:
        self._socket, self._worker_end = socket.socketpair()
        self._fd = os.memfd_create("rings")
        os.ftruncate(self._fd, BYTES)
        self._results_fd = os.memfd_create("results")
        os.ftruncate(self._results_fd, mmap.PAGESIZE)
        self.memory = mmap.mmap(self._fd, BYTES)
        self._answered = 0
        self.transport = Transport.shm(
            self._worker_end.fileno(), self._fd, self._results_fd,
            CELLS, HEADER_BYTES + 4 * VALUES,
            WorkerConfig(
                job=1, epoch=1, rank=0, world_size=1, slots=2 * WINDOW, values_per_packet=VALUES,
                stall_timeout_ns=120_000_000_000,
                rto=RtoLimits(initial_ns=5_000_000, min_ns=5_000_000),
            ),
        )  # fmt: skip

    def close(self) -> None:
        self.transport.close()
        self.memory.close()
        for end in (self._socket, self._worker_end):
            end.close()
        os.close(self._fd)
        os.close(self._results_fd)

    def cells(self) -> list[Cell]:
        (published,) = struct.unpack_from("=I", self.memory, 0)
        return [self._cell(position) for position in range(published)]

    def _cell(self, position: int) -> Cell:
        at = 2 * CONTROL_BYTES + position * LINE_BYTES
        _, _, rest_at = struct.unpack_from("=III", self.memory, at)
        return Cell(bytes(self.memory[at + PAYLOAD_OFFSET : at + LINE_BYTES]), rest_at)

    def packet(self, cell: Cell) -> tuple[Header, Values]:
        at = FRAMES_AT + cell.rest_at
        return decode(cell.head + bytes(self.memory[at : at + 4 * VALUES]))

    def answer(self, cell: Cell) -> None:
        """With the sum of one worker's values: these."""
        header, values = self.packet(cell)
        payload = encode(replace(header, kind=Kind.RESULT, flags=Flag(0)), values)
        at = 2 * CONTROL_BYTES + (CELLS + self._answered) * LINE_BYTES
        frame = FRAMES_AT + (CELLS + self._answered) * FRAME_BYTES
        struct.pack_into("=III", self.memory, at, len(payload), 0, IN_OWN_FRAME)
        self.memory[at + PAYLOAD_OFFSET : at + LINE_BYTES] = payload[:HEADER_BYTES]
        self.memory[frame + LINE_BYTES : frame + LINE_BYTES + 4 * VALUES] = payload[HEADER_BYTES:]
        self._answered += 1
        store_word(self.memory, CONTROL_BYTES, self._answered)
        self._socket.send(b"\0")

    def ask_to_leave(self, core: int) -> None:
        """1 + the core's number; seen by the worker when it sleeps next."""
        store_word(self.memory, CONTROL_BYTES + LEAVE_CORE_OFFSET, core)

    def of(self, seq: int) -> list[Cell]:
        return [cell for cell in self.cells() if self.packet(cell)[0].seq == seq]
