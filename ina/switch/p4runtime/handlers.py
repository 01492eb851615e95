"""The service's methods for a gRPC server, with requests read here instead of by gRPC.

gRPC logs a traceback for each request that is no message, and loses track of a stream that carries
one: the server then never finishes to stop. A stranger could do both at will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import grpc
from finsy.proto import p4r_grpc
from google.protobuf.message import DecodeError

from ina.switch.p4runtime.service import P4RuntimeService
from ina.switch.p4runtime.status import StatusError, abort, invalid

_SERVICE = "p4.v1.P4Runtime"
_Read = Callable[[bytes], Any]


def method_handlers(service: P4RuntimeService) -> Any:
    """What ``add_generic_rpc_handlers`` of a gRPC server takes."""
    found = _Methods()
    p4r_grpc.add_P4RuntimeServicer_to_server(service, cast(grpc.Server, found))
    own = {name: _reading(handler) for name, handler in found.handlers.items()}
    return grpc.method_handlers_generic_handler(_SERVICE, own)


class _Methods:
    """Stands in for a server, to learn the methods of the service."""

    def __init__(self) -> None:
        self.handlers: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, handlers: tuple[Any, ...]) -> None:
        """What older clients of this interface call; the next one says the same."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Takes the methods."""
        self.handlers.update(handlers)


def _reading(handler: Any) -> Any:
    read, write = handler.request_deserializer, handler.response_serializer
    if handler.request_streaming:
        inner = handler.stream_stream

        def stream(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            return inner((_message(read, data) for data in requests), context)

        return grpc.stream_stream_rpc_method_handler(stream, None, write)
    inner = handler.unary_stream if handler.response_streaming else handler.unary_unary

    def unary(data: bytes, context: grpc.ServicerContext) -> Any:
        try:
            request = _message(read, data)
        except StatusError as error:
            abort(context, error)
        return inner(request, context)

    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(unary, None, write)
    return grpc.unary_unary_rpc_method_handler(unary, None, write)


def _message(read: _Read, data: bytes) -> Any:
    try:
        return read(data)
    except DecodeError as error:
        raise invalid(str(error)) from None
