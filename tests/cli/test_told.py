"""A signal that comes while Python runs a finaliser, where what its handler raises is lost."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys
from ina.cli.common.told import told_to_stop
from ina.cli.main import _stop

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        for _ in range(1000):  # the handler runs between two of these
            pass

signal.signal(signal.SIGTERM, _stop)
with told_to_stop() as wait:
    del_me = Finalised()
    del del_me
    print("went on", flush=True)
    wait()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_signal_that_python_dropped_ends_the_wait(number: int, code: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "went on\n"  # the exception of the handler was lost
    assert "Exception ignored in" in done.stderr
    assert done.returncode == code
