"""Calls of the command line to running controllers, and their answers as plain data."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import grpc
import typer
from google.protobuf.message import Message

from ina.controller.config import DEFAULT_LISTEN
from ina.errors import InaError, InvalidInputError, UnavailableError
from ina.rpc import controller_pb2 as pb2
from ina.rpc.absence import why_absent
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.rpc.patience import Patience

_log = logging.getLogger(__name__)

TIMEOUT_S = 30.0
PATIENCE_S = 5.0
"""For what a controller answers from memory; one that takes longer hangs."""

ControllerOption = Annotated[
    str,
    typer.Option(
        "--controller",
        metavar="HOST:PORT",
        envvar="INA_CONTROLLER",
        help="Address of a controller; of several, separated by commas, the first that answers.",
    ),
]

_Reply = TypeVar("_Reply")
_ABSENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class RequestRefusedError(InaError):
    """The controller answered with an error."""


def ask(
    controllers: str,
    method: Callable[[OperatorStub], Callable[..., _Reply]],
    request: Any,
) -> _Reply:
    """One call to the first of ``controllers`` (comma-separated) that is there and no standby.

    ``method`` picks it: ``lambda operator: operator.ListJobs``. Raises :class:`UnavailableError`
    (none answers; the message has each one's reason), :class:`RequestRefusedError`,
    :class:`InvalidInputError` (an address).
    """
    away = []
    found = addresses(controllers)
    for address in found:
        with controller_at(address) as operator:
            try:
                if len(found) > 1:  # who hangs must not keep the question from the others
                    describe(operator, address)
                with Patience(_log, f"controller {address}", TIMEOUT_S) as patience:
                    reply = call(method(operator), request, address)
                    patience.heard()
                return reply
            except UnavailableError as error:
                away.append(str(error))
    raise UnavailableError("; ".join(away))


def ask_about_itself(controllers: str) -> pb2.ShowControllerReply | None:
    """What the primary of ``controllers`` says of itself; None: it does not say. For what explains
    another answer, and is no reason to go without that one."""
    for address in addresses(controllers):
        with controller_at(address) as operator, contextlib.suppress(InaError):
            reply = describe(operator, address)
            if reply.role == "primary":
                return reply
    return None


def addresses(controllers: str) -> list[str]:
    """The addresses of a comma-separated list. Raises :class:`InvalidInputError`."""
    found = [address.strip() for address in controllers.split(",")]
    for address in found:
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) <= 0xFFFF):
            raise InvalidInputError(f"controller {address!r}: expected HOST:PORT")
    return found


@contextmanager
def controller_at(address: str) -> Iterator[OperatorStub]:
    """An operator's client of the controller at ``host:port``."""
    with open_channel(address) as channel:
        yield OperatorStub(channel)


def describe(operator: OperatorStub, address: str) -> pb2.ShowControllerReply:
    """What a controller says of itself, primary or not. Raises what :func:`call` raises."""
    return call(operator.ShowController, pb2.ShowControllerRequest(), address, PATIENCE_S)


def call(
    method: Callable[..., _Reply], request: Any, address: str, timeout_s: float | None = None
) -> _Reply:
    """One call with a deadline, by default ``TIMEOUT_S``.

    Raises :class:`UnavailableError` (nobody answers), :class:`RequestRefusedError` (its message).
    """
    try:
        return method(request, timeout=timeout_s or TIMEOUT_S)
    except grpc.RpcError as error:
        raise explain(error, address) from None


def explain(error: grpc.RpcError, address: str) -> InaError:
    """What :func:`call` raises for this error."""
    if error.code() not in _ABSENT:
        return RequestRefusedError(f"controller {address}: {error.details()}")
    return UnavailableError(f"controller {address}: {why_absent(address, error.details())}")


def plain(message: Message) -> dict[str, Any]:
    """Every field, also where it has its default; a message that is not set is None.

    Unlike protobuf's own JSON, 64-bit integers are numbers; enumerations are their names, bytes
    are hexadecimal.
    """
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return [_value(field, item) for item in value]
    if field.message_type is not None and not message.HasField(field.name):
        return None
    return _value(field, value)


def _value(field: Any, value: Any) -> Any:
    if isinstance(value, Message):
        return plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value  # a newer controller's
    return value.hex() if isinstance(value, bytes) else value


COMPLETION_DEADLINE_S = 0.5
"""A controller that does not answer by then offers nothing: somebody is typing."""


def job_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The jobs of the controller that the command line, or else INA_CONTROLLER, names first."""
    given = ctx.params.get("controller") or os.environ.get("INA_CONTROLLER") or DEFAULT_LISTEN
    logging.disable()  # nothing may be printed between what is typed
    try:
        with controller_at(addresses(given)[0]) as operator:
            jobs = operator.ListJobs(pb2.ListJobsRequest(), timeout=COMPLETION_DEADLINE_S).jobs
    except (InaError, grpc.RpcError):
        return []
    finally:
        logging.disable(logging.NOTSET)
    return [job.name for job in jobs if job.name.startswith(incomplete)]
