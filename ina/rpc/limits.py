"""How much one peer, and all together, may ask of a controller at a time.

A call that waits (Join, Watch) costs a task, not a thread; still, one address must not be able to
use up the server. Calls above the limit are refused at once with RESOURCE_EXHAUSTED.
"""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from ina.rpc.channel import BEARABLE_PINGS

MAX_CALLS_A_PEER = 1024
"""Open calls from one address. A worker holds two: Watch, and Join or Heartbeat."""
MAX_CALLS = 20_000
"""Open calls of all: 255 jobs of 32 workers, two each, and operators."""
MAX_REQUEST_BYTES = 1 << 20
"""The largest request is a heartbeat with the state of 4096 lanes: 20 KB."""
_HANDSHAKE_MS = 10_000
SERVER_OPTIONS: list[tuple[str, int]] = [
    # Several processes may share a port with SO_REUSEPORT; two controllers must not.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    # Who connects and says nothing is hung up on.
    ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
    *BEARABLE_PINGS,
]
"""Of any server; what pings it sends depends on its workers' leases."""


class PeerLimit(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Refuses the calls of a peer that has ``limit`` open, and requests that are no messages.

    The latter because gRPC would log a traceback for each, which is a way to fill a disk.
    """

    def __init__(self, limit: int = MAX_CALLS_A_PEER) -> None:
        self._limit = limit
        self._open: Counter[str] = Counter()

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]
        ],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """The method's handler, counted."""
        handler = await continuation(details)
        if handler is None or handler.request_streaming:  # none of ina's has a request stream
            return handler
        read, write = handler.request_deserializer, handler.response_serializer
        if handler.response_streaming:
            answer = self._stream(handler.unary_stream, read)
            return grpc.unary_stream_rpc_method_handler(answer, None, write)
        answer = self._unary(handler.unary_unary, read)
        return grpc.unary_unary_rpc_method_handler(answer, None, write)

    def _unary(self, behavior: Any, read: Any) -> Any:
        async def counted(data: bytes, context: Any) -> Any:
            peer = await self._admit(context)
            with self._counted(peer):
                return await behavior(await _request(data, read, context), context)

        return counted

    def _stream(self, behavior: Any, read: Any) -> Any:
        if not inspect.isasyncgenfunction(behavior):  # it writes to the context itself
            return self._unary(behavior, read)

        async def counted(data: bytes, context: Any) -> AsyncIterator[Any]:
            peer = await self._admit(context)
            with self._counted(peer):
                request = await _request(data, read, context)
                async with contextlib.aclosing(behavior(request, context)) as replies:
                    async for reply in replies:
                        yield reply

        return counted

    async def _admit(self, context: Any) -> str:
        peer = address_of(context.peer())
        if self._open[peer] >= self._limit:
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"{peer} has {self._limit} calls open already"
            )
        return peer

    @contextlib.contextmanager
    def _counted(self, peer: str) -> Iterator[None]:
        self._open[peer] += 1
        try:
            yield
        finally:
            self._open[peer] -= 1
            if not self._open[peer]:
                del self._open[peer]


async def _request(data: bytes, read: Callable[[bytes], Any] | None, context: Any) -> Any:
    if read is None:
        return data
    try:
        return read(data)
    except DecodeError as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))


def address_of(peer: str) -> str:
    """The address in gRPC's ``ipv4:10.0.0.1:4433`` or ``ipv6:[::1]:4433``; others as they are."""
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return peer
    return rest.rpartition(":")[0].strip("[]").replace("%5B", "").replace("%5D", "")
