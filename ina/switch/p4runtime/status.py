"""Canonical error codes: how a refusal inside the service becomes a gRPC status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import grpc
from finsy.proto import p4r, rpc_code, rpc_status

from ina.errors import InaError, InvalidInputError, MissingToolError
from ina.switch.errors import (
    EntryExistsError,
    EntryNotFoundError,
    TableFullError,
    UnsupportedProgramError,
)

_MAX_DETAILS_BYTES = 6000
"""gRPC clients refuse more than 8 KiB of metadata unless told otherwise."""

_MAX_MESSAGE_CHARS = 1000

DETAILS_KEY = "grpc-status-details-bin"
"""Trailing metadata in which gRPC carries a google.rpc.Status."""

_GRPC_CODES = {code.value[0]: code for code in grpc.StatusCode}


class StatusError(InaError):
    """A request, or one update of it, is refused: a google.rpc code and a one-line reason."""

    def __init__(self, code: int, message: str) -> None:
        # Messages quote the client's names: one line, no terminal escapes, no page of them.
        if not message.isprintable():
            message = message.encode("unicode_escape").decode()
        if len(message) > _MAX_MESSAGE_CHARS:
            message = message[:_MAX_MESSAGE_CHARS] + "..."
        super().__init__(message)
        self.code = code


def invalid(message: str) -> StatusError:
    """The request is malformed, whatever the switch's state."""
    return StatusError(rpc_code.INVALID_ARGUMENT, message)


def out_of_range(message: str) -> StatusError:
    """A value does not fit."""
    return StatusError(rpc_code.OUT_OF_RANGE, message)


def not_found(message: str) -> StatusError:
    """What the request names does not exist."""
    return StatusError(rpc_code.NOT_FOUND, message)


def exists(message: str) -> StatusError:
    """What the request wants to insert is there already."""
    return StatusError(rpc_code.ALREADY_EXISTS, message)


def denied(message: str) -> StatusError:
    """This client may not do it, or nobody may."""
    return StatusError(rpc_code.PERMISSION_DENIED, message)


def precondition(message: str) -> StatusError:
    """Not in this state of the switch."""
    return StatusError(rpc_code.FAILED_PRECONDITION, message)


def unimplemented(what: str) -> StatusError:
    """A part of P4Runtime that this switch does not have."""
    return StatusError(rpc_code.UNIMPLEMENTED, f"{what}: not supported by the ina soft switch")


def from_error(error: InaError) -> StatusError:
    """The status of an error raised by the pipeline."""
    match error:
        case StatusError():
            return error
        case EntryExistsError():
            return exists(str(error))
        case EntryNotFoundError():
            return not_found(str(error))
        case TableFullError():
            return StatusError(rpc_code.RESOURCE_EXHAUSTED, str(error))
        case UnsupportedProgramError() | InvalidInputError():
            return invalid(str(error))
        case MissingToolError():
            return precondition(str(error))
        case _:
            return StatusError(rpc_code.INTERNAL, str(error))


def abort(context: grpc.ServicerContext, error: StatusError) -> NoReturn:
    """End the RPC with this status."""
    context.abort(_GRPC_CODES[error.code], str(error))
    raise AssertionError("abort() returned")


def abort_batch(
    context: grpc.ServicerContext, what: str, results: Sequence[StatusError | None]
) -> NoReturn:
    """End a Write or Read of which parts failed: UNKNOWN, and one p4.v1.Error for each part."""
    failed = [error for error in results if error is not None]
    message = f"{what}: {len(failed)} of {len(results)} failed; first: {failed[0]}"
    status = rpc_status.Status(code=rpc_code.UNKNOWN, message=message)
    for error in results:
        detail = p4r.Error(canonical_code=rpc_code.OK)
        if error is not None:
            detail = p4r.Error(canonical_code=error.code, message=str(error), space="ina")
        status.details.add().Pack(detail)
    if status.ByteSize() > _MAX_DETAILS_BYTES:  # codes for all rather than the story of none
        del status.details[:]
        for error in results:
            code = rpc_code.OK if error is None else error.code
            status.details.add().Pack(p4r.Error(canonical_code=code))
    context.set_trailing_metadata(((DETAILS_KEY, status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, message)
    raise AssertionError("abort() returned")
