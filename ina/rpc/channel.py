"""How every client of ina opens a gRPC channel: workers, the command line, the torch backend.

Environment: ``INA_TLS_CA``, ``INA_TLS_CERT``, ``INA_TLS_KEY`` (PEM files; any of them turns TLS on)
and ``INA_OPERATOR_TOKEN`` (shown in operators' calls, and only in those).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from ipaddress import ip_address

import grpc

from ina.rpc.operator_token import ENVIRONMENT, TokenShower
from ina.rpc.tls import channel_credentials, from_environment

MAX_REPLY_BYTES = 64 << 20
"""A switch with all its tables full is a few MiB of text."""
# Between attempts to connect. gRPC's own go from one second to two minutes; but a controller that
# restarts gives its workers one lease, which can be a second, to be heard again.
_FIRST_BACKOFF_MS = 100
_MAX_BACKOFF_MS = 250
_log = logging.getLogger(__name__)
_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_REPLY_BYTES),
    ("grpc.initial_reconnect_backoff_ms", _FIRST_BACKOFF_MS),
    ("grpc.max_reconnect_backoff_ms", _MAX_BACKOFF_MS),
    ("grpc.enable_http_proxy", 0),  # a controller is never behind the web's proxy
]


def open_channel(address: str, options: Sequence[tuple[str, int]] = ()) -> grpc.Channel:
    """A channel to ``host:port``; connects when first used. ``options``: gRPC's, besides ina's own.

    Raises :class:`~ina.rpc.tls.TlsError`: a file that the environment names is wrong.
    """
    files = from_environment()
    if files:
        channel = grpc.secure_channel(address, channel_credentials(files), [*_OPTIONS, *options])
    else:
        channel = grpc.insecure_channel(address, [*_OPTIONS, *options])
    token = os.environ.get(ENVIRONMENT, "")
    if token and not files and not is_loopback(address.rpartition(":")[0]):
        _log.warning("%s: %s goes over the network without TLS", address, ENVIRONMENT)
    return grpc.intercept_channel(channel, TokenShower(token)) if token else channel


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``; names other than localhost are not looked up."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


_SHORTEST_MS = 500

BEARABLE_PINGS = [
    # A server hangs up on who asks more often.
    ("grpc.http2.min_ping_interval_without_data_ms", _SHORTEST_MS),
    ("grpc.keepalive_permit_without_calls", 1),
]
"""A server's options: what :func:`ping_options` of its clients asks is not too much."""


def ping_options(every_s: float, timeout_s: float) -> list[tuple[str, int]]:
    """Of a channel or a server: ping each connection, break it when no answer comes in time.

    A sign of life from native code: gRPC's own threads answer pings, also while another thread
    holds Python's lock, and they stop with the process. So a stream that is pinged, and stays
    open, proves that the peer's process runs.

    gRPC pings once a second at most. What is silent is noticed after both times together.
    """
    timeout_ms = int(timeout_s * 1000)
    return [
        ("grpc.keepalive_time_ms", max(_SHORTEST_MS, int(every_s * 1000))),
        ("grpc.keepalive_timeout_ms", timeout_ms),
        ("grpc.http2.ping_timeout_ms", timeout_ms),  # which by itself would be a minute
        ("grpc.http2.max_pings_without_data", 0),
    ]


def let_go(error: grpc.RpcError) -> None:
    """Undo what would keep a stream alive that gRPC has raised. Call it where the error ends.

    The error of a stream is the stream itself; its traceback holds the frames in which the stream
    is a local, so that only the garbage collector ends it. At the interpreter's end that is too
    late: the stream's destructor takes a lock, with which gRPC's daemon thread may have been
    stopped, and the program never ends. Keep the new error in no local of such a frame, either.
    """
    error.__traceback__ = None
    error.__context__ = None
