"""``ina controller run`` and commands that ask it, as processes."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.worlds.processes.forks import run_ina
from tests.worlds.processes.stand_ins import python

TIMEOUT_S = 120


NO_LEASES = "[jobs]\nlease_s = 3600\n"
"""Workers here say no heartbeat, and commands may be slow."""


def ina(*args: str) -> subprocess.CompletedProcess[str]:
    """To its end, as a process that begins with its imports done."""
    return run_ina(*args, timeout_s=TIMEOUT_S)


def config_file(tmp_path: Path, text: str = "") -> Path:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        udp_port = probe.getsockname()[1]
    path = tmp_path / "controller.toml"
    path.write_text(
        f'listen = "127.0.0.1:0"\n[switch]\nvalues = 64\ndata_udp_port = {udp_port}\n{text}'
    )
    return path


@contextmanager
def started(*args: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A command that serves, and its ready line."""
    command = [python(), "-m", "ina", *args, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()
