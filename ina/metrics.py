"""A Prometheus endpoint: ``GET /metrics`` of a registry of its own, served by its own thread.

A job of ina is in the label ``job_name``: Prometheus puts a ``job`` of its own on every sample, the
name of the scrape, and would rename ours.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.registry import Collector

from ina.errors import InvalidInputError, UnavailableError

_IDLE_CLIENT_S = 10.0  # a client that says nothing for so long is let go
_STOP_DEADLINE_S = 10.0

T = TypeVar("T")


class MetricsAddressError(InvalidInputError):
    """An address for metrics that is not ``host:port``."""


class MetricsListenError(UnavailableError):
    """The address for metrics is in use, or is not this machine's."""


class MetricsServer:
    """Serves from construction until :meth:`close`; a context manager.

    Collectors are asked in a thread of the request, so they must be thread-safe. Metrics of the
    process (CPU, memory, open files) are served beside theirs. A forked child keeps nothing of it.
    """

    def __init__(self, address: str, collectors: Iterable[Collector]) -> None:
        """``address``: host:port; port 0 takes a free one, see :attr:`address`.

        Raises :class:`MetricsAddressError`, :class:`MetricsListenError`.
        """
        host, port = parse_address(address)
        registry = CollectorRegistry()
        for collector in collectors:
            registry.register(collector)
        ProcessCollector(registry=registry)
        try:
            server, thread = start_http_server(port, host.strip("[]"), registry)
        except OSError as error:
            why = error.strerror or str(error)
            raise MetricsListenError(f"metrics: cannot listen on {address}: {why}") from None
        served: Any = server.RequestHandlerClass
        server.RequestHandlerClass = type("Handler", (served,), {"timeout": _IDLE_CLIENT_S})
        self._server = server
        self._thread: threading.Thread | None = thread
        self.address = f"{host}:{server.server_port}"
        """host:port that is served."""
        _serving.add(self)

    def close(self) -> None:
        """Stop the thread and close the socket. May be called again."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        _serving.discard(self)
        with contextlib.suppress(OSError):  # else it looks twice a second whether it shall end
            self._server.socket.shutdown(socket.SHUT_RDWR)
        self._server.shutdown()
        self._server.server_close()
        thread.join(_STOP_DEADLINE_S)

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _close_in_child(self) -> None:
        """The thread is the parent's; a copy of its socket would keep the port in use."""
        self._thread = None
        self._server.server_close()


class Living(Generic[T]):
    """Objects that are counted, until they are removed or nobody has them any more.

    Thread-safe, and without a lock, which a fork could leave held.
    """

    def __init__(self) -> None:
        self._references: set[weakref.ref[T]] = set()  # equal where they are to the same thing

    def add(self, thing: T) -> None:
        """Count it."""
        self._references.add(weakref.ref(thing))

    def remove(self, thing: T) -> None:
        """Count it no more; it is no error if it was not counted."""
        self._references.discard(weakref.ref(thing))

    def __iter__(self) -> Iterator[T]:
        for reference in list(self._references):
            thing = reference()
            if thing is not None:
                yield thing
            else:
                self._references.discard(reference)


_serving: weakref.WeakSet[MetricsServer] = weakref.WeakSet()


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of ``host:port``. Raises :class:`MetricsAddressError`."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= 0xFFFF):
        raise MetricsAddressError(f"metrics address {address!r}: expected HOST:PORT")
    return host, int(port)


def _after_fork_in_child() -> None:
    for server in list(_serving):
        server._close_in_child()
    _serving.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
