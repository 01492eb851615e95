"""A job's training as a fluid: steps as fast as its slots allow, and what its workers would report.

No packets: 600 jobs for hours have some 10^13 of them.
"""

from __future__ import annotations

from ina.controller.memory.demand import StepModel
from ina.rpc import controller_pb2 as pb2
from ina.sim.memory.trace import PAYLOAD_BYTES, ROUND_TRIP_S, TracedJob

STEP_OPERATIONS = 4


class Training:
    """One job's. Time is passed in."""

    def __init__(self, job: TracedJob, model: StepModel, now_s: float) -> None:
        """With no slots yet."""
        self.slots = 0
        self._job = job
        self._model = model
        self._at_s = now_s
        self._steps = 0.0
        self._busy_s = 0.0
        self._tail_s = 0.0

    @property
    def operations(self) -> int:
        """That are done."""
        return int(self._steps * STEP_OPERATIONS)

    @property
    def step_s(self) -> float:
        """Of the steps of now; infinite: it stands still."""
        return self._model.step_s(self.slots)

    def left_s(self, now_s: float) -> float:
        """To its end if its slots stay as they are."""
        self.advance(now_s)
        return max(0.0, self._job.steps - self._steps) * self.step_s

    def advance(self, now_s: float) -> None:
        """Time has passed."""
        passed_s, self._at_s = now_s - self._at_s, now_s
        step_s, model = self.step_s, self._model
        if step_s == float("inf"):
            return
        steps = passed_s / step_s
        rate = model.beside_bytes_per_s + self.slots // 2 * model.lane_bytes_per_s
        self._steps += steps
        self._busy_s += steps * model.bytes / min(model.line_bytes_per_s, rate)
        self._tail_s += steps * (step_s - model.compute_s)

    def resize(self, slots: int, now_s: float) -> None:
        """It has other slots from now on."""
        self.advance(now_s)
        self.slots = slots

    def report(self, now_s: float) -> pb2.Progress:
        """A worker's, as in a heartbeat."""
        self.advance(now_s)
        return pb2.Progress(
            operations_submitted=self.operations,
            operations_done=self.operations,
            chunks_done=int(self._steps * self._job.bytes / PAYLOAD_BYTES),
            busy_s=self._busy_s,
            tail_s=self._tail_s,
            round_trip_s=ROUND_TRIP_S,
            step_operations=STEP_OPERATIONS,
        )
