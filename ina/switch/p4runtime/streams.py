"""How many P4Runtime streams may be open, so that none of their owners locks the others out.

A stream holds two threads for as long as it lives, and costs its owner nothing. So there is a limit
by peer address and one for all; at a limit, the stream that has been open longest without saying
who it is (no arbitration) gives way to the new one.
"""

from __future__ import annotations

import threading
from typing import Protocol

from finsy.proto import rpc_code

from ina.switch.p4runtime.status import StatusError

MAX_STREAMS_A_PEER = 16
MAX_STREAMS = 32


class Stream(Protocol):
    """What is limited."""

    peer: str
    """Its client's address, without the port."""

    @property
    def introduced(self) -> bool:
        """Whether its client has arbitrated."""

    def expel(self, why: StatusError) -> None:
        """Ends it soon; does not block."""


class StreamLimit:
    """The open streams of one server, oldest first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[Stream] = []

    def enter(self, stream: Stream) -> None:
        """Makes room and lets it in; StatusError (RESOURCE_EXHAUSTED): there is no room."""
        with self._lock:
            mine = [other for other in self._open if other.peer == stream.peer]
            if len(mine) >= MAX_STREAMS_A_PEER:
                self._make_room(mine, f"{stream.peer} has {MAX_STREAMS_A_PEER} streams open")
            elif len(self._open) >= MAX_STREAMS:
                self._make_room(self._open, f"{MAX_STREAMS} streams are open")
            self._open.append(stream)

    def leave(self, stream: Stream) -> None:
        """It has ended; nothing happens if it had not entered, or was expelled."""
        with self._lock:
            if stream in self._open:
                self._open.remove(stream)

    def _make_room(self, among: list[Stream], why: str) -> None:
        for stream in among:
            if not stream.introduced:
                self._open.remove(stream)
                stream.expel(_exhausted(f"{why}, and this one had said nothing for longest"))
                return
        raise _exhausted(f"{why} already")


def _exhausted(why: str) -> StatusError:
    return StatusError(rpc_code.RESOURCE_EXHAUSTED, why)
