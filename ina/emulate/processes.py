"""Processes in a node's namespace, with their output in a log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ina.emulate.errors import EmulationError
from ina.errors import DeadlineError
from ina.netns import within

_POLL_S = 0.05
_TAIL_BYTES = 4096


class Logged:
    """A process that writes to a file, and that is stopped at the end."""

    def __init__(
        self, what: str, space: str, arguments: Sequence[str], log: Path, env: Mapping[str, str]
    ) -> None:
        """Starts it; ``what`` names it in errors."""
        self.what = what
        self.log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                within(space, arguments),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=dict(env),
                start_new_session=True,  # Ctrl-C reaches the emulation alone, which stops it
            )

    def await_line(self, text: str, timeout_s: float) -> None:
        """Returns when ``text`` is in the log. Raises :class:`EmulationError` if it ended,
        :class:`DeadlineError`."""
        deadline = time.monotonic() + timeout_s
        while text not in self.log.read_text("utf-8", "replace"):
            self.check()
            if time.monotonic() >= deadline:
                raise DeadlineError(f"{self.what}: not ready after {timeout_s:g} s, see {self.log}")
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Raises :class:`EmulationError` if it has ended."""
        code = self.process.poll()
        if code is not None:
            raise EmulationError(f"{self.what} ended with {describe(code)}: {last_line(self.log)}")

    def kill(self, timeout_s: float = 5.0) -> None:
        """SIGKILL: as if its machine lost power."""
        self.process.kill()
        self._reap(timeout_s)

    def stop(self, timeout_s: float = 5.0) -> None:
        """SIGTERM, then SIGKILL; its children are left to :func:`namespaces.remove`."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout_s)
        if self.process.poll() is None:
            self.kill(timeout_s)

    def _reap(self, timeout_s: float) -> None:
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise DeadlineError(
                f"{self.what}: process {self.process.pid} has not ended {timeout_s:g} s after"
                " SIGKILL"
            ) from None


def describe(code: int) -> str:
    """A return code of :mod:`subprocess`, in words."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def last_line(log: Path) -> str:
    """The log's last line that is not empty, and where the others are."""
    words = last_words(log)
    return f"{words} (see {log})" if words else f"see {log}"


def last_words(log: Path) -> str:
    """The log's last line that is not empty; empty: there is none."""
    with log.open("rb") as source:
        source.seek(max(0, source.seek(0, os.SEEK_END) - _TAIL_BYTES))
        lines = [line.strip() for line in source.read().decode("utf-8", "replace").splitlines()]
    said = [line for line in lines if line]
    return said[-1] if said else ""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, with the interpreter's own folder first on PATH (sudo resets it)."""
    folder = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", os.defpath)
    if folder not in path.split(os.pathsep):
        path = f"{folder}{os.pathsep}{path}"
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", **(extra or {})}
