"""What :class:`ina.host.client.GrpcWire` is to a worker, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from ina.host.member.client import Trouble
from ina.rpc import controller_pb2 as pb2
from ina.sim.process import Process
from ina.sim.rpc import Connection, Stream


class SimWire:
    """The ways of one process to its controllers; see :class:`ina.host.member.client.Wire`."""

    def __init__(self, process: Process, connections: Sequence[Connection]) -> None:
        self._process = process
        self._connections = list(connections)

    @property
    def addresses(self) -> Sequence[str]:
        """Where they lead."""
        return [connection.server.address for connection in self._connections]

    async def call(self, way: int, method: str, request: Message, timeout_s: float) -> Any:
        """The reply. Raises CallError."""
        reply = await self._connections[way].call(method, request, timeout_s)
        await self._process.running()
        return reply

    def watch(self, way: int, request: pb2.WatchRequest) -> SimEvents:
        """Open a stream."""
        return SimEvents(self._connections[way].stream("Watch", request), self._process)

    async def trouble(self, way: int) -> Trouble | None:
        """What a call says is all that is known."""
        return None

    async def is_refused(self, way: int) -> bool:
        """Whether no process listens there any more."""
        process = self._connections[way].server.process
        return process is None or process.is_dead

    def ping(self, lease_s: float) -> None:
        """Nothing: a stream breaks when its server's process dies."""

    def close(self) -> None:
        """Nothing is kept."""

    def vanish(self) -> None:
        """The worker's host dies with it: nobody says that its connections have ended."""
        for connection in self._connections:
            connection.dies_silently = True


class SimEvents:
    """See :class:`ina.host.member.client.Events`."""

    def __init__(self, stream: Stream, process: Process) -> None:
        self._stream, self._process = stream, process

    async def begins(self) -> bool:
        """Until the controller says that it has the stream; False: it broke before."""
        begun = asyncio.ensure_future(self._stream.begun.wait())
        try:
            ended = self._stream.ended
            await asyncio.wait([begun, ended], return_when=asyncio.FIRST_COMPLETED)
            await self._process.running()
            return begun.done()
        finally:
            begun.cancel()

    async def next(self) -> pb2.JobEvent | None:
        """The next event; None: it has ended."""
        event: pb2.JobEvent | None = await anext(self._stream, None)
        await self._process.running()
        return event

    def cancel(self) -> None:
        """Break it. Idempotent."""
        self._stream.cancel()
