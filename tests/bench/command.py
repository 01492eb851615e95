"""Runs ``ina bench`` as a user does, and looks for what it leaves: processes, namespaces."""

from __future__ import annotations

import os
import subprocess
import uuid
from typing import NamedTuple

from ina.emulate import namespaces
from tests.worlds.processes import command as process
from tests.worlds.processes.stand_ins import python

TIMEOUT_S = 280.0


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str
    left: list[str]
    """Command lines of processes it left."""
    namespaces: list[str]
    """Networks of the command that are still there."""


def bench(*arguments: str) -> Outcome:
    """Run ``ina bench ARGUMENTS``."""
    name, value = "BENCH_TEST", str(uuid.uuid4())
    running = subprocess.Popen(
        [python(), "-m", "ina", "bench", *arguments],
        env={**os.environ, name: value},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = running.communicate(timeout=TIMEOUT_S)
    finally:
        running.kill()
        running.wait()
    return Outcome(running.returncode, out, err, process.left(f"{name}={value}"), stars(running))


def stars(running: subprocess.Popen[str]) -> list[str]:
    """Namespaces of this command's star."""
    return namespaces.networks().get(f"bench-{running.pid}", [])
