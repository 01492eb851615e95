"""Ctrl-C in the middle of a measurement in a star: no process, no namespace is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid

import pytest

from tests.bench.command import TIMEOUT_S, stars
from tests.worlds.processes import command as process
from tests.worlds.processes.emulations import need


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_star_leaves_nothing(number: signal.Signals) -> None:
    need("soft")
    mark, value = "BENCH_TEST", str(uuid.uuid4())
    case = ("--link=100mbit", "--workers=2", "--sizes=4K,64M", "--repeats=200", "--seconds=200")
    running = subprocess.Popen(
        [sys.executable, "-m", "ina", "bench", "allreduce", *case],
        env={**os.environ, mark: value},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stderr is not None
        deadline = time.monotonic() + TIMEOUT_S
        for line in running.stderr:
            # The star is up; its workers start, or measure already.
            if "star of 2 namespaces" in line:
                break
            assert time.monotonic() < deadline, line
        while len(stars(running)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(stars(running)) == 3
        running.send_signal(number)
        out, _ = running.communicate(timeout=60)
        assert running.returncode == 128 + number
        assert out == ""
        assert stars(running) == []
        assert process.left(f"{mark}={value}") == []
    finally:
        running.kill()
        running.communicate()
