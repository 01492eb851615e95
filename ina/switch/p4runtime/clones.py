"""Clone sessions of the packet replication engine."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from ina.switch.ir.turns import SESSION_BITS
from ina.switch.p4runtime.multicast import replicas_of
from ina.switch.p4runtime.status import exists, invalid, not_found, unimplemented
from ina.switch.pipeline import Pipeline


class CloneStore:
    """The sessions that were written; the caller holds the device's lock.

    A program that makes no clones takes sessions, too: controllers write them for every switch.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._sessions: dict[int, p4r.CloneSessionEntry] = {}

    def insert(self, entry: p4r.CloneSessionEntry) -> None:
        """Add a session."""
        if entry.session_id in self._sessions:
            raise exists(f"clone session {entry.session_id} is there already")
        self._set(entry)

    def modify(self, entry: p4r.CloneSessionEntry) -> None:
        """Replace a session."""
        self._require(entry.session_id)
        self._set(entry)

    def delete(self, entry: p4r.CloneSessionEntry) -> None:
        """Remove a session: its clones are made no more."""
        self._require(entry.session_id)
        self._pipeline.set_clone_session(entry.session_id, ())
        del self._sessions[entry.session_id]

    def read(self, request: p4r.CloneSessionEntry) -> Iterator[p4r.CloneSessionEntry]:
        """One session, or all (id 0), as they were written."""
        if request.session_id == 0:
            yield from self._sessions.values()
        elif request.session_id in self._sessions:
            yield self._sessions[request.session_id]

    def _require(self, session: int) -> None:
        if session not in self._sessions:
            raise not_found(f"no clone session {session}")

    def _set(self, entry: p4r.CloneSessionEntry) -> None:
        what = f"clone session {entry.session_id}"
        if not 0 < entry.session_id < 1 << SESSION_BITS:
            raise invalid(f"{what}: not in 1..{(1 << SESSION_BITS) - 1}")
        if entry.class_of_service:
            raise unimplemented(f"{what}: class of service {entry.class_of_service}")
        if entry.packet_length_bytes < 0:
            raise invalid(f"{what}: {entry.packet_length_bytes} bytes is negative")
        replicas = replicas_of(entry.replicas, what)
        self._pipeline.set_clone_session(entry.session_id, replicas, entry.packet_length_bytes)
        self._sessions[entry.session_id] = stored = p4r.CloneSessionEntry()
        stored.CopyFrom(entry)
