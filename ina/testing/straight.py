"""A P4Runtime client in the switch's own process: its requests are calls of the service's methods.

Messages, answers and errors are those of a client over gRPC; what is not there is gRPC, whose part
of a small request is the larger one by far.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NoReturn, cast

import grpc
from finsy.p4client import P4ClientError
from finsy.proto import p4r

from ina.switch.p4runtime import Device, P4RuntimeService
from ina.switch.p4runtime.arbitration import Client
from ina.switch.p4runtime.status import StatusError, abort


class StraightClient:
    """A :class:`~ina.tables.grpc_wire.RuntimeClient`."""

    def __init__(self, device: Device) -> None:
        """``device`` has other clients, too, if it likes."""
        self._device = device
        self._service = P4RuntimeService(device)
        self._told: asyncio.Queue[p4r.StreamMessageResponse] = asyncio.Queue()
        self._peer = Client(self._tell)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Nothing has to be connected."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        """The stream ends; the device keeps its state."""
        self._device.leave(self._peer)

    async def send(self, msg: p4r.StreamMessageRequest) -> None:
        """Arbitration and packets: the others are of no use here."""
        try:
            if msg.HasField("arbitration"):
                self._device.arbitrate(self._peer, msg.arbitration)
            else:
                self._device.packet_out(self._peer, msg.packet)
        except StatusError as error:
            raise _failed(_status_of(error), "send") from None

    async def receive(self) -> p4r.StreamMessageResponse:
        """The next that the device says, whenever that is."""
        return await self._told.get()

    async def request(self, msg: Any) -> Any:
        """Any but Read."""
        name = type(msg).__name__
        try:
            return getattr(self._service, name.removesuffix("Request"))(msg, _call())
        except _AbortedError as error:
            raise _failed(error, name) from None

    async def request_iter(self, msg: p4r.ReadRequest) -> AsyncIterator[p4r.ReadResponse]:
        """Read."""
        try:
            for reply in self._service.Read(msg, _call()):
                yield reply
        except _AbortedError as error:
            raise _failed(error, "ReadRequest") from None

    async def set_pipeline(self, msg: p4r.SetForwardingPipelineConfigRequest) -> None:
        """See :class:`~ina.tables.grpc_wire.GrpcWire`."""
        await self.request(msg)

    def _tell(self, response: p4r.StreamMessageResponse) -> None:
        """By whatever thread has the device's lock."""
        assert self._loop is not None, "who has not arbitrated is told nothing"
        self._loop.call_soon_threadsafe(self._told.put_nowait, response)


class _AbortedError(Exception):
    def __init__(self, code: grpc.StatusCode, details: str, trailing: Any) -> None:
        super().__init__(details)
        self.code, self.details, self.trailing = code, details, trailing


class _Call:
    """Of one request: as much of gRPC's as the service asks for."""

    def __init__(self) -> None:
        self._trailing: Any = ()

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self._trailing = trailing_metadata

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise _AbortedError(code, details, self._trailing)


def _call() -> grpc.ServicerContext:
    return cast(grpc.ServicerContext, _Call())


def _status_of(error: StatusError) -> _AbortedError:
    try:
        abort(_call(), error)
    except _AbortedError as aborted:
        return aborted


def _failed(error: _AbortedError, what: str) -> P4ClientError:
    none, trailing = grpc.aio.Metadata(), grpc.aio.Metadata(*error.trailing)
    return P4ClientError(
        grpc.aio.AioRpcError(error.code, none, trailing, error.details, None), what
    )
