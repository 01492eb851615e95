"""Calls of the command line to a running controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import grpc
import typer

from ina.errors import InaError, UnavailableError
from ina.rpc.controller_pb2_grpc import ControllerStub

TIMEOUT_S = 30.0

ControllerOption = Annotated[
    str,
    typer.Option(
        "--controller",
        metavar="HOST:PORT",
        envvar="INA_CONTROLLER",
        help="Address of a controller.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_Reply = TypeVar("_Reply")


class RequestRefusedError(InaError):
    """The controller answered with an error."""


@contextmanager
def controller_at(address: str) -> Iterator[ControllerStub]:
    """A client of the controller at ``host:port``."""
    with grpc.insecure_channel(address) as channel:
        yield ControllerStub(channel)


def call(method: Callable[..., _Reply], request: Any, address: str) -> _Reply:
    """One call with a deadline.

    Raises :class:`UnavailableError` (nobody answers), :class:`RequestRefusedError` (its message).
    """
    try:
        return method(request, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise UnavailableError(f"controller {address}: {error.details()}") from None
        raise RequestRefusedError(f"controller {address}: {error.details()}") from None
