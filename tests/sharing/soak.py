"""Many jobs on one switch at once, that start, end and die at random; everything from one seed."""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import IO

from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from tests.worlds.processes.stand_ins import python
from tests.worlds.processes.worker import Plan

DISTURBED_S = 3.0
"""After its start, at the latest, is a job struck that is to be."""
MAX_BYTES = 10_000_000
"""Of one all_reduce."""
END_TIMEOUT_S = 150.0
"""For a job that nobody disturbs any more: a full machine, a lease and an operation's deadline."""
CALL_TIMEOUT_S = 30.0


@dataclass
class Running:
    """A job's processes and what is going to happen to it."""

    plan: Plan
    processes: list[subprocess.Popen[bytes]]
    outputs: list[IO[bytes]]
    fate: str  # "end", "kill" or "evict"
    at_s: float  # when, on the monotonic clock
    victim: int
    struck: bool = False

    def ended(self) -> bool:
        return all(process.poll() is not None for process in self.processes)

    def said(self, rank: int) -> str:
        self.outputs[rank].seek(0)
        return self.outputs[rank].read().decode(errors="replace")


@dataclass
class Tally:
    """What the soak saw; ``problems`` must stay empty."""

    ended: int = 0
    killed: int = 0
    evicted: int = 0
    most_at_once: int = 0
    steps: int = 0
    problems: list[str] = field(default_factory=list)


class Soak:
    """Keeps up to ``jobs`` jobs alive for ``duration_s``, then lets them end."""

    def __init__(self, controller: str, seed: int, *, jobs: int, duration_s: float) -> None:
        self._controller = controller
        self._random = random.Random(seed)
        self._jobs, self._duration_s = jobs, duration_s
        self._running: list[Running] = []
        self._count = 0
        self.tally = Tally()

    def run(self) -> Tally:
        """Blocks until all jobs have ended, at most ``duration_s`` and some minutes."""
        end_s = time.monotonic() + self._duration_s
        try:
            while time.monotonic() < end_s:
                if len(self._running) < self._jobs and self._random.random() < 0.5:
                    self._start()
                self._look_after()
                time.sleep(0.05)
            deadline_s = time.monotonic() + END_TIMEOUT_S
            while self._running and time.monotonic() < deadline_s:
                self._look_after()
                time.sleep(0.05)
            for job in self._running:
                stuck = [r for r, p in enumerate(job.processes) if p.poll() is None]
                self.tally.problems.append(f"{job.plan.name} ({job.fate}): ranks {stuck} hang")
        finally:
            for job in self._running:
                for process in job.processes:
                    process.kill()
                    process.wait()
        return self.tally

    def _start(self) -> None:
        draw = self._random
        self._count += 1
        steps = draw.randint(1, 12)
        plan = Plan(
            name=f"soak-{self._count}",
            world_size=draw.randint(2, 4),
            seed=draw.randrange(1 << 30),
            # From 1 value to 10 MB, each order of magnitude as often as the next.
            elems=tuple(int((MAX_BYTES / 4) ** draw.random()) for _ in range(steps)),
            floats=tuple(draw.random() < 0.5 for _ in range(steps)),
            pause_s=draw.choice([0.0, 0.0, 0.2]),
        )
        fate = draw.choice(["end", "end", "end", "kill", "evict"])
        job = Running(
            *(plan, [], [], fate, time.monotonic() + draw.uniform(0.0, DISTURBED_S)),
            draw.randrange(plan.world_size),
        )
        for rank in range(plan.world_size):
            output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the job has ended
            command = [
                python(),
                "-m",
                "tests.worlds.processes.worker",
                self._controller,
                str(rank),
            ]
            job.outputs.append(output)
            job.processes.append(
                subprocess.Popen([*command, plan.dump()], stdout=output, stderr=output)
            )
        self._running.append(job)
        self.tally.most_at_once = max(self.tally.most_at_once, len(self._running))

    def _look_after(self) -> None:
        for job in list(self._running):
            if not job.struck and job.fate != "end" and time.monotonic() >= job.at_s:
                self._strike(job)
            if job.ended():
                self._running.remove(job)
                self._judge(job)

    def _strike(self, job: Running) -> None:
        if not all(b"joined" in job.said(r).encode() for r in range(job.plan.world_size)):
            return  # later, when there is something to disturb
        job.struck = True
        if job.fate == "kill":
            job.processes[job.victim].kill()
            return
        with open_channel(self._controller) as channel:
            request = pb2.EvictJobRequest(name=job.plan.name, reason="soak")
            try:
                OperatorStub(channel).EvictJob(request, timeout=CALL_TIMEOUT_S)
            except Exception as error:  # it has just ended by itself
                if "NOT_FOUND" not in str(error):
                    self.tally.problems.append(f"{job.plan.name}: evict: {error}")

    def _judge(self, job: Running) -> None:
        """Every rank has either all its sums, or, where the job was struck, a typed error."""
        name, tally = f"{job.plan.name} ({job.fate})", self.tally
        codes = [process.returncode for process in job.processes]
        for rank, code in enumerate(codes):
            said = job.said(rank).strip()
            tally.steps += len(job.plan.elems) if code == 0 else 0
            if code == 0 or (code == -9 and job.struck and rank == job.victim):
                continue
            if code == 3 and job.struck and self._is_told_why(job, said):
                continue
            tally.problems.append(f"{name} rank {rank}: exit code {code}: {said[-800:]}")
        for output in job.outputs:
            output.close()
        tally.ended += all(code == 0 for code in codes)
        tally.killed += job.struck and job.fate == "kill"
        tally.evicted += job.struck and job.fate == "evict"

    def _is_told_why(self, job: Running, said: str) -> bool:
        if job.fate == "kill":
            return "WorkerLostError" in said and f"rank {job.victim}" in said
        return "JobEvictedError" in said and "soak" in said
