"""What :class:`ina.host.client.ControllerClient` is to a worker, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from ina.sim.rpc import CallError, Connection, Stream

CALL_TIMEOUT_S = 10.0
SILENT_S = 3.0
"""With several controllers: how long a silent one holds up the next."""


class SimClient:
    """Calls go to one controller until :meth:`try_next`; they raise what ControllerClient's do."""

    def __init__(self, process_name: str, connections: Sequence[Connection]) -> None:
        """``process_name``: what people know the worker's process by."""
        self._connections = list(connections)
        self._current = 0
        self._process_name = process_name

    @property
    def address(self) -> str:
        """Where calls go now."""
        return self._connections[self._current].server.address

    @property
    def has_others(self) -> bool:
        """Whether :meth:`try_next` leads elsewhere."""
        return len(self._connections) > 1

    def try_next(self) -> None:
        """Let the next calls go to the next address."""
        self._current = (self._current + 1) % len(self._connections)

    async def create_job(
        self, request: pb2.CreateJobRequest, timeout_s: float
    ) -> pb2.CreateJobReply:
        """Create the job unless it exists."""
        what = f"create job {request.name!r}"
        reply: pb2.CreateJobReply = await self._call("CreateJob", what, request, timeout_s)
        return reply

    async def join(self, request: pb2.JoinRequest) -> pb2.JoinReply:
        """Join and wait for the others."""
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
        request = heartbeat_request(credentials, progress, self._process_name)
        reply: pb2.HeartbeatReply = await self._call("Heartbeat", what, request, timeout_s)
        return reply

    async def remap(
        self, credentials: Credentials, word: RemapWord, timeout_s: float
    ) -> pb2.Mapping | None:
        """Say how far a change of the job's mapping is; the other one, if there is one."""
        what = f"change the mapping of job {credentials.name!r} at rank {credentials.rank}"
        request = remap_request(credentials, word)
        reply: pb2.RemapReply = await self._call("Remap", what, request, timeout_s)
        return reply.mapping if reply.HasField("mapping") else None

    async def leave(
        self,
        credentials: Credentials,
        progress: pb2.Progress | None,
        error: InaError | None = None,
    ) -> None:
        """Leave the job. Tries each address once."""
        what = f"leave job {credentials.name!r} as rank {credentials.rank}"
        request = leave_request(credentials, progress, error)
        for tries_left in reversed(range(len(self._connections))):
            try:
                await self._call("Leave", what, request, CALL_TIMEOUT_S)
                return
            except ControllerUnavailableError:
                if not tries_left:
                    raise
                self.try_next()

    def watch(self, credentials: Credentials) -> Stream:
        """Open the stream of what happens to the worker's job."""
        return self._connections[self._current].stream("Watch", watch_request(credentials))

    def vanish(self) -> None:
        """The worker's host dies with it: nobody says that its connections have ended."""
        for connection in self._connections:
            connection.dies_silently = True

    async def _call(
        self, method: str, what: str, request: Any, timeout_s: float, *, may_be_silent: bool = False
    ) -> Any:
        bounded_s = timeout_s
        if self.has_others and not may_be_silent:
            bounded_s = min(timeout_s, SILENT_S)
        address = self.address
        try:
            return await self._connections[self._current].call(method, request, bounded_s)
        except CallError as error:
            message = f"controller {address}: cannot {what}: {error.details}"
            found = error_of(error.code, message, bounded_s)
            if error.is_late and bounded_s < timeout_s:
                found = ControllerUnavailableError(f"{message} (after {bounded_s:g} s)")
            raise found from None
