"""The controller's gRPC service as seen by a worker. Every call but Watch has a deadline."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import grpc

from ina.errors import InaError, InvalidInputError
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
from ina.host.stop import Stop
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc
from ina.rpc.absence import in_words
from ina.rpc.channel import let_go, open_channel, ping_options

Reply = TypeVar("Reply")

_PING_S = 2.0
# With several controllers: how long a silent one (its host is down) holds up the next.
_SILENT_S = 3.0


def process_name() -> str:
    """Return what people know this process by: "node7 pid 1234"."""
    return f"{socket.gethostname()} pid {os.getpid()}"


class ControllerClient:
    """Connections to one controller, or several of which one is the primary.

    Calls go to one address until :meth:`try_next`. They raise ControllerUnavailableError (away, or
    a standby: worth another try), ControllerTimeoutError, MembershipEndedError (NOT_FOUND),
    ControllerError. Close it, or use it as a context manager.
    """

    def __init__(
        self, addresses: str, *, timeout_s: float = 10.0, stop: Stop | None = None
    ) -> None:
        """Connect lazily to "host:port[,host:port...]"; `timeout_s` bounds calls without their own.

        `stop`: ends calls that create or join a job.

        Raises InvalidInputError: no address; TlsError: a TLS file of the environment.
        """
        names = [name.strip() for name in addresses.split(",") if name.strip()]
        if not names:
            raise InvalidInputError(f"controller {addresses!r}: host:port is needed")
        self._timeout_s = timeout_s
        self._stop = stop
        self._names = names
        self._channels: list[tuple[str, grpc.Channel]] = []
        self._stubs: list[tuple[str, controller_pb2_grpc.ControllerStub]] = []
        self._current = 0
        self._open([])

    def __enter__(self) -> ControllerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; no calls any more. Idempotent."""
        for _, channel in self._channels:
            channel.close()
        # Freed now, while gRPC's thread runs and lets go of their locks (see Membership.close).
        self._channels.clear()
        self._stubs.clear()

    def ping(self, lease_s: float) -> None:
        """Connect anew: streams break when the controller's process is silent for `lease_s`.

        Not while calls are under way.
        """
        self.close()
        every_s = min(lease_s / 5, _PING_S)
        self._open(ping_options(every_s, lease_s - every_s))

    def is_refused(self) -> bool:
        """Whether nothing listens any more where calls go. A silent host refuses nothing."""
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _SILENT_S).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False

    def _open(self, options: Sequence[tuple[str, int]]) -> None:
        self._channels = [(name, open_channel(name, options)) for name in self._names]
        self._stubs = [
            (name, controller_pb2_grpc.ControllerStub(channel)) for name, channel in self._channels
        ]

    @property
    def address(self) -> str:
        """Where calls go now."""
        return self._stubs[self._current][0]

    @property
    def has_others(self) -> bool:
        """Whether :meth:`try_next` leads elsewhere."""
        return len(self._stubs) > 1

    def try_next(self) -> None:
        """Let the next calls go to the next address."""
        self._current = (self._current + 1) % len(self._stubs)

    def create_job(
        self, request: pb2.CreateJobRequest, timeout_s: float | None = None
    ) -> pb2.CreateJobReply:
        """Create the job unless it exists; returns where the switch is and the granted slots."""
        address, stub = self._stubs[self._current]
        what = f"create job {request.name!r}"
        return self._call(address, what, self._until_stop(stub.CreateJob), request, timeout_s)

    def join(self, request: pb2.JoinRequest) -> pb2.JoinReply:
        """Join and wait up to `request.timeout_s` for the others and the switch's tables."""
        address, stub = self._stubs[self._current]
        what = f"join job {request.name!r} as rank {request.rank}"
        timeout_s = request.timeout_s + JOIN_GRACE_S
        method = self._until_stop(stub.Join)
        return self._call(address, what, method, request, timeout_s, may_be_silent=True)

    def heartbeat(
        self, credentials: Credentials, progress: pb2.Progress, timeout_s: float | None = None
    ) -> pb2.HeartbeatReply:
        """Renew the worker's lease and say how it gets on."""
        address, stub = self._stubs[self._current]
        request = heartbeat_request(credentials, progress, process_name())
        what = f"keep job {credentials.name!r} rank {credentials.rank} alive"
        return self._call(address, what, stub.Heartbeat, request, timeout_s)

    def remap(
        self, credentials: Credentials, word: RemapWord, timeout_s: float | None = None
    ) -> pb2.Mapping | None:
        """Say how far a change of the job's mapping is; returns the other one, if there is one."""
        address, stub = self._stubs[self._current]
        request = remap_request(credentials, word)
        what = f"change the mapping of job {credentials.name!r} at rank {credentials.rank}"
        reply = self._call(address, what, stub.Remap, request, timeout_s)
        return reply.mapping if reply.HasField("mapping") else None

    def watch(self, credentials: Credentials) -> EventStream:
        """Open the stream of what happens to the worker's job."""
        address, stub = self._stubs[self._current]
        request = watch_request(credentials)
        return EventStream(address, credentials, stub.Watch(request))

    def leave(
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
        for tries_left in reversed(range(len(self._stubs))):
            address, stub = self._stubs[self._current]
            try:
                self._call(address, what, stub.Leave, request)
                return
            except ControllerUnavailableError:
                if not tries_left:
                    raise
                self.try_next()

    def _until_stop(self, method: Callable[..., Reply]) -> Callable[..., Reply]:
        stop = self._stop
        if stop is None:
            return method
        return lambda request, timeout: stop.run(method, request, timeout)

    def _call(
        self,
        address: str,
        what: str,
        method: Callable[..., Reply],
        request: object,
        timeout_s: float | None = None,
        *,
        may_be_silent: bool = False,
    ) -> Reply:
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        bounded_s = timeout_s
        if len(self._stubs) > 1 and not may_be_silent:
            bounded_s = min(timeout_s, _SILENT_S)
        try:
            return method(request, timeout=bounded_s)
        except grpc.RpcError as error:
            message = f"controller {address}: cannot {what}: {_details(error)}"
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED and bounded_s < timeout_s:
                message = f"{message} (after {bounded_s:g} s)"
                raise ControllerUnavailableError(message) from None
            raise error_of(error.code(), message, bounded_s) from None


class EventStream:
    """The events of one job, until it ends or the stream breaks."""

    def __init__(self, address: str, credentials: Credentials, call: Any) -> None:
        self._what = (
            f"controller {address}: cannot watch job {credentials.name!r} rank {credentials.rank}"
        )
        self._call = call

    def begins(self) -> bool:
        """Wait for the controller's word that it has the stream; False: it broke before."""
        return self._call.initial_metadata() is not None and self._call.is_active()

    def __iter__(self) -> Iterator[pb2.JobEvent]:
        """Yield events; raises what the client's other calls raise when the stream breaks."""
        try:
            yield from self._call
        except grpc.RpcError as error:
            let_go(error)
            message = f"{self._what}: {_details(error)}"
            raise error_of(error.code(), message, 0.0) from None

    def cancel(self) -> None:
        """Break the stream, from any thread. Idempotent."""
        self._call.cancel()


def _details(error: grpc.RpcError) -> str:
    return in_words(error.details())
