"""What a job needs, learned from what its workers report: against jobs whose steps are known."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ina.controller.memory.demand import StepModel
from ina.controller.slots.needs import Needs, Said
from ina.rpc import controller_pb2 as pb2

PAYLOAD_BYTES = 256
RTT_S = 1e-3
LANE = PAYLOAD_BYTES / RTT_S


@dataclass
class Trained:
    """A job as it is; its workers report what they would see of it."""

    truth: StepModel
    step_operations: int = 4
    steps: float = 0.0
    at_s: float = 0.0
    busy_s: float = 0.0
    tail_s: float = 0.0

    def run(self, seconds: float, slots: int, slow_s: float = 0.0) -> pb2.Progress:
        """``slow_s``: it waits so much longer in each step, for another worker."""
        step_s = self.truth.step_s(slots) + slow_s
        steps = seconds / step_s
        rate = min(self.truth.line_bytes_per_s, slots // 2 * LANE)
        self.at_s += seconds
        self.steps += steps
        self.busy_s += steps * (self.truth.bytes / rate + slow_s)
        self.tail_s += steps * (step_s - self.truth.compute_s)
        return pb2.Progress(
            operations_done=int(self.steps * self.step_operations),
            operations_submitted=int(self.steps * self.step_operations),
            chunks_done=int(self.steps * self.truth.bytes / PAYLOAD_BYTES),
            busy_s=self.busy_s,
            tail_s=self.tail_s,
            round_trip_s=RTT_S,
            step_operations=self.step_operations,
        )


def learn(truth: StepModel, slots: int = 64) -> Needs:
    needs, job = Needs(Said(), PAYLOAD_BYTES), Trained(truth)
    for _ in range(20):
        needs.hear(0, job.run(50.0, slots), slots, job.at_s)
    return needs


def test_a_job_whose_communication_hides_partly() -> None:
    # 50 lanes' worth a step, of which half hides: 64 slots are 32 lanes.
    truth = StepModel(1.0, 0.5, 50 * LANE, LANE)
    found = learn(truth).steps(512)
    assert found.step_s(64) == pytest.approx(truth.step_s(64), rel=0.05)
    assert found.step_s(512) == pytest.approx(truth.step_s(512), rel=0.05)


@pytest.mark.parametrize(("before", "after"), [(64, 512), (512, 64)])
def test_what_it_did_with_its_former_slots_is_not_taken_for_what_it_does_with_others(
    before: int, after: int
) -> None:
    truth = StepModel(1.0, 0.5, 50 * LANE, LANE)
    needs, job = Needs(Said(), PAYLOAD_BYTES), Trained(truth)
    for _ in range(20):
        needs.hear(0, job.run(50.0, before), before, job.at_s)
    known = needs.steps(512)
    job.run(45.0, before)
    assert not needs.hear(0, job.run(5.0, after), after, job.at_s)
    assert needs.steps(512) == known
    assert needs.hear(0, job.run(50.0, after), after, job.at_s)
    for slots in (64, 512):
        assert needs.steps(512).step_s(slots) == pytest.approx(truth.step_s(slots), rel=0.05)


def test_a_job_that_waits_for_each_sum() -> None:
    truth = StepModel(1.0, 0.0, 50 * LANE, LANE)
    found = learn(truth).steps(512)
    assert found.step_s(64) == pytest.approx(1.0 + 50 / 32, rel=0.05)
    assert found.step_s(128) == pytest.approx(1.0 + 50 / 64, rel=0.05)


def test_a_link_that_is_slower_than_its_slots_allow() -> None:
    truth = StepModel(0.1, 0.0, 50 * LANE, LANE, line_bytes_per_s=20 * LANE)
    found = learn(truth, slots=128).steps(512)
    assert found.line_bytes_per_s == pytest.approx(20 * LANE, rel=0.01)
    assert found.step_s(1024) == pytest.approx(truth.step_s(1024), rel=0.05)
    assert found.step_s(16) == pytest.approx(truth.step_s(16), rel=0.05)


def test_the_slowest_worker_is_the_one_that_counts() -> None:
    truth = StepModel(1.0, 0.5, 50 * LANE, LANE)
    needs, slow, fast = Needs(Said(), PAYLOAD_BYTES), Trained(truth), Trained(truth)
    fast.truth = StepModel(0.2, 0.1, 50 * LANE, LANE)
    behind_s = truth.step_s(64) - fast.truth.step_s(64)
    for _ in range(20):
        needs.hear(0, fast.run(50.0, 64, behind_s), 64, fast.at_s)
        needs.hear(1, slow.run(50.0, 64), 64, slow.at_s)
    assert needs.steps(512).compute_s == pytest.approx(1.0, rel=0.05)


def test_what_is_left_is_what_was_said_less_what_is_done() -> None:
    needs, job = Needs(Said(steps=1000), PAYLOAD_BYTES), Trained(StepModel(1.0, 1.0, LANE, LANE))
    assert needs.steps_left(needs.steps(512), 512, 5.0) == 1000
    for _ in range(4):
        needs.hear(0, job.run(100.0, 64), 64, job.at_s)
    assert needs.steps_left(needs.steps(512), 512, 400.0) == 600
    job.run(10_000.0, 64)
    needs.hear(0, job.run(100.0, 64), 64, job.at_s)
    assert needs.steps_left(needs.steps(512), 512, 400.0) == 1


def test_a_job_that_says_nothing_goes_on_for_as_long_as_it_has_run() -> None:
    needs = learn(StepModel(2.0, 2.0, LANE, LANE))
    steps = needs.steps(512)
    assert needs.steps_left(steps, 64, 600.0) == pytest.approx(300, rel=0.02)
    assert needs.steps_left(steps, 64, 10.0) == pytest.approx(30, rel=0.02)


def test_a_job_that_nobody_knows_needs_what_is_usual() -> None:
    needs = Needs(Said(), PAYLOAD_BYTES)
    steps = needs.steps(512)
    assert not needs.is_known
    assert steps.step_s(512) == steps.step_s(1024) < steps.step_s(256)


def test_that_operations_are_counted_whole_does_not_show() -> None:
    # A report each 3 s has 6 or 7 operations of 0.45 s: each alone is off by up to a sixth.
    truth = StepModel(1.8, 0.9, 40 * LANE, LANE)
    needs, job = Needs(Said(), PAYLOAD_BYTES), Trained(truth)
    for number in range(100):
        needs.hear(0, job.run(3.0, 64), 64, job.at_s)
        if number == 1:
            assert needs.is_known  # soon all the same
        if number > 30:
            assert needs.steps(512).compute_s == pytest.approx(1.8, rel=0.03)


def test_what_was_seen_for_a_short_time_at_first_counts_little_soon() -> None:
    truth = StepModel(1.0, 0.5, 50 * LANE, LANE)
    needs, job = Needs(Said(), PAYLOAD_BYTES), Trained(StepModel(2.0, 1.0, 50 * LANE, LANE))
    for _ in range(2):
        needs.hear(0, job.run(4.0, 64), 64, job.at_s)
    job.truth = truth
    for _ in range(5):
        needs.hear(0, job.run(20.0, 64), 64, job.at_s)
    assert needs.steps(512).compute_s == pytest.approx(1.0, rel=0.06)


def test_what_was_long_ago_counts_little() -> None:
    truth = StepModel(1.0, 0.5, 50 * LANE, LANE)
    needs, job = Needs(Said(), PAYLOAD_BYTES), Trained(StepModel(2.0, 1.0, 50 * LANE, LANE))
    for number in range(70):
        job.truth = job.truth if number < 30 else truth
        needs.hear(0, job.run(20.0, 64), 64, job.at_s)
    assert needs.steps(512).compute_s == pytest.approx(1.0, rel=0.02)


def test_a_guess_counts_until_steps_were_seen() -> None:
    guess = StepModel(3.0, 1.0, 7 * LANE, LANE)
    needs, job = Needs(Said(), PAYLOAD_BYTES, guess=guess), Trained(StepModel(1.0, 1.0, LANE, LANE))
    assert needs.steps(512) == guess
    assert not needs.is_known
    for _ in range(2):
        needs.hear(0, job.run(100.0, 64), 64, job.at_s)
    assert needs.is_known
    assert needs.steps(512).compute_s == pytest.approx(1.0)


def test_a_controller_that_was_started_again_hears_what_was_said() -> None:
    needs = Needs(Said(), PAYLOAD_BYTES)
    needs.hear(0, pb2.Progress(deadline_unix_s=7e9, steps=12), 64, 0.0)
    needs.hear(1, pb2.Progress(deadline_unix_s=8e9, steps=13), 64, 0.0)
    assert needs.said == Said(7e9, 12)


def test_workers_that_count_from_the_start_again_do_no_harm() -> None:
    needs = learn(StepModel(1.0, 1.0, LANE, LANE))
    before = needs.steps(512)
    needs.hear(0, Trained(before).run(1.0, 64), 64, 5000.0)
    assert needs.steps(512) == before
