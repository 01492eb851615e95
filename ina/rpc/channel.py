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
