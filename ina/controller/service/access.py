"""What a controller asks of its callers, and shows them: TLS, the operator token, limits."""

from __future__ import annotations

import logging
from pathlib import Path

import grpc
import grpc.aio

from ina.controller.config import Config, TlsConfig
from ina.controller.errors import ListenError
from ina.controller.switches.southbound.connect import switch_tls
from ina.controller.watch.leases import LeaseTable
from ina.rpc.channel import is_loopback, ping_options
from ina.rpc.limits import MAX_CALLS, SERVER_OPTIONS, PeerLimit
from ina.rpc.operator_token import TokenAsker, read_token
from ina.rpc.tls import TlsFiles, server_certificates
from ina.tables.grpc_wire import switch_credentials

_log = logging.getLogger(__name__)


def check_files(config: Config) -> None:
    """Reads every file that the configuration names. Raises TlsError, OperatorTokenError."""
    ServerAccess(config)


class ServerAccess:
    """What a controller asks of its callers, and shows them. The files may be read again."""

    def __init__(self, config: Config) -> None:
        """Reads every file that the configuration names. Raises TlsError, OperatorTokenError."""
        self._asker = TokenAsker("")
        self._certificates: grpc.ServerCertificateConfiguration | None = None
        self.take(config)

    def take(self, config: Config) -> None:
        """Reads the files of this configuration; for who connects, or calls, from now on.

        Raises TlsError, OperatorTokenError; then everything is as it was.
        """
        listen = _files(config.tls, "tls.")
        certificates = server_certificates(listen) if listen else None
        switch_credentials(switch_tls(config))  # read at each connection to the switch
        token_file = config.operators.token_file
        self._asker.set_token(read_token(Path(token_file)) if token_file else "")
        self._certificates = certificates

    def make_server(self, lease_s: float) -> grpc.aio.Server:
        """A server with limits, which asks for the token, and pings workers with such leases."""
        leases = LeaseTable(lease_s)
        return grpc.aio.server(
            interceptors=[PeerLimit(), self._asker],
            options=[*SERVER_OPTIONS, *ping_options(leases.ping_s, leases.ping_timeout_s)],
            maximum_concurrent_rpcs=MAX_CALLS,
        )

    def add_port(self, server: grpc.aio.Server, config: Config) -> str:
        """Binds ``config.listen``, with TLS if configured; returns host:port, the actual port.

        Raises :class:`ListenError`.
        """
        host = config.listen.rpartition(":")[0]
        try:
            if self._certificates is None:
                if not is_loopback(host):
                    _log.warning(
                        "%s is served without TLS: who reaches it can create and end jobs",
                        config.listen,
                    )
                port = server.add_insecure_port(config.listen)
            else:
                credentials = grpc.dynamic_ssl_server_credentials(
                    self._certificates,
                    self._certificates_now,  # at each handshake, in a thread of gRPC's
                    require_client_authentication=bool(config.tls.ca),
                )
                port = server.add_secure_port(config.listen, credentials)
        except RuntimeError as error:
            raise ListenError(f"cannot listen on {config.listen}: {error}") from None
        return f"{host}:{port}"

    def _certificates_now(self) -> grpc.ServerCertificateConfiguration:
        assert self._certificates is not None  # whether there are any is decided at the start
        return self._certificates


def _files(config: TlsConfig, prefix: str) -> TlsFiles:
    return TlsFiles(config.cert, config.key, config.ca, prefix)
