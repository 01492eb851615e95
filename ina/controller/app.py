"""The controller, wired up: store, switch, gRPC server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from types import TracebackType

import msgspec

from ina.controller.config import Config, with_build
from ina.controller.config.reload import LIVE, Changes, changes
from ina.controller.errors import ListenError, StandbyError
from ina.controller.service.access import ServerAccess
from ina.controller.service.metrics import serve_metrics
from ina.controller.service.peers import Peers
from ina.controller.service.supervisor import Supervisor
from ina.controller.store import open_store
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

_STOP_GRACE_S = 0.5


class ControllerApp:
    """A running controller; an async context manager."""

    def __init__(self, config: Config) -> None:
        """Raises :class:`ConfigError`: ``switch.values`` is 0 and no build fits the path."""
        self.config = with_build(config)
        self._asked = config
        self.listen_addr = ""
        """host:port that the service listens on, once started."""
        self.metrics_addr = ""
        """host:port of the Prometheus endpoint, if there is one, once started."""
        self._undo = contextlib.AsyncExitStack()
        self._supervisor: Supervisor | None = None
        self._access: ServerAccess | None = None
        self._peers: Peers | None = None

    async def __aenter__(self) -> ControllerApp:
        """Connects to the switches, takes the role that falls to it, and starts to serve.

        Raises :class:`ListenError`, :class:`SwitchError`, :class:`StoreError`,
        :class:`~ina.metrics.MetricsListenError`.
        """
        async with contextlib.AsyncExitStack() as undo:
            await self._start(undo)
            self._undo = undo.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops. Jobs that run keep their entries on the switch."""
        await self._undo.aclose()

    @property
    def role(self) -> str:
        """``primary`` or ``standby``."""
        return "standby" if self._supervisor is None else self._supervisor.describe().role

    def reload(self, asked: Config) -> Changes:
        """Takes quotas, windows, tokens and certificates of ``asked``, and reads all files again.

        Raises :class:`~ina.rpc.tls.TlsError`, :class:`~ina.rpc.operator_token.OperatorTokenError`;
        then everything is as it was.
        """
        assert self._supervisor is not None
        assert self._access is not None
        found = changes(self.config, self._asked, asked)
        self._access.take(found.config)
        self.config = found.config
        self._supervisor.reconfigure(found.config)
        if self._peers is not None:
            self._peers.reconfigure(found.config)
        # What stays is named each time, until it is undone or the controller has restarted.
        live = {key: getattr(found.config, key) for key in (*LIVE.values(), "jobs")}
        self._asked = msgspec.structs.replace(self._asked, **live)
        return found

    async def show(self, switch: str = "") -> pb2.ShowSwitchReply:
        """What a switch has now; it need not be named where it is alone.

        Raises :class:`SwitchError`, :class:`StandbyError`.
        """
        if self._supervisor is None or self._supervisor.term is None:
            raise StandbyError("standby: this controller is not primary")
        return await self._supervisor.term.operator.show(switch)

    async def _start(self, undo: contextlib.AsyncExitStack) -> None:
        config = self.config
        self._access = access = ServerAccess(config)
        _check_free(config.listen)
        store = open_store(config.store.location)
        undo.callback(store.close)
        self._supervisor = supervisor = Supervisor(config, store)
        undo.push_async_callback(supervisor.close)
        if config.metrics:
            self.metrics_addr = serve_metrics(supervisor, config.metrics, undo)
        await supervisor.start()
        server = access.make_server(config.jobs.lease_s)
        server.add_generic_rpc_handlers((supervisor.switchboard,))
        self.listen_addr = access.add_port(server, config)
        await server.start()
        if config.store.is_shared:
            self._peers = peers = Peers(config, supervisor)
            peers.start()
            undo.push_async_callback(peers.close)
        undo.push_async_callback(server.stop, _STOP_GRACE_S)
        undo.push_async_callback(supervisor.close)  # first: it ends the calls that wait
        _log.info("serving on %s", self.listen_addr)


async def run(config: Config, stop: asyncio.Event) -> None:
    """Runs a controller until ``stop`` is set. Raises what :class:`ControllerApp` raises."""
    async with ControllerApp(config):
        await stop.wait()


def _check_free(address: str) -> None:
    """gRPC says only that it failed; the kernel says why."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, _, _, _, where = found[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen(1)
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror}") from None
