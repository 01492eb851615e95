"""What a controller asks of its callers, and shows them: TLS, the operator token, limits; and how
it slows down who guesses join tokens.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio

from ina.controller.config import Config, TlsConfig
from ina.controller.errors import ListenError
from ina.controller.switches.southbound import switch_tls
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


FREE = 3
"""Wrong tokens that cost nothing: somebody mistyped."""
FIRST_PAUSE_S, MOST_PAUSE_S = 0.25, 2.0
"""After each further one the pause is twice as long. Workers with several controllers wait 3 s for
one."""
FORGIVES_S = 10.0
"""In so long one wrong token is forgotten."""
_MOST_COUNTED = 16
"""As wrong tokens of one key: in some minutes all are forgotten."""
_KEYS = 10_000
"""That are kept; of more, those that were silent for longest are forgotten."""


@dataclass
class _Count:
    wrong: float
    at_s: float


class Guesses:
    """Of all addresses."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._counts: OrderedDict[tuple[str, str], _Count] = OrderedDict()

    def pause_s(self, address: str, tenant: str) -> float:
        """How long a call from there about a job of ``tenant`` waits now."""
        doublings = int(self._wrong(address, tenant)) - FREE
        return min(FIRST_PAUSE_S * 2.0**doublings, MOST_PAUSE_S) if doublings >= 0 else 0.0

    async def wait(self, address: str, tenant: str) -> None:
        """Before a token is looked at."""
        pause_s = self.pause_s(address, tenant)
        if pause_s:
            await self._sleep(pause_s)

    def missed(self, address: str, tenant: str) -> None:
        """A token was wrong."""
        before = self._wrong(address, tenant)
        wrong = min(before + 1, _MOST_COUNTED)
        self._counts[address, tenant] = _Count(wrong, self._clock())
        self._counts.move_to_end((address, tenant))
        if len(self._counts) > _KEYS:
            self._counts.popitem(last=False)
        if before < FREE <= wrong:
            _log.warning(
                "%s shows wrong join tokens for jobs of tenant %r: it is answered more slowly,"
                " by up to %g s",
                *(address, tenant, MOST_PAUSE_S),
            )

    def _wrong(self, address: str, tenant: str) -> float:
        found = self._counts.get((address, tenant))
        if found is None:
            return 0.0
        return max(0.0, found.wrong - (self._clock() - found.at_s) / FORGIVES_S)
