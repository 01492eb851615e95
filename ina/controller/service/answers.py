"""Typed errors of the controller as gRPC status codes, and what callers say, fit for terminals."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import grpc
import grpc.aio

from ina.controller.errors import (
    FencedError,
    FormerJobError,
    JobAbortedError,
    JobConflictError,
    JobPipesError,
    JobTokenError,
    JoinTimeoutError,
    MemberKeyError,
    NoRoomError,
    OtherSwitchError,
    QueuedError,
    SlowWatcherError,
    StandbyError,
    StoreError,
    TenantError,
    UnknownJobError,
    UnknownSwitchError,
)
from ina.errors import InaError
from ina.tables.errors import SwitchError
from ina.trees.errors import JobRequestError

_log = logging.getLogger(__name__)

STATUS_CODES: dict[type[InaError], grpc.StatusCode] = {
    JobRequestError: grpc.StatusCode.INVALID_ARGUMENT,
    JobPipesError: grpc.StatusCode.INVALID_ARGUMENT,
    JobConflictError: grpc.StatusCode.ALREADY_EXISTS,
    UnknownJobError: grpc.StatusCode.NOT_FOUND,
    UnknownSwitchError: grpc.StatusCode.NOT_FOUND,
    NoRoomError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    SlowWatcherError: grpc.StatusCode.RESOURCE_EXHAUSTED,
    JoinTimeoutError: grpc.StatusCode.DEADLINE_EXCEEDED,
    JobAbortedError: grpc.StatusCode.ABORTED,
    FormerJobError: grpc.StatusCode.UNAVAILABLE,
    QueuedError: grpc.StatusCode.UNAVAILABLE,
    SwitchError: grpc.StatusCode.UNAVAILABLE,
    StandbyError: grpc.StatusCode.UNAVAILABLE,
    StoreError: grpc.StatusCode.UNAVAILABLE,
    FencedError: grpc.StatusCode.UNAVAILABLE,
    OtherSwitchError: grpc.StatusCode.UNAVAILABLE,
    JobTokenError: grpc.StatusCode.PERMISSION_DENIED,
    MemberKeyError: grpc.StatusCode.PERMISSION_DENIED,
    TenantError: grpc.StatusCode.PERMISSION_DENIED,
}

_T = TypeVar("_T")
Context = grpc.aio.ServicerContext[Any, Any]


async def answer(context: Context, work: Awaitable[_T]) -> _T:
    """The result of ``work``; its error ends the call with a status and one line."""
    try:
        return await work
    except Exception as error:
        await refuse(context, error)
    raise AssertionError("refuse raises")


async def refuse(context: Context, error: Exception) -> None:
    """Ends the call with a status and one line; raises gRPC's own exception."""
    if isinstance(error, InaError):
        kinds = (kind for kind in type(error).__mro__ if kind in STATUS_CODES)
        code = STATUS_CODES[kind] if (kind := next(kinds, None)) else grpc.StatusCode.UNKNOWN
        await context.abort(code, str(error))
    _log.error("a call failed", exc_info=error)
    await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")


def printable(text: str, most_chars: int) -> str:
    """One line of at most so many characters, ``?`` for what is none that can be shown."""
    return "".join(char if char.isprintable() else "?" for char in text[:most_chars])
