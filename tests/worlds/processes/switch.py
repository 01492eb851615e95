"""`ina switch` as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.worlds.processes.stand_ins import python

READY_DEADLINE_S = 60


@dataclass(frozen=True)
class RunningSwitch:
    """What the ready line said."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]

    @property
    def grpc_addr(self) -> str:
        return str(self.ready["grpc_addr"])

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and stderr."""
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stderr


def command(*options: str) -> list[str]:
    return [python(), "-m", "ina", "switch", *options]


@contextmanager
def running_switch(*options: str) -> Iterator[RunningSwitch]:
    process = subprocess.Popen(
        command("--json", "--grpc-addr", "127.0.0.1:0", *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(f"ina switch said nothing: {process.communicate()[1]}")
        yield RunningSwitch(process, json.loads(line))
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
