"""``ina demo`` and ``ina bench allreduce`` as a user runs them, and how they end."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ina.cli.common import torchrun
from ina.cli.demo import report as demo_report
from ina.cli.demo.run import Training
from ina.emulate import waiting
from ina.errors import DeadlineError
from tests.selection import LONG
from tests.worlds.processes.command import inside
from tests.worlds.processes.stand_ins import python

_DEADLINE_S = 180.0
_VALUES = 64 if LONG else 256


def _ina(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python(), "-m", "ina", *arguments],
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )


def test_demo_with_loss(tmp_path: Path) -> None:
    """Two workers, one epoch, 5 % loss: JSON, curve, and the same bits."""
    ran = _ina(
        *("demo", "--workers=2", "--epochs=1", f"--values={_VALUES}", "--loss-rate=0.05", "--json"),
        f"--out={tmp_path}",
    )
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    assert report["failures"] == []
    assert report["parameters_sha256"] == report["parameters_sha256_no_loss"]
    assert len(report["parameters_sha256"]) == 64
    assert report["accuracy_ina"] == report["accuracy_gloo"]
    assert 0 < report["largest_parameter_difference"] < 1e-4
    assert report["all_reduces_fallback"] == 0
    assert report["all_reduces_network"] >= 22  # 22 steps of at least one bucket
    assert report["contributions_summed"] == 2 * report["results"] > 0
    assert report["drops_injected"] > 0
    assert 0 < report["losses"] <= min(report["retransmissions"], report["drops_injected"])
    assert report["ring_bytes"] == report["tensor_bytes"]  # 2 (n - 1) / n with n = 2
    assert report["worker_bytes_received"] > report["tensor_bytes"]
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert Path(report["curve"]).read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "report.json").read_text()) == report
    said = ran.stderr.splitlines()
    assert any(line.startswith("ina: INA_CONTROLLER is not set: rank 0 runs") for line in said)
    assert any(line.startswith("with Gloo: epoch 1/1, loss") for line in said)


def test_demo_table_fits_80_columns() -> None:
    counters = {"network_bytes": 10**11, "network_all_reduces": 10**6, "fallbacks": 0}
    session = dict.fromkeys(("bytes_sent", "bytes_received"), 10**11)
    session |= dict.fromkeys(("retransmissions", "losses", "spurious_resends", "probes"), 10**7)
    session |= {"chunks_done": 10**9}
    switch = {"counters": [], "loss_in_packets": 10**8, "loss_out_packets": 10**8}
    rank = {**counters, "session": session, "switch": switch}

    def training(backend: str, sha256: str) -> Training:
        zeros = np.zeros(3, np.float32)
        return Training(backend, 32, 1234.5, [1.0], [1.0], zeros, sha256, [rank] * 32)

    run, other, gloo = (training("ina", "a" * 64), training("ina", "b" * 64), training("gloo", ""))
    for lossless, word in ((run, "bit-identical"), (other, "DIFFERENT")):
        report = demo_report.compare(run, gloo, lossless, values=256, loss_rate=0.05)
        report.curve = "out/demo/loss.png"
        report.failures = []
        console = Console(width=200, record=True, file=io.StringIO())
        console.print(demo_report.table(report))
        text = console.export_text()
        assert word in text
        assert max(len(line.rstrip()) for line in text.splitlines()) <= 80, text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("demo", "--workers", "33"), "error: --workers 33: one switch sums 1 to 32 workers"),
        (("demo", "--values", "100"), "error: --values 100: there are builds for 64, 256"),
        (("demo", "--loss-rate", "1"), "error: --loss-rate 1: want 0 <= rate < 1"),
        (("demo", "--epochs", "0"), "error: --epochs 0: want at least 1"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)


def test_interrupted_demo_leaves_nothing(tmp_path: Path) -> None:
    command = ["-m", "ina", "demo", "--workers=2", "--epochs=500", f"--out={tmp_path}"]
    forks = set(multiprocessing.active_children())
    demo = subprocess.Popen([python(), *command], stderr=subprocess.PIPE, text=True)
    try:
        assert demo.stderr is not None
        for line in demo.stderr:
            if "epoch 1/" in line:
                break
        family = torchrun.descendants(demo.pid)
        begun = set(multiprocessing.active_children()) - forks
        family += [(pid, said) for pid, said in map(_started, begun) if said is not None]
        assert len(family) >= 3  # torchrun and two workers
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 130
    finally:
        demo.kill()
        demo.communicate(timeout=10)
    assert _still_there(family) == []


_SCRIPT = """
import os, sys, time
if sys.argv[1] == "fail":
    import torch.distributed
    torch.distributed.init_process_group("gloo")
    if os.environ["RANK"] == "1":
        raise ValueError("the second worker gives up")
# One write: print() makes several where output is not buffered, and two workers' would mix.
os.write(1, f"worker {os.environ['RANK']}\\n".encode())
while os.environ["RANK"] != "1" or not os.path.exists(__file__ + ".end"):
    time.sleep(0.05)
"""


def test_the_chosen_compiler_reaches_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is compiled there yet
    monkeypatch.setenv("INA_CC", "no-such-compiler")
    # 360 values: a build that the fork server has not loaded.
    ran = _ina("bench", "allreduce", "--workers=2", "--values=360", "--sizes=4K")
    assert ran.returncode == 2
    assert "no C compiler 'no-such-compiler'" in ran.stderr


def test_failing_worker_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", python())
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    with pytest.raises(torchrun.WorkersFailedError, match="ValueError: the second worker gives up"):
        torchrun.run(
            script, ["fail"], workers=2, environ={}, timeout_s=60, on_line=lambda line: None
        )


def test_deadline_names_who_is_late_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting, "FIRST_S", 0.0)
    passed_s = 0.0  # besides what really passes
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed_s)
    monkeypatch.setattr(torchrun, "time", clock)
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    family: list[tuple[int, str]] = []
    ready = []

    def on_line(line: str) -> None:
        ready.append(line)
        if len(ready) == 2:
            family.extend(torchrun.descendants(os.getpid()))
            (tmp_path / "script.py.end").touch()  # of rank 1

    def look(self: waiting.Waiting, ended: Sequence[str], running: Sequence[str]) -> None:
        nonlocal passed_s
        watch(self, ended, running)
        passed_s = 60.0 if caplog.messages else 0.0

    watch = waiting.Waiting.look
    monkeypatch.setattr(waiting.Waiting, "look", look)
    late = r"script.py with 2 workers: not done after 60 s: rank 0 \(process \d+\) \(last line"
    with pytest.raises(DeadlineError, match=late):
        torchrun.run(script, ["sleep"], workers=2, environ={}, timeout_s=60, on_line=on_line)
    assert sorted(ready) == ["worker 0", "worker 1"]
    assert len(family) >= 3
    ours = [one for one in family if one not in torchrun.descendants(os.getpid())]
    assert len(ours) >= 3  # whatever else this test process has started may go on
    assert _still_there(ours) == []
    said = r"waiting for rank 0 \(process \d+\) to end: rank 1 ended \d s ago"
    assert re.match(said, caplog.messages[0])


def _started(fork: BaseProcess) -> tuple[int, str | None]:
    assert fork.pid is not None
    return fork.pid, torchrun.start_time(fork.pid)


def _still_there(family: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Which of the processes live on, after a moment for the kernel to bury them."""
    for _ in range(50):
        left = [one for one in family if torchrun.start_time(one[0]) == one[1]]
        if not left:
            break
        time.sleep(0.1)
    return left
