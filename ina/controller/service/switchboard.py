"""Who answers calls: the services of a primary, or, while this controller is none, a refusal.

The services are made anew each time a controller becomes primary, so its gRPC server cannot have
them for good: it has a :class:`Switchboard`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

import grpc
import grpc.aio

from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc

_Handlers = dict[str, Any]  # by "/service/Method"
if TYPE_CHECKING:  # the stubs make it generic, and it is not
    _GenericRpcHandler = grpc.GenericRpcHandler[Any, Any]
else:
    _GenericRpcHandler = grpc.GenericRpcHandler
_SHOW_CONTROLLER = "/ina.v1.Operator/ShowController"


class Services(Protocol):
    """What answers while this controller is primary."""

    @property
    def controller(self) -> rpc.ControllerServicer:
        """For workers."""
        ...

    @property
    def operator(self) -> rpc.OperatorServicer:
        """For operators."""
        ...


class Switchboard(_GenericRpcHandler):
    """Passes each call to whoever answers now; at first that is nobody."""

    def __init__(
        self, show: Callable[[], pb2.ShowControllerReply], why_standby: Callable[[], str]
    ) -> None:
        """``show`` answers ShowController in either role; ``why_standby``: one line for people."""
        self._show = show
        self._why_standby = why_standby
        self._handlers: _Handlers | None = None
        self._refusal = grpc.unary_unary_rpc_method_handler(self._refuse)
        self._own = {
            _SHOW_CONTROLLER: grpc.unary_unary_rpc_method_handler(
                self._show_controller,
                request_deserializer=pb2.ShowControllerRequest.FromString,
                response_serializer=pb2.ShowControllerReply.SerializeToString,
            )
        }

    def serve(self, services: Services) -> None:
        """From now on ``services`` answer."""
        found = _Methods()
        rpc.add_ControllerServicer_to_server(services.controller, cast(grpc.aio.Server, found))
        rpc.add_OperatorServicer_to_server(services.operator, cast(grpc.aio.Server, found))
        self._handlers = {**found.handlers, **self._own}

    def stand_by(self) -> None:
        """From now on calls are refused. Those under way go on; end them yourself."""
        self._handlers = None

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """gRPC asks here for each call; None: there is no such method."""
        method = handler_call_details.method
        if self._handlers is None:
            return self._own.get(method, self._refusal)
        return self._handlers.get(method)

    async def _refuse(
        self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> bytes:
        # A client of a stream understands this too: it gets a status and no message.
        await context.abort(grpc.StatusCode.UNAVAILABLE, f"standby: {self._why_standby()}")
        raise AssertionError("abort raises")

    async def _show_controller(
        self,
        request: pb2.ShowControllerRequest,
        context: grpc.aio.ServicerContext[pb2.ShowControllerRequest, pb2.ShowControllerReply],
    ) -> pb2.ShowControllerReply:
        return self._show()


class _Methods:
    """Stands in for a server, to learn the methods of a servicer."""

    def __init__(self) -> None:
        self.handlers: _Handlers = {}

    def add_generic_rpc_handlers(self, handlers: tuple[Any, ...]) -> None:
        """What older clients of this interface call; the next one says the same."""

    def add_registered_method_handlers(self, service: str, handlers: _Handlers) -> None:
        """Takes the methods of a service."""
        self.handlers.update({f"/{service}/{name}": handlers[name] for name in handlers})
