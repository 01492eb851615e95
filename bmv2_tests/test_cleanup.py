"""A test run that is killed leaves no process behind, and so no namespace and no link."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from bmv2_tests.process import ROOT
from bmv2_tests.switches import CLASSES

MARK = "BMV2_TESTS_MARK"
PROGRAM = """
import sys, time
from pathlib import Path
from bmv2_tests.network import running
from bmv2_tests.plans import star
from bmv2_tests import jobs
with running(star(2), sys.argv[1], Path(sys.argv[2])) as network:
    jobs.start(network, jobs.plan_of("endless", 2, steps=3000, elems=2000)).workers[0].expect(
        "step 1 ", 60
    )
    print("running", flush=True)
    time.sleep(600)
"""
_START_S = 120.0
_END_S = 20.0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_survives_the_run(kind: str, number: signal.Signals, tmp_path: Path) -> None:
    assert kind in CLASSES
    mark = uuid.uuid4().hex
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, kind, str(tmp_path)],
        env=os.environ | {MARK: mark},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == "running\n"
        # Shells of four nodes and a bridge; switch, controller and two workers.
        assert len(marked(mark)) >= 9
        run.send_signal(number)
        run.wait(_START_S)
        deadline_s = time.monotonic() + _END_S
        while marked(mark) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        assert marked(mark) == {}
    finally:
        run.kill()
        run.communicate()


def marked(mark: str) -> dict[int, str]:
    """Processes with our mark in their environment: their commands, by number."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environ.split(b"\0"):
            found[int(folder.name)] = command
    return found
