"""The controller, wired up: P4Runtime session, registry, coordinator, gRPC service."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from types import TracebackType

import grpc.aio

from ina.controller.config import Config
from ina.controller.coordinator import Coordinator
from ina.controller.epochs import EpochCounter
from ina.controller.errors import ListenError
from ina.controller.memory import StaticPool
from ina.controller.northbound import ControllerService, DataPath
from ina.controller.plan import MARK_JOB
from ina.controller.registry import Registry
from ina.controller.southbound import P4RuntimeSession
from ina.controller.switch_writer import SwitchWriter
from ina.p4 import compiled, names
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc

_log = logging.getLogger(__name__)

_STOP_GRACE_S = 0.5


class ControllerApp:
    """A running controller; an async context manager."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.listen_addr = ""
        """host:port that the service listens on, once started."""
        self._undo = contextlib.AsyncExitStack()
        self._service: ControllerService | None = None

    async def __aenter__(self) -> ControllerApp:
        """Connects to the switch, sets its pipeline if need be, and starts to serve.

        Raises :class:`ListenError`, :class:`SwitchError`.
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

    async def show(self) -> pb2.ShowSwitchReply:
        """What the switch has now. Raises :class:`SwitchError`."""
        assert self._service is not None
        return await self._service.show()

    async def _start(self, undo: contextlib.AsyncExitStack) -> None:
        config, switch = self.config, self.config.switch
        _check_free(config.listen)
        session = await P4RuntimeSession.connect(
            switch.grpc_addr, switch.device_id, election_id=switch.election_id
        )
        undo.push_async_callback(session.close)
        fresh = await session.set_pipeline(compiled(switch.values))
        writer = SwitchWriter(session)
        epochs = EpochCounter.resume(await writer.prepare(fresh=fresh), fresh=fresh)
        registry = Registry(
            StaticPool(names.SLOTS_TOTAL, config.jobs.slots),
            epochs,
            range(MARK_JOB + 1, names.JOBS_TOTAL),
            unjoined_s=config.jobs.unjoined_s,
        )
        coordinator = Coordinator(registry, writer)
        data = DataPath(
            switch.data_host,
            switch.data_udp_port,
            switch.values,
            switch.data_port,
            config.endpoints(),
        )
        program = f"{names.PROGRAM}, {switch.values} values a packet"
        self._service = ControllerService(coordinator, writer, data, program)
        # Several processes may share a port with SO_REUSEPORT; two controllers must not.
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        rpc.add_ControllerServicer_to_server(self._service, server)
        self.listen_addr = _listen(server, config.listen)
        await server.start()
        undo.push_async_callback(server.stop, _STOP_GRACE_S)
        undo.push_async_callback(coordinator.close)
        _log.info("serving on %s", self.listen_addr)


async def run(config: Config, stop: asyncio.Event) -> None:
    """Runs a controller until ``stop`` is set. Raises what :class:`ControllerApp` raises."""
    async with ControllerApp(config):
        await stop.wait()


def _listen(server: grpc.aio.Server, address: str) -> str:
    host = address.rpartition(":")[0]
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {address}: {error}") from None
    return f"{host}:{port}"


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
