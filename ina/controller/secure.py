"""The controller's TLS and operator token: at its server, and towards the switch."""

from __future__ import annotations

import logging
from pathlib import Path

import grpc
import grpc.aio
from finsy.grpcutil import GRPCCredentialsTLS

from ina.controller.config import Config, TlsConfig
from ina.controller.errors import ListenError
from ina.rpc.channel import is_loopback
from ina.rpc.limits import MAX_CALLS, SERVER_OPTIONS, PeerLimit
from ina.rpc.operator_token import TokenAsker, read_token
from ina.rpc.tls import TlsFiles, load, server_credentials

_log = logging.getLogger(__name__)


def check_files(config: Config) -> None:
    """Reads every file that the configuration names. Raises TlsError, OperatorTokenError."""
    listen = _files(config.tls, "tls.")
    if listen:
        server_credentials(listen)
    switch_credentials(switch_tls(config))
    if config.operators.token_file:
        read_token(Path(config.operators.token_file))


def make_server(config: Config) -> grpc.aio.Server:
    """A server with the configuration's limits and token. Raises OperatorTokenError."""
    interceptors: list[grpc.aio.ServerInterceptor] = [PeerLimit()]  # type: ignore[type-arg]
    if config.operators.token_file:
        interceptors.append(TokenAsker(read_token(Path(config.operators.token_file))))
    return grpc.aio.server(
        interceptors=interceptors, options=SERVER_OPTIONS, maximum_concurrent_rpcs=MAX_CALLS
    )


def add_port(server: grpc.aio.Server, config: Config) -> str:
    """Binds ``config.listen``, with TLS if configured; returns host:port with the actual port.

    Raises :class:`ListenError`, :class:`~ina.rpc.tls.TlsError`.
    """
    host = config.listen.rpartition(":")[0]
    files = _files(config.tls, "tls.")
    credentials = server_credentials(files) if files else None
    try:
        if credentials is None:
            if not is_loopback(host):
                _log.warning(
                    "%s is served without TLS: who reaches it can create and end jobs",
                    config.listen,
                )
            port = server.add_insecure_port(config.listen)
        else:
            port = server.add_secure_port(config.listen, credentials)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {config.listen}: {error}") from None
    return f"{host}:{port}"


def switch_tls(config: Config) -> TlsFiles:
    """The controller's files towards the switch."""
    return _files(config.switch_tls, "switch_tls.")


def switch_credentials(files: TlsFiles) -> GRPCCredentialsTLS | None:
    """For finsy's P4Runtime client; None: plain text. Raises :class:`~ina.rpc.tls.TlsError`."""
    if not files:
        return None
    pair, roots = load(files, server=False)
    key, chain = pair or (None, None)
    return GRPCCredentialsTLS(cacert=roots, cert=chain, private_key=key)


def _files(config: TlsConfig, prefix: str) -> TlsFiles:
    return TlsFiles(config.cert, config.key, config.ca, prefix)
