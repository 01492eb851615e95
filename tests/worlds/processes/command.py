"""Runs ``ina`` as a user does, and looks for what it leaves behind."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest

from ina.cli import main
from tests.worlds.processes.stand_ins import python

TIMEOUT_S = 60.0
# A child that was told to stop gets this long to be gone.
SETTLE_S = 5.0


class Outcome(NamedTuple):
    """How a command ended; ``left`` are command lines of processes it left running."""

    code: int
    out: str
    err: str
    left: list[str]


def ina(*args: str | Path, env: dict[str, str] | None = None) -> Outcome:
    """Run ``python -m ina ARGS``; its processes are known by a mark in their environment."""
    return run([python(), "-m", "ina", *map(str, args)], env)


def inside(capsys: pytest.CaptureFixture[str], *args: str | Path) -> Outcome:
    """``ina ARGUMENTS`` in this process: for what ends before it starts any other."""
    code = main.run([*map(str, args)])
    said = capsys.readouterr()
    return Outcome(code, said.out, said.err, [])


def run(command: list[str], env: dict[str, str] | None = None) -> Outcome:
    """Run a command with ``env`` added to the environment."""
    mark = f"WRONG_INPUT_TEST={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    result = subprocess.run(
        command, env={**os.environ, **(env or {}), name: value}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return Outcome(result.returncode, result.stdout, result.stderr, left(mark))


def left(mark: str) -> list[str]:
    deadline = time.monotonic() + SETTLE_S
    while (found := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def _marked(mark: str) -> list[str]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (directory / "environ").read_bytes():
                line = (directory / "cmdline").read_bytes()
                found.append(line.replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # ended meanwhile, or not ours to read
    return [line for line in found if line]
