"""Contributions to one job, made in the kernel, of which each is the next one's turn."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import numpy as np

from ina.bench.pipeline_frames import CHUNKS, FRAME_HEADER_BYTES, Batch
from ina.protocol.spec import HEADER_BYTES
from ina.switch.xdp.compile import built
from ina.switch.xdp.libbpf import Object

SOURCE = Path(__file__).with_suffix(".c")
_ALL = FRAME_HEADER_BYTES + HEADER_BYTES
_WORD_BYTES = 8
_ZERO = bytes(4)
_POLL_FRAMES, _MOST_IN_A_BATCH = 64, 256
"""That an interface hands over at once, as NAPI has it; that the kernel makes at once."""


class Turns:
    """Frames of a job of so many workers, each of whose rounds fills all slots. A context manager.

    The program that makes them counts them, so that sequence numbers go on from call to call.
    """

    def __init__(self, values: int, workers: int) -> None:
        """Raises CompilerMissingError, CompilationError, XdpError."""
        self.macros = {"VALUES": values, "WORKERS": workers, "SLOTS": CHUNKS}
        self.batch = Batch(values, workers, np.random.default_rng(1))
        self.batch.set_round(1)
        self.frames = [it.tobytes() for it in self.batch.frames.reshape(-1, self.batch.frame_bytes)]
        self.kernel = Object(built(SOURCE, self.macros))
        for number, frame in enumerate(self.frames):
            head = frame[:_ALL].ljust(-(-_ALL // _WORD_BYTES) * _WORD_BYTES, b"\0")
            self.kernel.maps["heads"].write(struct.pack("<I", number), head)

    def __enter__(self) -> Turns:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kernel.close()

    @property
    def nothing(self) -> int:
        """A program that drops whatever comes."""
        return self.kernel.program("nothing")

    def measure(self, program: int, count: int) -> int:
        """Nanoseconds that a frame takes in a program, which may send it nowhere; of so many."""
        self.kernel.maps["programs"].write(_ZERO, struct.pack("<i", program))
        return self.kernel.run("call", self.frames[0], repeat=count).duration_ns

    def send_by(self, ways: Mapping[int, int]) -> None:
        """``ways``: by worker, an interface of the network namespace that this thread is in."""
        for worker, index in ways.items():
            key, value = struct.pack("<I", worker), struct.pack("<I", index)
            self.kernel.maps["ways"].write(key, value)

    def send(self, count: int) -> None:
        """So many frames, each by its worker's interface. Raises XdpError."""
        batch = min(_POLL_FRAMES * self.macros["WORKERS"], _MOST_IN_A_BATCH)
        self.kernel.send("send", self.frames[0], count=count, batch=batch)
