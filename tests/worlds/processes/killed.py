"""A controller that is killed at a named point, and its successor in this process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import grpc
import numpy as np

from ina.controller import faults
from ina.controller.app import ControllerApp
from ina.controller.config import load_config
from ina.host import Session
from ina.switch.server import SoftSwitch
from tests.worlds.fakes.workers import Workers, workers_of
from tests.worlds.processes.forks import start_ina

HANG_S = 60


LEASE_S = 30


VICTIM = "victim"


class Place:
    """A switch, a controller's configuration, and a job that runs through all tests."""

    def __init__(self, switch: SoftSwitch, directory: Path, store_url: str) -> None:
        host, udp_port = switch.udp_address(1)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.store_url = store_url
        self.config = directory / "controller.toml"
        self.config.write_text(
            f'listen = "{self.address}"\n'
            f'[switch]\ngrpc_addr = "{switch.grpc_addr}"\nvalues = 64\n'
            f'data_host = "{host}"\ndata_udp_port = {udp_port}\nmulticast = "239.192.0.0/24"\n'
            f'[store]\nurl = "{store_url}"\n[jobs]\nlease_s = {LEASE_S}\n'
        )
        self.bystander: Session
        self.newest_epoch = 0
        self.loop: asyncio.AbstractEventLoop

    def in_this_process(self, work: Callable[[ControllerApp], None]) -> None:
        """Runs a controller meanwhile."""

        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            async with ControllerApp(load_config(self.config)) as app:
                await asyncio.wait_for(asyncio.to_thread(work, app), HANG_S)

        asyncio.run(serve())

    def until_killed(
        self,
        point: str,
        work: Callable[[Workers], None],
        constants: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        """Runs a controller that dies at ``point``, and ``work`` with it until then.

        ``constants``: of its modules, as of :func:`start_ina`.
        """
        controller = start_ina(
            *("controller", "run", str(self.config), "--json"),
            environ={faults.VARIABLE: point},
            constants=constants,
        )
        code = None
        try:
            if controller.first_line(HANG_S):  # else it died while it started
                with workers_of(self.address) as workers, contextlib.suppress(grpc.RpcError):
                    work(workers)
        finally:
            code = controller.end(HANG_S)
        assert code == -signal.SIGKILL

    def assert_bystander_works(self) -> None:
        values = np.arange(1000, dtype=np.int32)
        np.testing.assert_array_equal(np.asarray(self.bystander.all_reduce(values)), values)


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
