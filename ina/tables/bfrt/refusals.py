"""The client's exceptions as :class:`~ina.tables.errors.SwitchError`, in one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc

from ina.tables.errors import SwitchError

_NAMES = {code.value[0]: code for code in grpc.StatusCode}


class Refusals:
    """What one switch's server has said. ``gc``: the client module."""

    def __init__(self, gc: Any, where: str) -> None:
        """``where``: which switch, for people."""
        self._gc = gc
        self._where = where
        self.known: tuple[type[Exception], ...] = (
            gc.BfruntimeRpcException,
            grpc.RpcError,
            # What the client itself finds wrong before it sends anything.
            KeyError,
            ValueError,
            TypeError,
            AssertionError,
            RuntimeError,
        )
        """What the client raises; anything else is a bug of ours."""

    def error(self, what: str, *, refused: bool = False) -> SwitchError:
        """An error that names the switch."""
        error = SwitchError(f"{self._where}: {what}")
        error.refused = refused
        return error

    def translate(self, caught: Exception, doing: str) -> SwitchError:
        """One line of what the client raised while ``doing``."""
        codes = self.codes(caught)
        said = "; ".join(dict.fromkeys(self._messages(caught)))
        answered = bool(codes) and not codes & {
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.CANCELLED,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        }
        if not codes:  # the client refused it itself
            answered = True
        return self.error(f"{doing}: {said}", refused=answered)

    def codes(self, caught: Exception) -> set[grpc.StatusCode]:
        """Of each entry that was refused, or of the whole call; empty: the client refused."""
        found = {_NAMES[code] for code, _ in self._sub_errors(caught) if code in _NAMES}
        rpc = self._rpc(caught)
        if not found and rpc is not None:
            found = {rpc.code()}
        return found

    def is_only(self, caught: Exception, code: grpc.StatusCode) -> bool:
        """Whether everything was refused for this one reason."""
        return self.codes(caught) == {code}

    def _messages(self, caught: Exception) -> Iterable[str]:
        subs = [f"{_NAMES[code].name} {text}".strip() for code, text in self._sub_errors(caught)]
        rpc = self._rpc(caught)
        if subs:
            yield from subs
        elif rpc is not None:
            yield f"{rpc.code().name} {_line(rpc.details())}".strip()
        else:
            yield f"{type(caught).__name__}: {_line(caught)}"

    def _sub_errors(self, caught: Exception) -> list[tuple[int, str]]:
        if not isinstance(caught, self._gc.BfruntimeRpcException):
            return []
        pairs: Any = caught
        return [
            (int(error.canonical_code), _line(error.message))
            for _, error in pairs.sub_errors_get()
            if int(error.canonical_code)
        ]

    def _rpc(self, caught: Exception) -> Any:
        """The gRPC error: of the client's exception, or the exception itself."""
        if isinstance(caught, self._gc.BfruntimeRpcException):
            holder: Any = caught
            return holder.grpc_error_get()
        return caught if isinstance(caught, grpc.RpcError) else None


def _line(text: object) -> str:
    return " ".join(str(text or "").split())
