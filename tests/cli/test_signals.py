"""Servers end when they are told to, by either signal, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.processes.stand_ins import python

SWITCH = ["switch", "--port", "1=udp:127.0.0.1:0", "--grpc-addr", "127.0.0.1:0"]
CONTROLLER = ["controller", "run", "--listen", "127.0.0.1:0", "--switch"]
DEADLINE_S = 60.0


def start(*args: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A server that has said that it is ready, and what it said."""
    process = subprocess.Popen(
        [python(), "-m", "ina", *args, "--json"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "INA_LOG": "warning"},  # servers log what happens, too
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        pytest.fail(process.communicate(timeout=DEADLINE_S)[1])
    return process, json.loads(line)


def stop(process: subprocess.Popen[str], sign: signal.Signals) -> tuple[int, str]:
    """The exit code and what was said on stderr."""
    process.send_signal(sign)
    try:
        _, said = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, said


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_server_ends_by_signal(sign: signal.Signals, code: int) -> None:
    switch, ready = start(*SWITCH)
    address = ready["grpc_addr"]
    controller, _ = start(*CONTROLLER, address)
    assert stop(controller, sign) == (code, "")
    assert stop(switch, sign) == (code, "")
    host, _, port = address.rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)


def test_a_thread_that_does_not_end_cannot_keep_the_process(tmp_path: Path) -> None:
    """As a gRPC handler can: it is said where it is stuck, and the process ends."""
    script = tmp_path / "stuck.py"
    script.write_text(
        "import sys, threading\n"
        "from ina.cli import main\n"
        "main._END_DEADLINE_S = 0.5\n"
        "def stuck_handler():\n"
        "    threading.Event().wait()\n"
        "threading.Thread(target=stuck_handler).start()\n"
        "sys.argv = ['ina', '--version']\n"
        "main.main()\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("ina ")
    assert "in stuck_handler" in done.stderr
