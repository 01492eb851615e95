"""Four ranks sum for a while, over a bad network, and whatever there is gets killed and stopped."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import grpc

from tests.soak import remains
from tests.soak.faults import Blame, Fault, deck
from tests.soak.job import Job
from tests.soak.programs import START_S, Places, Program, Way, controller, switch
from tests.soak.rank import Place
from tests.soak.report import Report
from tests.worlds.fakes.forwarder import Weather

READY_STEPS = 3
"""Steps of a job that nothing disturbs before it may be disturbed again, mostly."""
CALM_S = 60.0
"""Once all programs are up, a job does those steps within this: joins, and waits for leases."""
AT_ONCE, AT_START = 0.4, 0.2
"""Probabilities that a fault meets what the last one has left, and a job that is just joining."""
_LOOK_S = 0.05
_PROGRESS_S = 10.0
_MOST_WRONG = 20


class Soak:
    """One run; :meth:`run` may be called once."""

    def __init__(
        self, folder: Path, seed: int, say: Callable[[str], None], weather: Weather | None = None
    ) -> None:
        """``say`` gets a line of progress now and then."""
        self.report = Report(seed)
        self._folder, self._seed, self._say = folder, seed, say
        self._weather = weather or Weather()
        self._dice = random.Random(seed)
        self._faults = deck(self._dice)
        self._places = Places.own()
        self._switch = switch(self._places, folder)
        self._controller = controller(self._places, folder)
        self._job: Job | None = None
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._started: dict[int, str] = {}
        self._blame = Blame(set())
        # When the next fault comes; None: when the job has done READY_STEPS more in peace, or, if
        # that is said, as the next job joins.
        self._next_fault_s: float | None = None
        self._at_start = False
        self._peace: tuple[float, int, int] | None = None  # since, of job number, from step

    def run(self, seconds: float) -> Report:
        """Disturb for so long, then let the last job end by itself; whatever runs is ended."""
        before = remains.shared_memory()
        with ExitStack() as undo:
            way = Way(self._places, self._weather, self._seed)
            undo.callback(way.stop)
            self._note(way.process.pid)
            undo.callback(self._kill_all)
            self._start_up()
            begin = told_s = time.monotonic()
            while (now := time.monotonic()) < begin + seconds and self._may_go_on():
                self._turn(is_disturbing=True)
                if now - told_s > _PROGRESS_S:
                    told_s = now
                    self._progress(now - begin)
            self._wind_up()
            undo.pop_all()
            self._kill_all()
            self.report.forwarder = way.stop()
        self.report.seconds = time.monotonic() - begin
        self.report.wrong += remains.all_of(self._started, self._folder, self._places.net, before)
        return self.report

    def _start_up(self) -> None:
        for program in (self._switch, self._controller):
            program.start()
            deadline = time.monotonic() + START_S
            while not program.is_up:
                if (line := program.look()) or time.monotonic() > deadline:
                    raise RuntimeError(f"{program.name} did not start: {line}")
                time.sleep(_LOOK_S)

    def _may_go_on(self) -> bool:
        return len(self.report.wrong) < _MOST_WRONG

    def _progress(self, passed_s: float) -> None:
        report = self.report
        self._say(
            f"{passed_s:.0f} s: {report.jobs} jobs, {report.steps} steps,"
            f" {report.checked.total()} sums checked, {report.faults.total()} faults,"
            f" {report.ends.total()} ends, {len(report.wrong)} wrong"
        )

    # What happens by itself.

    def _turn(self, *, is_disturbing: bool) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
        for program in (self._switch, self._controller):
            was_running = program.runs
            if line := program.look():
                self._did_not_last(program, line)
            elif was_running and program.is_up:
                self._note(program.pids[-1])
        job = self._job
        if job is None:
            job = self._job = self._new_job()
        steps = job.steps
        self.report.wrong += job.read(_LOOK_S)
        self.report.steps += job.steps - steps
        self.report.checked += job.checked
        job.checked.clear()
        for rank in job.ranks:
            if rank.end is not None:
                self._blame.ranks.add(rank.rank)
        if job.is_over:
            self._end_of(job)
            self._job = None
        if is_disturbing:
            self._maybe_disturb(job)

    def _did_not_last(self, program: Program, line: str) -> None:
        """It has ended by itself, which only a start may do, while its switch is away."""
        if program is self._controller and self._blame.switch:
            self.report.did_not_start[line] += 1
        else:
            self.report.wrong.append(f"{program.name} ended by itself: {line}")
        self._after(0.5, lambda: self._start(program))

    def _new_job(self) -> Job:
        """Begins one, whatever there is of the network at the moment."""
        self._blame = Blame(
            set(),
            switch=not self._is_well(self._switch),
            controller=not self._is_well(self._controller),
        )
        if self._at_start:
            self._at_start = False
            self._next_fault_s = time.monotonic() + self._dice.uniform(0, 0.6)
        self.report.jobs += 1
        job = Job(
            Place(
                self._places.controller,
                self._places.workers,
                self._places.back,
                self._folder,
                self._seed,
                self.report.jobs,
            )
        )
        for rank in job.ranks:
            self._note(rank.pid)
        return job

    def _end_of(self, job: Job) -> None:
        self.report.wrong += [f"job {job.number}: {what}" for what in job.wrong]
        for end in job.ends:
            self.report.add_end(end)
            if why := self._blame.objection(end):
                what = f"job {job.number}: rank {end.rank} ended with {end.name}: {end.line!r}"
                self.report.wrong.append(f"{what}: {why}; {self._blame}")

    # What is done to it.

    def _maybe_disturb(self, job: Job) -> None:
        now = time.monotonic()
        if self._next_fault_s is not None:
            if now >= self._next_fault_s:
                self._disturb(next(self._faults), job)
            return
        calm = not self._later and self._is_well(self._switch) and self._is_well(self._controller)
        if not calm or job.is_ending:
            if not calm:
                self._peace = None
            return
        if self._peace is None:
            self._peace = (now, job.number, job.steps)
        since_s, number, steps = self._peace
        if job.number != number:
            self._peace = (since_s, job.number, 0)
        elif job.steps >= steps + READY_STEPS:
            self._next_fault_s = now + self._dice.uniform(0, 1)
        if now - since_s > CALM_S:
            self.report.wrong.append(f"job {job.number}: no {READY_STEPS} steps in {CALM_S:g} s")
            self._peace = None

    def _disturb(self, fault: Fault, job: Job) -> None:
        drawn = self._dice.random()
        at_once = drawn < AT_ONCE
        self._next_fault_s = time.monotonic() + self._dice.uniform(0, 2) if at_once else None
        self._at_start = AT_ONCE <= drawn < AT_ONCE + AT_START
        self._peace = None
        if fault.target == "rank":
            done = self._hit_rank(fault, job)
        else:
            done = self._hit_program(
                fault, self._switch if fault.target == "switch" else self._controller
            )
        if done:
            self.report.faults[fault.kind] += 1

    def _hit_rank(self, fault: Fault, job: Job) -> bool:
        ranks = [rank for rank in job.alive() if rank.end is None and not rank.paused]
        if not ranks:
            return False
        rank = self._dice.choice(ranks)
        self._blame.ranks.add(rank.rank)
        if fault.how == "kill":
            rank.killed()
        else:
            rank.pause()
            self._after(fault.for_s, rank.resume)
        return True

    def _hit_program(self, fault: Fault, program: Program) -> bool:
        if not program.runs or program.paused:
            return False
        if program is self._switch:
            self._blame.switch = True
        else:
            self._blame.controller = True
        if fault.how == "kill":
            program.kill()
            self._after(fault.for_s, lambda: self._start(program))
        else:
            program.pause()
            self._after(fault.for_s, program.resume)
        return True

    def _start(self, program: Program) -> None:
        if not program.runs:
            program.start()
            self._note(program.pids[-1])

    def _after(self, delay_s: float, then: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._later, (time.monotonic() + delay_s, self._number, then))

    @staticmethod
    def _is_well(program: Program) -> bool:
        return program.is_up and not program.paused

    # The end.

    def _wind_up(self) -> None:
        """Everything comes back, the job ends as its ranks agree, and nothing is left of it."""
        deadline = time.monotonic() + CALM_S
        (self._folder / "stop").touch()
        while True:
            job = self._job
            self._turn(is_disturbing=False)
            calm = self._is_well(self._switch) and self._is_well(self._controller)
            ended = job is not None and job.is_over and all(e.name == "done" for e in job.ends)
            if ended and calm:
                break
            if time.monotonic() > deadline:
                self.report.wrong.append(f"no job ended as it should within {CALM_S:g} s")
                return
        self._job = None
        left: list[str] = []
        while time.monotonic() < deadline:
            try:
                left = list(remains.left_on_switch(self._places.controller))
            except grpc.RpcError as error:
                left = [f"the controller does not say what is left: {error}"]
            if not left:
                break
            time.sleep(0.2)
        self.report.wrong += left
        for program in (self._controller, self._switch):
            if what := program.stop():
                self.report.wrong.append(what)

    def _kill_all(self) -> None:
        self._later.clear()
        if self._job is not None:
            self._job.kill()
            self._job = None
        self._controller.kill()
        self._switch.kill()

    def _note(self, pid: int | None) -> None:
        if pid is not None and pid not in self._started:
            self._started[pid] = remains.started_at(pid)
