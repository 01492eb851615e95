"""The switch, the controller and the forwarder of a soak: real processes that die and come back."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tests.soak.rank import VALUES
from tests.worlds.fakes.forwarder import Counts, Forwarder, Weather
from tests.worlds.processes.forks import Command, context, start_ina

LEASE_S = 3.0
LOSS_S = 3.0
SLOTS = 64
START_S = 60.0
STOP_S = 20.0
MARK = "INA_SOAK"
"""In the environment of each program and of what it starts: the folder of the run."""


@dataclass(frozen=True)
class Places:
    """Addresses that no other soak of this machine has: a network of 127.0.0.0/8 by the process."""

    net: str

    @classmethod
    def own(cls) -> Places:
        """By this process's id; 127.64.0.0/10 is for shared memory."""
        pid = os.getpid()
        return cls(f"127.{16 + (pid >> 8) % 32}.{pid & 255}")

    @property
    def workers(self) -> str:
        return f"{self.net}.1"

    @property
    def back(self) -> str:
        """The workers' address, as the switch sees it."""
        return f"{self.net}.2"

    @property
    def front(self) -> tuple[str, int]:
        """The switch, as workers see it."""
        return (f"{self.net}.3", 17760)

    @property
    def switch(self) -> tuple[str, int]:
        return (f"{self.net}.4", 17760)

    @property
    def grpc(self) -> str:
        return f"{self.net}.4:9559"

    @property
    def controller(self) -> str:
        return f"{self.net}.5:17700"


class Program:
    """``ina`` with these arguments, started as often as needed, killed and stopped at any time."""

    def __init__(self, name: str, arguments: tuple[str, ...], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        """What all its lives have written on stderr."""
        self.pids: list[int] = []
        """Of all its lives."""
        self.is_up = False
        """Whether it has said that it is ready, and lives."""
        self.paused = False
        self._arguments, self._folder = arguments, folder
        self._command: Command | None = None
        self._started_s = 0.0

    def start(self) -> None:
        """Begins it; it is up when :meth:`look` has seen its first line."""
        assert self._command is None
        self._command = start_ina(
            *self._arguments, "--json", environ={MARK: str(self._folder)}, log=self.log
        )
        assert self._command.process.pid is not None
        self.pids.append(self._command.process.pid)
        self._started_s = time.monotonic()

    @property
    def runs(self) -> bool:
        """Whether there is a process, ready or not."""
        return self._command is not None

    def look(self) -> str:
        """Sees whether it has come up, or ended by itself: then the line that says why."""
        command = self._command
        if command is None:
            return ""
        if not command.process.is_alive():
            code = command.process.exitcode
            self._command, self.is_up = None, False
            command.end(0)
            return _last_line(self.log) or f"{self.name} ended with {code}, without a word"
        if not self.is_up:
            line = command.first_line(0.0)
            if line.endswith(b"\n"):
                json.loads(line)
                self.is_up = True
            elif time.monotonic() - self._started_s > START_S and not self.paused:
                self.kill()
                return f"{self.name} was not ready after {START_S:g} s"
        return ""

    def pause(self) -> None:
        if self._command is not None:
            self._command.signal(signal.SIGSTOP)
            self.paused = True

    def resume(self) -> None:
        if self._command is not None and self.paused:
            self._command.signal(signal.SIGCONT)
            self._started_s = time.monotonic()  # to be ready, it has all its time again
        self.paused = False

    def kill(self) -> None:
        """With SIGKILL, also if it is stopped. Idempotent."""
        command, self._command = self._command, None
        self.is_up = self.paused = False
        if command is not None:
            command.signal(signal.SIGKILL)
            command.end(STOP_S)

    def stop(self) -> str:
        """Asks it to end; what is wrong with how it did."""
        command, self._command = self._command, None
        self.is_up = False
        if command is None:
            return f"{self.name} did not run at the end"
        command.signal(signal.SIGTERM)
        code = command.end(STOP_S)
        if code == 128 + signal.SIGTERM:  # as a shell tells of it
            return ""
        return f"{self.name} has ended with {code} within {STOP_S:g} s of SIGTERM"


def switch(places: Places, folder: Path) -> Program:
    host, port = places.switch
    arguments = ("switch", "--port", f"1=udp:{host}:{port}", "--grpc-addr", places.grpc)
    return Program("switch", arguments, folder)


def controller(places: Places, folder: Path) -> Program:
    """``data_host`` is the forwarder's: workers learn no other address of the switch."""
    host, port = places.front
    file = folder / "controller.toml"
    file.write_text(
        f'listen = "{places.controller}"\n'
        f'[switch]\ngrpc_addr = "{places.grpc}"\nvalues = {VALUES}\n'
        f'data_host = "{host}"\ndata_udp_port = {port}\nloss_s = {LOSS_S}\n'
        f'data_hosts = ["{places.switch[0]}"]\n'  # where its packets get to
        f"[jobs]\nslots = {SLOTS}\nlease_s = {LEASE_S}\n"
        f'[store]\npath = "{folder / "controller.db"}"\n'
    )
    return Program("controller", ("controller", "run", str(file)), folder)


class Way:
    """The forwarder's process; nothing happens to it."""

    def __init__(self, places: Places, weather: Weather, seed: int) -> None:
        forwarder = Forwarder(places.front, places.back, places.switch, weather, seed)
        forwarder.close()  # an address that is taken shows here, not in the child
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_forward, args=(places, weather, seed, theirs), name="forwarder"
        )
        self.process.start()
        theirs.close()

    def stop(self) -> Counts:
        """Ends it; what it has done."""
        counts = Counts()
        self._pipe.send("end")
        if self._pipe.poll(STOP_S):
            counts = Counts(**self._pipe.recv())
        self.process.join(STOP_S)
        self.process.kill()
        self.process.join()
        self._pipe.close()
        return counts


def _forward(places: Places, weather: Weather, seed: int, told: Connection) -> None:
    Forwarder(places.front, places.back, places.switch, weather, seed).serve(told)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else ""
