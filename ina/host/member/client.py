"""The controller's service as a worker calls it, whatever carries the calls. No I/O.

Every call but Watch has a deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
from google.protobuf.message import Message

from ina.errors import InaError
from ina.host.calls import (
    JOIN_GRACE_S,
    Credentials,
    RemapWord,
    error_of,
    heartbeat_request,
    leave_request,
    remap_request,
    watch_request,
)
from ina.host.errors import ControllerUnavailableError
from ina.rpc import controller_pb2 as pb2

CALL_TIMEOUT_S = 10.0
"""Of calls that say no other."""
SILENT_S = 3.0
"""With several controllers: how long a silent one (its host is down) holds up the next."""


class CallError(Exception):
    """A call ended with this status; ``details``: one line."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code, self.details = code, details


@dataclass(frozen=True)
class Trouble:
    """What keeps a worker from a connection to a controller."""

    text: str
    may_mend: bool = True
    """Without somebody's help."""


class Events(Protocol):
    """A stream of what happens to a job. Its coroutines raise CallError when it breaks."""

    async def begins(self) -> bool:
        """Until the controller says that it has the stream; False: it broke before."""

    async def next(self) -> pb2.JobEvent | None:
        """The next event; None: it has ended."""

    def cancel(self) -> None:
        """Break it, from any thread. Idempotent."""


class Wire(Protocol):
    """The ways to one controller, or to several of which one is the primary, by number."""

    @property
    def addresses(self) -> Sequence[str]:
        """Where they lead, for people."""

    async def call(self, way: int, method: str, request: Message, timeout_s: float) -> Any:
        """The reply. Raises CallError."""

    def watch(self, way: int, request: pb2.WatchRequest) -> Events:
        """Open a stream."""

    async def trouble(self, way: int) -> Trouble | None:
        """Why nobody answers there, in words for people; None: that is not known."""

    async def is_refused(self, way: int) -> bool:
        """Whether nothing listens there any more. A silent host refuses nothing."""

    def ping(self, lease_s: float) -> None:
        """From now on streams break when the controller's process is silent for a lease.

        Not while calls are under way.
        """

    def close(self) -> None:
        """No calls any more. Idempotent."""


class EventStream:
    """The events of one job, until it ends or the stream breaks; raises what calls raise."""

    def __init__(self, what: str, events: Events) -> None:
        """``what``: whose stream, and what for."""
        self._what = what
        self._events = events

    async def begins(self) -> bool:
        """Until the controller says that it has the stream; False: it broke before."""
        return await self._events.begins()

    async def next(self) -> pb2.JobEvent | None:
        """The next event; None: it has ended."""
        try:
            return await self._events.next()
        except CallError as error:
            raise error_of(error.code, f"{self._what}: {error.details}", 0.0) from None

    def cancel(self) -> None:
        """Break it, from any thread. Idempotent."""
        self._events.cancel()


class ControllerClient:
    """Calls one controller, or several of which one is the primary.

    Calls go to one address until :meth:`try_next`. They raise ControllerUnavailableError (away, or
    a standby: worth another try), ControllerTimeoutError, MembershipEndedError (NOT_FOUND),
    ControllerError.
    """

    def __init__(self, wire: Wire, process: str, *, timeout_s: float = CALL_TIMEOUT_S) -> None:
        """``process``: what people know this worker's by; ``timeout_s``: of Leave."""
        self.wire = wire
        self.process = process
        self._timeout_s = timeout_s
        self._way = 0

    @property
    def address(self) -> str:
        """Where calls go now."""
        return self.wire.addresses[self._way]

    @property
    def has_others(self) -> bool:
        """Whether :meth:`try_next` leads elsewhere."""
        return len(self.wire.addresses) > 1

    def try_next(self) -> None:
        """Let the next calls go to the next address."""
        self._way = (self._way + 1) % len(self.wire.addresses)

    async def trouble(self) -> Trouble | None:
        """Why nobody answers where calls go, in words for people; None: that is not known."""
        return await self.wire.trouble(self._way)

    async def is_refused(self) -> bool:
        """Whether nothing listens any more where calls go."""
        return await self.wire.is_refused(self._way)

    async def create_job(
        self, request: pb2.CreateJobRequest, timeout_s: float
    ) -> pb2.CreateJobReply:
        """Create the job unless it exists; returns where the switch is and the granted slots."""
        what = f"create job {request.name!r}"
        reply: pb2.CreateJobReply = await self._call("CreateJob", what, request, timeout_s)
        return reply

    async def join(self, request: pb2.JoinRequest) -> pb2.JoinReply:
        """Join and wait up to `request.timeout_s` for the others and the switch's tables."""
        what = f"join job {request.name!r} as rank {request.rank}"
        timeout_s = request.timeout_s + JOIN_GRACE_S
        reply: pb2.JoinReply = await self._call(
            "Join", what, request, timeout_s, may_be_silent=True
        )
        return reply

    async def heartbeat(
        self, credentials: Credentials, progress: pb2.Progress, timeout_s: float
    ) -> pb2.HeartbeatReply:
        """Renew the worker's lease and say how it gets on."""
        what = f"keep job {credentials.name!r} rank {credentials.rank} alive"
        request = heartbeat_request(credentials, progress, self.process)
        reply: pb2.HeartbeatReply = await self._call("Heartbeat", what, request, timeout_s)
        return reply

    async def remap(
        self, credentials: Credentials, word: RemapWord, timeout_s: float
    ) -> pb2.Mapping | None:
        """Say how far a change of the job's mapping is; returns the other one, if there is one."""
        what = f"change the mapping of job {credentials.name!r} at rank {credentials.rank}"
        request = remap_request(credentials, word)
        reply: pb2.RemapReply = await self._call("Remap", what, request, timeout_s)
        return reply.mapping if reply.HasField("mapping") else None

    def watch(self, credentials: Credentials) -> EventStream:
        """Open the stream of what happens to the worker's job."""
        whose = f"job {credentials.name!r} rank {credentials.rank}"
        what = f"controller {self.address}: cannot watch {whose}"
        return EventStream(what, self.wire.watch(self._way, watch_request(credentials)))

    async def leave(
        self,
        credentials: Credentials,
        progress: pb2.Progress | None = None,
        error: InaError | None = None,
    ) -> None:
        """Leave the job; the last one to leave frees its slots. Tries each address once.

        `progress`: as far as this worker came; None: nobody needs to know. `error`: for which it
        gives up.
        """
        request = leave_request(credentials, progress, error)
        what = f"leave job {credentials.name!r} as rank {credentials.rank}"
        for tries_left in reversed(range(len(self.wire.addresses))):
            try:
                await self._call("Leave", what, request, self._timeout_s)
                return
            except ControllerUnavailableError:
                if not tries_left:
                    raise
                self.try_next()

    async def _call(
        self, method: str, what: str, request: Message, timeout_s: float,
        *, may_be_silent: bool = False,
    ) -> Any:  # fmt: skip
        address, bounded_s = self.address, timeout_s
        if self.has_others and not may_be_silent:
            bounded_s = min(timeout_s, SILENT_S)
        try:
            return await self.wire.call(self._way, method, request, bounded_s)
        except CallError as error:
            message = f"controller {address}: cannot {what}: {error.details}"
            if error.code == grpc.StatusCode.DEADLINE_EXCEEDED and bounded_s < timeout_s:
                message = f"{message} (after {bounded_s:g} s)"
                raise ControllerUnavailableError(message) from None
            raise error_of(error.code, message, bounded_s) from None
