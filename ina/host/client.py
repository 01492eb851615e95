"""Calls to controllers over gRPC."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

import grpc

from ina.errors import InvalidInputError
from ina.host.member.client import CallError, Trouble
from ina.host.stop import Stop
from ina.host.thread_driver import ThreadDriver
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc
from ina.rpc.absence import TIMEOUT_S, absence, in_words
from ina.rpc.channel import let_go, open_channel, ping_options
from ina.rpc.tls_probe import tls_trouble

_PING_S = 2.0


def process_name() -> str:
    """Return what people know this process by: "node7 pid 1234"."""
    return f"{socket.gethostname()} pid {os.getpid()}"


class GrpcWire:
    """See :class:`ina.host.member.client.Wire`. Close it, or use it as a context manager."""

    def __init__(self, addresses: str, driver: ThreadDriver, stop: Stop | None = None) -> None:
        """Connect lazily to "host:port[,host:port...]". `stop`: ends calls that create or join.

        Raises InvalidInputError: no address; TlsError: a TLS file of the environment.
        """
        self.addresses = [name.strip() for name in addresses.split(",") if name.strip()]
        if not self.addresses:
            raise InvalidInputError(f"controller {addresses!r}: host:port is needed")
        self._driver, self._stop = driver, stop
        self._channels: list[grpc.Channel] = []
        self._stubs: list[controller_pb2_grpc.ControllerStub] = []
        self._open([])

    def __enter__(self) -> GrpcWire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, options: Sequence[tuple[str, int]]) -> None:
        self._channels = [open_channel(name, options) for name in self.addresses]
        self._stubs = [controller_pb2_grpc.ControllerStub(channel) for channel in self._channels]

    def close(self) -> None:
        """Close the connections; no calls any more. Idempotent."""
        for channel in self._channels:
            channel.close()
        # Freed now, while gRPC's thread runs and lets go of their locks (see MemberCore.leave).
        self._channels.clear()
        self._stubs.clear()

    def ping(self, lease_s: float) -> None:
        """Connect anew: streams break when the controller's process is silent for `lease_s`."""
        self.close()
        every_s = min(lease_s / 5, _PING_S)
        self._open(ping_options(every_s, lease_s - every_s))

    async def call(self, way: int, method: str, request: Any, timeout_s: float) -> Any:
        """The reply. Raises CallError."""
        stub = getattr(self._stubs[way], method)
        try:
            with self._driver.others_turn():
                if self._stop is not None and method in ("CreateJob", "Join"):
                    return self._stop.run(stub, request, timeout_s)
                return stub(request, timeout=timeout_s)
        except grpc.RpcError as error:
            raise CallError(error.code(), in_words(error.details())) from None

    def watch(self, way: int, request: pb2.WatchRequest) -> GrpcEvents:
        """Open a stream."""
        return GrpcEvents(self._stubs[way].Watch(request), self._driver)

    async def trouble(self, way: int) -> Trouble | None:
        """Looked for by connections of its own."""
        address = self.addresses[way]
        with self._driver.others_turn():
            if (text := absence(address)) is not None:
                return Trouble(text)
            text = tls_trouble(address)
        return None if text is None else Trouble(text, may_mend=False)  # no certificate does

    async def is_refused(self, way: int) -> bool:
        """Whether nothing listens there any more. A silent host refuses nothing."""
        host, _, port = self.addresses[way].rpartition(":")
        try:
            with self._driver.others_turn():
                socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False


class GrpcEvents:
    """See :class:`ina.host.member.client.Events`."""

    def __init__(self, call: Any, driver: ThreadDriver) -> None:
        self._call, self._driver = call, driver

    async def begins(self) -> bool:
        """Until the controller says that it has the stream; False: it broke before."""
        with self._driver.others_turn():
            return self._call.initial_metadata() is not None and self._call.is_active()

    async def next(self) -> pb2.JobEvent | None:
        """The next event; None: it has ended."""
        try:
            with self._driver.others_turn():
                event: pb2.JobEvent | None = next(self._call, None)
            return event
        except grpc.RpcError as error:
            let_go(error)
            raise CallError(error.code(), in_words(error.details())) from None

    def cancel(self) -> None:
        """Break it, from any thread. Idempotent."""
        self._call.cancel()
