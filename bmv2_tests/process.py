"""A program in a Mininet node: its output in a file, a deadline, and an end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bmv2_tests.debian import environ

ROOT = Path(__file__).parent.parent
_STOP_S = 10.0
_POLL_S = 0.05
PYTHON = (sys.executable, "-u", "-m")
# A test run that is killed leaves no switch behind; the namespaces go with their processes. Not a
# preexec_fn: with one Python forks, and runs in the child what is not safe beside gRPC's threads.
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


class NodeProcess:
    """Started by the constructor. `node` is a Mininet node; it dies with the test at the latest."""

    def __init__(
        self, node: Any, command: list[str], log: Path, extra_environ: dict[str, str] | None = None
    ) -> None:
        self.name = f"{node.name}: {' '.join(command[-3:])}"
        self.log = log
        with log.open("ab") as file:
            self._process: subprocess.Popen[bytes] = node.popen(
                [*_DIE_WITH_PARENT, *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environ() | (extra_environ or {}),
                cwd=ROOT,
            )

    def text(self) -> str:
        """All that it said so far."""
        return self.log.read_text(errors="replace")

    def expect(self, wanted: str, timeout_s: float) -> str:
        """The first line that contains this; fails the test when it does not come."""
        return self._until(lambda: self._line(wanted), f"said {wanted!r}", timeout_s)

    def ready(self, timeout_s: float = 120.0) -> dict[str, Any]:
        """The line of JSON that an `ina` service says when it is ready."""
        document: dict[str, Any] = json.loads(self.expect('{"', timeout_s))
        return document

    def wait(self, timeout_s: float) -> int:
        """Its exit status; fails the test when the end does not come."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.name} not done in {timeout_s:g} s: {self.text()}"
            ) from None

    @property
    def pid(self) -> int:
        """Of the program: what starts it is replaced by it."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Ends it; a signal that it survives for long is followed by SIGKILL. Idempotent."""
        if self.running:
            self._process.send_signal(number)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(_STOP_S)

    def _line(self, wanted: str) -> str | None:
        lines = self.text().split("\n")[:-1]
        return next((line for line in lines if wanted in line), None)

    def _until(self, look: Callable[[], str | None], what: str, timeout_s: float) -> str:
        deadline_s = time.monotonic() + timeout_s
        while True:
            was_running = self.running
            found = look()
            if found is not None:
                return found
            if not was_running or time.monotonic() > deadline_s:
                raise AssertionError(f"{self.name} has not {what}: {self.text()}")
            time.sleep(_POLL_S)
