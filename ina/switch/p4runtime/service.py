"""The gRPC face of a :class:`Device`: one method for each RPC of P4Runtime."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Iterator

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code

from ina.rpc.limits import address_of
from ina.switch.p4runtime.arbitration import Client
from ina.switch.p4runtime.device import Device
from ina.switch.p4runtime.status import StatusError, abort, abort_batch, unimplemented
from ina.switch.p4runtime.streams import StreamLimit

API_VERSION = "1.4.1"
MAX_QUEUED_RESPONSES = 4096
"""Packets and lists of digests waiting for one slow client; more are dropped, arbitration updates
never."""
_ENTITIES_A_RESPONSE = 500


class P4RuntimeService(p4r_grpc.P4RuntimeServicer):
    """P4Runtime for one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._limit = StreamLimit()
        self._sessions: weakref.WeakSet[_Session] = weakref.WeakSet()

    def close(self) -> None:
        """End every stream, so that the server has nothing to wait for when it stops."""
        for session in list(self._sessions):
            session.end()

    def Capabilities(  # noqa: N802
        self, request: p4r.CapabilitiesRequest, context: grpc.ServicerContext
    ) -> p4r.CapabilitiesResponse:
        """The API version."""
        device_id = getattr(request, "device_id", 0)  # a filter since P4Runtime 1.5
        try:
            if device_id:
                self._device.check_id(device_id)
        except StatusError as error:
            abort(context, error)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def SetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save, or put to work a program."""
        try:
            self._device.check_id(request.device_id)
            self._device.set_config(request)
        except StatusError as error:
            abort(context, error)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """The program that was set."""
        try:
            self._device.check_id(request.device_id)
            return self._device.get_config(request)
        except StatusError as error:
            abort(context, error)

    def Write(  # noqa: N802
        self, request: p4r.WriteRequest, context: grpc.ServicerContext
    ) -> p4r.WriteResponse:
        """Change entities; one p4.v1.Error for each update when any fails."""
        try:
            self._device.check_id(request.device_id)
            results = self._device.write(request)
        except StatusError as error:
            abort(context, error)
        if any(results):
            abort_batch(context, "Write", results)
        return p4r.WriteResponse()

    def Read(  # noqa: N802
        self, request: p4r.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[p4r.ReadResponse]:
        """Report entities; those of good requests come before the error of bad ones."""
        try:
            self._device.check_id(request.device_id)
            entities, results = self._device.read(request.entities)
        except StatusError as error:
            abort(context, error)
        for start in range(0, len(entities), _ENTITIES_A_RESPONSE):
            yield p4r.ReadResponse(entities=entities[start : start + _ENTITIES_A_RESPONSE])
        if any(results):
            abort_batch(context, "Read", results)

    def StreamChannel(  # noqa: N802
        self,
        request_iterator: Iterator[p4r.StreamMessageRequest],
        context: grpc.ServicerContext,
    ) -> Iterator[p4r.StreamMessageResponse]:
        """A client's session: arbitration, packets in and out."""
        session = _Session(self._device, request_iterator, address_of(context.peer()))
        try:
            self._limit.enter(session)
        except StatusError as error:
            abort(context, error)
        self._sessions.add(session)
        try:
            context.add_callback(session.end)
            yield from session.responses(context)
        finally:
            self._limit.leave(session)


class _Session:
    """One stream. A thread of its own takes in requests, since gRPC's yields the responses."""

    def __init__(
        self, device: Device, requests: Iterator[p4r.StreamMessageRequest], peer: str
    ) -> None:
        self.peer = peer
        self._device = device
        self._requests = requests
        # A response; an error that ends the stream; None: the client is gone.
        self._queue: queue.SimpleQueue[p4r.StreamMessageResponse | StatusError | None] = (
            queue.SimpleQueue()
        )
        self._client = Client(self._send)
        self._thread = threading.Thread(target=self._take_requests, name="p4runtime-stream")
        self._thread.daemon = True  # it ends with the stream, which server.stop() ends

    def responses(self, context: grpc.ServicerContext) -> Iterator[p4r.StreamMessageResponse]:
        """Until the client leaves or must leave."""
        self._thread.start()
        try:
            while (item := self._queue.get()) is not None:
                if isinstance(item, StatusError):
                    abort(context, item)
                yield item
        finally:
            self._device.leave(self._client)

    @property
    def introduced(self) -> bool:
        """See :class:`~ina.switch.p4runtime.streams.Stream`."""
        return self._client.role is not None

    def expel(self, why: StatusError) -> None:
        """See :class:`~ina.switch.p4runtime.streams.Stream`."""
        self._queue.put(why)

    def end(self) -> None:
        """The RPC is over, for whatever reason."""
        self._queue.put(None)

    def _send(self, response: p4r.StreamMessageResponse) -> None:
        lossy = response.HasField("packet") or response.HasField("digest")
        if lossy and self._queue.qsize() >= MAX_QUEUED_RESPONSES:
            return
        self._queue.put(response)

    def _take_requests(self) -> None:
        try:
            for request in self._requests:
                self._take(request)
        except StatusError as error:
            self._queue.put(error)
        except grpc.RpcError:
            pass  # the client broke the stream; end() says so too
        except Exception as error:  # gRPC raises a bare Exception when the server stops
            if str(error):
                self._queue.put(StatusError(rpc_code.INTERNAL, repr(error)))
        finally:
            self._queue.put(None)

    def _take(self, request: p4r.StreamMessageRequest) -> None:
        match request.WhichOneof("update"):
            case "arbitration":
                self._device.arbitrate(self._client, request.arbitration)
            case "packet":
                try:
                    self._device.packet_out(self._client, request.packet)
                except StatusError as error:
                    response = _stream_error(error)
                    response.error.packet_out.packet_out.CopyFrom(request.packet)
                    self._send(response)
            case "digest_ack":
                try:
                    self._device.acknowledge(self._client, request.digest_ack)
                except StatusError as error:
                    response = _stream_error(error)
                    response.error.digest_list_ack.digest_list_ack.CopyFrom(request.digest_ack)
                    self._send(response)
            case kind:
                response = _stream_error(unimplemented(kind or "empty stream message"))
                response.error.other.SetInParent()
                self._send(response)


def _stream_error(error: StatusError) -> p4r.StreamMessageResponse:
    response = p4r.StreamMessageResponse()
    response.error.canonical_code = error.code
    response.error.message = str(error)
    response.error.space = "ina"
    return response
