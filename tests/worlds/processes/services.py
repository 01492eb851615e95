"""A real ``ina switch`` and ``ina controller run``, as forks, which a test kills and starts again.

Both keep the addresses that they got at first, so that a restarted one is where it was. Whatever
still runs when the context ends is killed.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.worlds.processes.forks import Command, start_ina

_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 10.0


class Service:
    """One process that says on stdout, as JSON, when it is ready."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"  # stderr of all its lives
        self._command: Command | None = None

    def start(self, *arguments: str) -> dict[str, Any]:
        """Start it and wait until it is ready; returns what it said."""
        assert self._command is None
        # A test may set INA_* for its workers; a service gets its own.
        environ = {name: os.environ[name] for name in ("INA_CC",) if name in os.environ}
        self._command = start_ina(*arguments, "--json", environ=environ, log=self.log)
        line = self._command.first_line(_START_TIMEOUT_S)
        if not line.endswith(b"\n"):
            self.kill()
            raise AssertionError(f"{self.name} did not start: {self.log.read_text()}")
        ready: dict[str, Any] = json.loads(line)
        return ready

    def send(self, number: signal.Signals) -> None:
        """Send a signal that does not end it, if it runs."""
        if self._command is not None:
            self._command.signal(number)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal and wait for the end; SIGKILL if that does not come. Idempotent."""
        command, self._command = self._command, None
        if command is not None:
            command.signal(number)
            command.end(_END_TIMEOUT_S)


class Services:
    """A switch and a controller with a store; workers get :attr:`environ`."""

    def __init__(
        self,
        folder: Path,
        *,
        lease_s: float = 2.0,
        loss_s: float = 3.0,
        slots: int = 64,
        loss_rate: float = 0.0,
        loss_seed: int = 0,
        shared_slots: int = 0,
    ) -> None:
        """``slots``: of each job; ``loss_rate``: of the switch's ports, each way.

        ``shared_slots``: of the switch, for jobs of mode shared, which have an aggregator then.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lease_s, self._loss_s, self._slots = lease_s, loss_s, slots
        self._loss = ("--loss-rate", str(loss_rate), "--loss-seed", str(loss_seed))
        self.switch = Service("switch", folder)
        self.controller = Service("controller", folder)
        self.aggregator = Service("aggregator", folder)
        self._grpc_addr, self._data_addr, self._listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
        self._shared_slots = shared_slots
        self._shared_toml = ""

    def __enter__(self) -> Services:
        try:
            self.start_switch()
            if self._shared_slots:
                self._start_aggregator()
            self.start_controller()
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
        """Kill what runs."""
        self.controller.kill()
        self.switch.kill()
        self.aggregator.kill()

    @property
    def environ(self) -> dict[str, str]:
        """The variables of workers that use this controller."""
        mode = {"INA_MODE": "shared"} if self._shared_slots else {}
        return {"INA_CONTROLLER": self._listen, **mode}

    @property
    def controller_addr(self) -> str:
        """``host:port`` of the controller."""
        return self._listen

    def start_switch(self) -> None:
        """Start the switch, where it was before."""
        ready = self.switch.start(
            *("switch", "--port", f"1=udp:{self._data_addr}", "--grpc-addr", self._grpc_addr),
            *self._loss,
        )
        self._grpc_addr = ready["grpc_addr"]
        self._data_addr = ready["ports"]["1"].removeprefix("udp:")

    def _start_aggregator(self) -> None:
        ready = self.aggregator.start(
            *("aggregator", "--listen", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0")
        )
        host, _, port = ready["ports"]["1"].removeprefix("udp:").rpartition(":")
        self._shared_toml = (
            f'mode = "shared"\nshared_slots = {self._shared_slots}\n'
            f'[[aggregator]]\nname = "agg"\ngrpc_addr = "{ready["grpc_addr"]}"\n'
            f'data_host = "{host}"\ndata_udp_port = {port}\nloss_s = {self._loss_s}\n'
        )

    def start_controller(self) -> None:
        """Start the controller, where it was before, on the same store."""
        host, _, port = self._data_addr.rpartition(":")
        file = self._folder / "controller.toml"
        file.write_text(
            f'listen = "{self._listen}"\n'
            f'[switch]\ngrpc_addr = "{self._grpc_addr}"\nvalues = 64\n'
            f'data_host = "{host}"\ndata_udp_port = {port}\nloss_s = {self._loss_s}\n'
            f"{self._shared_toml}"
            f"[jobs]\nslots = {self._slots}\nlease_s = {self._lease_s}\n"
            f'[store]\npath = "{self._folder / "controller.db"}"\n'
        )
        ready = self.controller.start("controller", "run", str(file))
        self._listen = ready["controller"]
