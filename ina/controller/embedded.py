"""A soft switch and a controller inside this process, for a job that has none.

With a mode that needs one, an aggregator, too.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar

from ina import modes
from ina.controller.app import ControllerApp
from ina.controller.config import DEFAULT_JOB_SLOTS, EMBEDDED_LEASE_S, make_config
from ina.p4.builds import usual_build
from ina.p4.names import DEFAULT_MODE
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.spec import VALUE_BYTES
from ina.rpc import controller_pb2 as pb2
from ina.rpc.tls import from_environment, server_credentials
from ina.switch.ports import FramesPort, Port, ShmPort, UdpPort
from ina.switch.server import SoftSwitch
from ina.tables.errors import SwitchError
from ina.tables.grpc_wire import PIPELINE_TIMEOUT_S
from ina.tables.p4runtime import CONNECT_TIMEOUT_S

DATA_PORT = 1
SHM_PORT = 2
_RING_SLOTS = 64
"""Of a job whose lanes have connections of their own."""
_START_TIMEOUT_S = CONNECT_TIMEOUT_S + PIPELINE_TIMEOUT_S
_STOP_TIMEOUT_S = 10.0
_SHOW_TIMEOUT_S = 30.0
_WINDOW_BYTES = 512 << 10
"""Of values, at most: what a core's cache holds of packets being built, or sums being written."""


class Embedded:
    """Context manager: on entry both are running, on exit both are gone.

    Both have threads of their own; the caller's event loop, if it has one, is not used. Entering
    raises what the switch and the controller raise (:class:`~ina.errors.InaError`): no C compiler,
    port in use, and so on. Where the environment names TLS files, the controller serves with them.
    """

    _first_pid: ClassVar[int] = 0
    """The process that entered the first one. In a fork of it gRPC's server waits for ever."""

    def __init__(
        self,
        values: int = 0,
        slots: int = 0,
        host: str = "127.0.0.1",
        loss_rate: float = 0.0,
        loss_seed: int = 0,
        config: Mapping[str, Mapping[str, Any]] | None = None,
        shm: bool = False,
        mode: str = DEFAULT_MODE,
    ) -> None:
        """What to run.

        Args:
            values: int32 values a packet, of a build of the mode's program; 0: as is usual.
            slots: slots of each job, both versions; even. 0: as many as suit the build.
            host: IPv4 address of this machine that the workers can reach.
            loss_rate: probability in 0..1 that a packet is dropped at the switch's ports, in each
                direction; drawn from a generator seeded with ``loss_seed``.
            config: more of the controller's configuration, as in its file: keys by table.
            shm: whether workers on this host, of this user, may use shared memory instead of UDP,
                in modes whose packets are plain UDP's.
            mode: of jobs that do not ask, by which the switch has its program; there is an
                aggregator, too, if it needs one.
        """
        self._config = config or {}
        program = modes.of(modes.of(mode).program)
        self._values = values or usual_build(program.name)
        usual = _RING_SLOTS if program.framing == "ring" else _slots_for(self._values)
        self._slots = slots or usual
        self._host = host
        self._is_udp = of_udp = program.framing == modes.Mode.framing
        self._shm = shm = shm and of_udp
        ports: list[Port] = [data_port(program, DATA_PORT, host)]
        if shm:
            ports.append(ShmPort(SHM_PORT))
        self.switch = SoftSwitch(
            ports,
            grpc_addr="127.0.0.1:0",
            loss_rate=loss_rate,
            loss_seed=loss_seed,
        )
        self._mode = mode
        self.aggregator: SoftSwitch | None = None
        """If the mode needs one."""
        if modes.of(mode).needs_aggregator:
            self.aggregator = SoftSwitch([UdpPort(DATA_PORT, host)], grpc_addr="127.0.0.1:0")
        self._app: ControllerApp | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._error: BaseException | None = None

    @property
    def way_text(self) -> str:
        """How workers on this host reach the switch, for people."""
        if self._shm:
            return "shared memory"
        return "UDP" if self._is_udp else "RoCEv2"

    @property
    def controller_addr(self) -> str:
        """``host:port`` of the controller."""
        assert self._app is not None
        return self._app.listen_addr

    def show(self) -> pb2.ShowSwitchReply:
        """What is installed on the switch, and its counters. Raises :class:`SwitchError`."""
        assert self._app is not None
        assert self._loop is not None
        reply = asyncio.run_coroutine_threadsafe(self._app.show(), self._loop)
        try:
            return reply.result(_SHOW_TIMEOUT_S)
        except concurrent.futures.TimeoutError:  # another than Python's own, before 3.11
            reply.cancel()
            raise SwitchError(
                f"the embedded controller did not answer in {_SHOW_TIMEOUT_S:g} s"
            ) from None

    def __enter__(self) -> Embedded:
        Embedded._first_pid = Embedded._first_pid or os.getpid()
        if Embedded._first_pid != os.getpid():
            raise SwitchError(
                f"process {Embedded._first_pid}, of which this one is a fork, has run a switch:"
                " gRPC cannot serve in both; start workers by spawn or forkserver"
            )
        try:
            self.switch.start()
            if self.aggregator is not None:
                self.aggregator.start()
            self._start_controller()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stops both; may be called again."""
        if self._loop is not None and self._stop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)
            self._thread = None
        self.switch.stop()
        if self.aggregator is not None:
            self.aggregator.stop()

    def _start_controller(self) -> None:
        host, udp_port = self.switch.udp_address(DATA_PORT)
        files = from_environment()
        if files:  # the workers will ask for TLS
            server_credentials(files)  # complains with the environment's names
        settings: dict[str, dict[str, Any]] = {
            "tls": {"cert": files.cert, "key": files.key, "ca": files.ca},
            "switch": {
                "grpc_addr": self.switch.grpc_addr,
                "mode": modes.of(self._mode).program,
                "values": self._values,
                "data_host": host,
                "data_udp_port": udp_port,
                "data_port": DATA_PORT,
                "data_shm": self.switch.shm_address(SHM_PORT) if self._shm else "",
            },
            "jobs": {"mode": self._mode, "slots": self._slots, "lease_s": EMBEDDED_LEASE_S},
        }
        for table, keys in self._config.items():
            settings.setdefault(table, {}).update(keys)
        document = {"listen": f"{self._host}:0", "aggregator": self._aggregators(), **settings}
        config = make_config(document, "embedded controller")
        self._app = ControllerApp(config)
        # A daemon, so that a program that forgets to close still ends.
        self._thread = threading.Thread(
            target=self._run, args=(self._app,), name="ina-controller", daemon=True
        )
        self._thread.start()
        if not self._ready.wait(_START_TIMEOUT_S):
            raise SwitchError(f"the embedded controller did not start in {_START_TIMEOUT_S:g} s")
        if self._error is not None:
            raise self._error

    def _aggregators(self) -> list[dict[str, Any]]:
        if self.aggregator is None:
            return []
        host, udp_port = self.aggregator.udp_address(DATA_PORT)
        return [
            {
                "name": "aggregator",
                "grpc_addr": self.aggregator.grpc_addr,
                "data_host": host,
                "data_udp_port": udp_port,
                "data_port": DATA_PORT,
            }
        ]

    def _run(self, app: ControllerApp) -> None:
        try:
            asyncio.run(self._serve(app))
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self, app: ControllerApp) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with app:
            self._ready.set()
            await self._stop.wait()


def data_port(program: modes.Mode, number: int, host: str, udp_port: int = 0) -> Port:
    """Of a soft switch that takes a program's packets over a socket."""
    match program.framing:
        case "ring":
            return FramesPort(number, host, udp_port)
        case "rocev2":
            return UdpPort(number, host, udp_port, ROCE_UDP_PORT)
    return UdpPort(number, host, udp_port)


def _slots_for(values: int) -> int:
    return min(DEFAULT_JOB_SLOTS, 2 * (_WINDOW_BYTES // (VALUE_BYTES * values)))
