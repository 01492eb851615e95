"""The soak itself, and that each of its judges can say no."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ina.testing import numerics
from tests.selection import LONG
from tests.soak import __main__ as command
from tests.soak import remains
from tests.soak.faults import Blame, deck
from tests.soak.job import End
from tests.soak.programs import MARK
from tests.soak.rank import VALUES, WORKERS
from tests.soak.sums import DTYPES, OPS, Case, cases

SECONDS = 600 if LONG else 5


@pytest.mark.timeout(SECONDS + 280)
def test_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """No wrong sum, every end explained by one line, nothing left running."""
    status = command.main(["--seconds", str(SECONDS), "--seed", "22", "--json"])
    said = capsys.readouterr().out
    report = json.loads(said.splitlines()[-1])
    assert (status, report["wrong"]) == (0, [])
    assert report["sums_checked"] > 0
    assert sum(report["faults"].values()) > 0
    assert report["forwarder"]["lost"] > 0
    assert report["forwarder"]["copied"] > 0


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_bit_is_a_wrong_sum(dtype: np.dtype[np.generic], op: str) -> None:
    case = Case(dtype, op, 500, (1, 2, 3))
    result = numerics.all_reduce([case.part(rank) for rank in range(WORKERS)], op, VALUES)
    assert case.fault(result, WORKERS, VALUES) == ""
    result.view(np.uint8)[321] ^= 1
    assert case.fault(result, WORKERS, VALUES) != ""


def test_a_sum_of_another_step_is_wrong() -> None:
    one, other = (Case(DTYPES[0], "sum", 500, (1, 2, step)) for step in (3, 4))
    result = numerics.all_reduce([one.part(rank) for rank in range(WORKERS)], "sum", VALUES)
    assert other.fault(result, WORKERS, VALUES) != ""


def test_all_types_and_operations_come_up() -> None:
    found = {(case.dtype.name, case.op) for step in range(50) for case in cases(1, 1, step)}
    assert found == {(dtype.name, op) for dtype in DTYPES for op in OPS}


def test_all_kinds_of_fault_come_up() -> None:
    faults = deck(random.Random(0))
    first = {next(faults).kind for _ in range(9)}
    assert len(first) == 9
    assert first == {next(faults).kind for _ in range(9)}


LOST = End(0, "WorkerLostError", "rank 2 has died", (2,))


@pytest.mark.parametrize(
    ("end", "blame", "is_fine"),
    [
        (LOST, Blame({2}), True),
        (LOST, Blame({1}), False),  # it names somebody to whom nothing was done
        (LOST, Blame(set(), switch=True), False),
        (End(0, "SwitchLostError", "the switch"), Blame(set(), switch=True), True),
        (End(0, "SwitchLostError", "the switch"), Blame({1}, controller=True), False),
        (End(0, "SwitchLostError", "two\nlines"), Blame(set(), switch=True), False),
        (End(0, "OperationTimeoutError", "no result"), Blame({1}, switch=True), False),
        (End(0, "RanksDifferError", "ranks differ"), Blame({1}, True, True), False),
        (End(0, "crashed", "Traceback"), Blame({1}, True, True), False),
        (End(0, "killed", "kill -9 by the soak"), Blame({0}), True),
        (End(0, "done", "all ranks agreed to end"), Blame(set()), True),
    ],
)
def test_an_end_must_fit_what_was_done(end: End, blame: Blame, is_fine: bool) -> None:
    assert (blame.objection(end) == "") == is_fine


def test_what_is_left_is_found(tmp_path: Path) -> None:
    net = f"127.{15}.{os.getpid() & 255}"
    environ = {**os.environ, MARK: str(tmp_path)}
    sleeper = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environ
    )
    try:
        begin = remains.started_at(sleeper.pid)
        assert begin
        # By its number, and by what its environment says of who has started it.
        assert len(list(remains.processes({sleeper.pid: begin}, tmp_path))) >= 1
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind((f"{net}.1", 0))
            assert len(list(remains.sockets(net))) == 1
        with socket.create_server((f"{net}.1", 0)):
            assert len(list(remains.sockets(net))) == 1
    finally:
        sleeper.send_signal(signal.SIGKILL)
        sleeper.communicate()
    assert list(remains.processes({sleeper.pid: begin}, tmp_path)) == []
    assert list(remains.sockets(net)) == []
