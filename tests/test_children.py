"""Processes end with the one that started them, also where that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

_POOL = """
import os, sys, time
from ina.children import worker_processes
def work(path):
    open(path, "w").write(str(os.getpid()))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        pass
if __name__ == "__main__":
    with worker_processes(1) as pool:
        for _ in range(3):
            pool.submit(work, sys.argv[1])
        print("submitted", flush=True)
        time.sleep(120)
"""
_FORKED = """
import os, sys, time
from tests.worlds.processes.forks import context
def work(path):
    open(path, "w").write(str(os.getpid()))
    time.sleep(120)
if __name__ == "__main__":
    context.set_forkserver_preload([])
    context.Process(target=work, args=(sys.argv[1],)).start()
    time.sleep(120)
"""
_DEADLINE_S = 60.0
ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("script", [_POOL, _FORKED], ids=["pool", "forked"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_child_ends_with_its_parent(script: str, how: signal.Signals, tmp_path: Path) -> None:
    """Also if only the parent is interrupted, while its child is busy and more is to be done."""
    file, said = tmp_path / "parent.py", tmp_path / "child"
    file.write_text(script)
    parent = subprocess.Popen(
        [sys.executable, str(file), str(said)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(lambda: said.exists() and said.read_text() != "")
        child = int(said.read_text())
        assert _runs(child)
        parent.send_signal(how)
        parent.wait(_DEADLINE_S)
        _wait(lambda: not _runs(child))
    finally:
        parent.kill()
        parent.wait()


def _runs(pid: int) -> bool:
    """A child that nobody has waited for yet has ended, too."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
