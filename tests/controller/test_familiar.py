"""What is guessed of jobs that nobody knows yet."""

from __future__ import annotations

from ina.controller.memory.demand import StepModel
from ina.controller.slots import needs
from ina.controller.slots.needs import Familiar


def steps(compute_s: float, lanes: float = 10.0) -> StepModel:
    return StepModel(compute_s, compute_s / 2, lanes * 1e6, 1e6)


def test_a_job_that_comes_again_is_known_by_its_name() -> None:
    known = Familiar()
    assert known.guess("a") is None
    known.learn("a", steps(1.0))
    known.learn("a", steps(2.0))
    assert known.guess("a") == steps(2.0)
    assert known.guess("b") is None  # one job says nothing of others


def test_a_new_one_is_taken_for_what_is_typical() -> None:
    known = Familiar()
    for name, compute_s, lanes in (("a", 1.0, 30.0), ("b", 9.0, 10.0), ("c", 2.0, 20.0)):
        known.learn(name, steps(compute_s, lanes))
    assert known.guess("new") == steps(2.0, 20.0)
    assert known.guess("b") == steps(9.0, 10.0)
    for number in range(needs.TYPICAL_OF):
        known.learn(f"j{number}", steps(5.0))
    assert known.guess("new") == steps(5.0)  # the others are long ago


def test_no_more_names_are_kept_than_said() -> None:
    known = Familiar()
    for number in range(needs.MOST + 1):
        known.learn(f"j{number}", steps(1.0 + number))
        known.learn("often", steps(0.5))
    assert known.guess("often") == steps(0.5)
    last = f"j{needs.MOST}"
    assert known.guess(last) == steps(1.0 + needs.MOST)
    typical = known.guess("new")
    assert known.guess("j0") == known.guess("j1") == typical  # forgotten
    assert known.guess("j2") == steps(3.0)
