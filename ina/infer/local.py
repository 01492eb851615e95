"""All nodes of a plan on this machine, a process each, with a soft switch and a controller."""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from ina.controller.embedded import Embedded
from ina.infer.errors import ServiceError
from ina.infer.node import JOIN_S, PATIENCE_S
from ina.infer.places import around, write_places
from ina.infer.placing import Surroundings, place, summed
from ina.infer.plan import InferencePlan

_START_S = 30.0
"""For processes to import what they need, besides joining."""
_END_S = 10.0
READY = "ready"
"""The first word of what a node's process says once it serves."""


@dataclass(frozen=True)
class LocalOptions:
    """How they are run."""

    controller: str = ""
    """Of a job's controller that runs already; empty: one is started, with a soft switch."""
    patience_s: float = PATIENCE_S
    lease_s: float = 0.0
    """Of workers, for the controller that is started; 0: as is usual."""
    loss_rate: float = 0.0
    """A share of packets that nodes and the switch drop."""
    trace: Path | None = None
    """A folder where each node's process writes what happened when, at its end."""


class LocalNodes:
    """Context manager: on entry all serve, on exit all are gone."""

    def __init__(
        self, plan_path: Path, plan: InferencePlan, places: Path, options: LocalOptions
    ) -> None:
        """`places`: where the file of places is written, for who asks."""
        self._plan_path, self._plan, self._places = plan_path, plan, places
        self._options = options
        self._stack = contextlib.ExitStack()
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self._errors: dict[str, IO[str]] = {}
        self.embedded: Embedded | None = None
        self.where: Surroundings

    def __enter__(self) -> LocalNodes:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        plan, options = self._plan, self._options
        controller = options.controller
        if not controller and summed(place(plan)):
            jobs = {"lease_s": options.lease_s} if options.lease_s else {}
            self.embedded = self._stack.enter_context(
                Embedded(loss_rate=options.loss_rate, loss_seed=1, config={"jobs": jobs})
            )
            controller = self.embedded.controller_addr
        doors = {}
        for name in plan.spec.nodes:
            door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            doors[name] = self._stack.enter_context(contextlib.closing(door))
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            door.bind(("127.0.0.1", 0))
        nodes = {name: f"127.0.0.1:{door.getsockname()[1]}" for name, door in doors.items()}
        self.where = around(plan, nodes)
        write_places(self._places, plan, self.where)
        for name in plan.spec.nodes:
            self.processes[name] = self._spawn(name, controller)
        self._await_ready()
        for door in doors.values():  # from now on what comes is for the nodes alone
            door.close()

    def _spawn(self, name: str, controller: str) -> subprocess.Popen[str]:
        options = self._options
        command = [
            *(sys.executable, "-m", "ina", "infer", "serve", str(self._plan_path)),
            *("--node", name, "--places", str(self._places), "--is-held"),
            *("--patience-s", str(options.patience_s), "--loss-rate", str(options.loss_rate)),
        ]
        if controller:
            command += ["--controller", controller]
        if options.trace is not None:
            command += ["--trace", str(options.trace / f"{name}.json")]
        errors = self._errors[name] = self._stack.enter_context(  # read when the process ends badly
            tempfile.TemporaryFile("w+")  # noqa: SIM115 (the stack closes it)
        )
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # whose end says that this process has ended, however that was
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C is this process's to pass on
        )
        return process

    def said(self, name: str) -> str:
        """What a node's process has said on its standard error so far."""
        file = self._errors[name]
        file.seek(0)
        return file.read().strip()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _START_S + JOIN_S
        for name, process in self.processes.items():
            assert process.stdout is not None
            line = _first_line(process, deadline)
            if not line.startswith(READY):
                said = self.said(name).splitlines()
                raise ServiceError(
                    f"node {name!r} did not get ready: {said[-1] if said else 'it says nothing'}"
                )

    def ended(self) -> Sequence[str]:
        """Names of nodes whose processes are gone."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def close(self) -> None:
        """Idempotent."""
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + _END_S
        for process in self.processes.values():
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._stack.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _first_line(process: subprocess.Popen[str], deadline: float) -> str:
    """Of its output; empty: it has ended, or the time is over."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(max(deadline - time.monotonic(), 0)):
            return ""
    return process.stdout.readline()
