"""The operator's token: shown by the command line, asked for by the controller.

It travels in the call's metadata, so only TLS keeps it from the network's eyes.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from ina.errors import InvalidInputError

METADATA_KEY = "ina-operator-token"
ENVIRONMENT = "INA_OPERATOR_TOKEN"
METHODS = "/ina.v1.Operator/"
MIN_TOKEN_CHARS = 16
"""Nothing counts wrong guesses, so the token must be one that nobody guesses."""


class OperatorTokenError(InvalidInputError):
    """The token file cannot be read, or what it holds is no token; the message names it."""


def read_token(path: Path) -> str:
    """The first line of the file, without surrounding blanks. Raises OperatorTokenError."""
    try:
        lines = path.read_text("ascii").splitlines()
    except OSError as error:
        raise OperatorTokenError(f"operator token {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise OperatorTokenError(f"operator token {path}: not ASCII text") from None
    token = lines[0].strip() if lines else ""
    if len(token) < MIN_TOKEN_CHARS or not token.isprintable():
        raise OperatorTokenError(
            f"operator token {path}: the first line is not {MIN_TOKEN_CHARS} or more printable"
            " characters"
        )
    return token


class TokenAsker(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Refuses operators' calls that do not show the token; lets workers' calls through."""

    def __init__(self, token: str) -> None:
        """Empty: none is asked for."""
        self._digest = b""
        self.set_token(token)

    def set_token(self, token: str) -> None:
        """Asks for another one from the next call on."""
        self._digest = _digest(token) if token else b""

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]
        ],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """The method's own handler, or one that refuses."""
        handler = await continuation(details)
        if handler is None or not self._digest or not details.method.startswith(METHODS):
            return handler
        shown = [value for key, value in details.invocation_metadata or () if key == METADATA_KEY]
        if len(shown) == 1 and hmac.compare_digest(_digest(shown[0]), self._digest):
            return handler
        what = "wrong" if shown else "missing"
        return _refusal(handler, f"operator token {what}: set {ENVIRONMENT}")


class TokenShower(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    """Adds the token to operators' calls."""

    def __init__(self, token: str) -> None:
        self._pair = (METADATA_KEY, token)

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """See gRPC."""
        return continuation(self._with_token(details), request)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        """See gRPC."""
        return continuation(self._with_token(details), request)

    def _with_token(self, details: Any) -> Any:
        if not details.method.startswith(METHODS):
            return details
        return details._replace(metadata=[*(details.metadata or ()), self._pair])


def _digest(token: str | bytes) -> bytes:
    # Of one length, so that the comparison tells nothing, not even the length.
    data = token.encode() if isinstance(token, str) else token
    return hashlib.sha256(data).digest()


def _refusal(
    handler: grpc.RpcMethodHandler[Any, Any], message: str
) -> grpc.RpcMethodHandler[Any, Any]:
    async def refuse(request: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, message)

    async def refuse_stream(request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, message)
        yield

    # Without coders: who shows no token has nothing read.
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(refuse_stream)
    return grpc.unary_unary_rpc_method_handler(refuse)
