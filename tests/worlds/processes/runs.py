"""A training in real processes, and what a test does to it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import grpc

from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import OperatorStub
from tests.torch.death_cases import Outcome, Training
from tests.worlds.processes.launch import finish, outcome, start

DEADLINE_S = 60.0
FOREVER = 1_000_000


class Run:
    """Starts a training; its processes have ended after :meth:`outcomes`."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        environ: dict[str, str],
        training: Training,
        hosts: Sequence[str] = (),
    ) -> None:
        """``hosts``: the address of each rank's host."""
        self.folder, self.training = folder, training
        environ = {"INA_LEAVE_TIMEOUT_S": "5", **environ}
        if training.wire:
            environ["INA_WIRE"] = training.wire
        self.processes: list[BaseProcess] = start(
            training, workers, folder, environ=environ, hosts=hosts
        )

    def step(self) -> int:
        """How many rank 0 has done."""
        said = self.training.folder / "step"
        return int(said.read_text()) if said.exists() else 0

    def wait_for_return(self, number: int) -> None:
        """Until rank 0 has gone back to the network so often."""
        said = self.training.folder / "returns"
        wait_until(lambda: said.exists() and int(said.read_text()) >= number, f"return {number}")

    def wait_for_step(self, step: int) -> None:
        """Until rank 0 has done so many."""
        wait_until(lambda: self.step() >= step, f"step {step}")

    def outcomes(self, *ranks: int) -> list[Outcome]:
        """Of all ranks, or of those; the test fails if one has none."""
        finish(self.processes, DEADLINE_S)
        found = [outcome(self.folder, rank) for rank in ranks or range(len(self.processes))]
        assert all(ok for ok, _ in found), [text for ok, text in found if not ok]
        return [value for _, value in found]

    def stop(self) -> None:
        """Kills all ranks, where nothing is asked of them any more."""
        for process in self.processes:
            process.kill()
            process.join()

    def kill(self, rank: int, number: signal.Signals = signal.SIGKILL) -> None:
        pid = self.processes[rank].pid
        assert pid is not None
        os.kill(pid, number)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_S:g} s"
        time.sleep(0.02)


def slots_used(controller: str) -> int:
    """As the switch says; fails if it has entries that are nobody's."""
    with grpc.insecure_channel(controller) as channel:
        shown = OperatorStub(channel).ShowSwitch(pb2.ShowSwitchRequest(), timeout=30)
    assert not [entry for entry in shown.entries if entry.foreign]
    return int(shown.slots_used)
