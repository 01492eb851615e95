"""Processes die by SIGKILL in the middle of a training, and come back; see docs/failures.md."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torch.death_cases import Training
from tests.worlds.processes.launch import launch
from tests.worlds.processes.runs import FOREVER, Run, slots_used, wait_until
from tests.worlds.processes.services import Services


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with Services(tmp_path / "services", lease_s=1, loss_s=1) as running:
        yield running


def train(tmp_path: Path, steps: int, pause_s: float = 0.0, seed: int = 1) -> Training:
    return Training(tmp_path, seed, steps, pause_s)


def test_killed_rank_is_named_and_its_job_starts_again_at_once(
    services: Services, tmp_path: Path
) -> None:
    environ = {**services.environ, "INA_JOB": "mine"}
    run = Run(tmp_path / "first", 3, environ, train(tmp_path, FOREVER))
    run.wait_for_step(3)
    run.kill(2)
    for one in run.outcomes(0, 1):
        assert one.error is not None
        named = r"WorkerLostError: .*'mine'.* rank 2 \(127\.0\.0\.1:\d+\) has died"
        assert re.search(named, one.error), one.error
    assert slots_used(services.controller_addr) == 0
    again = train(tmp_path, 3)
    outcomes = launch(again, 3, tmp_path / "second", environ=environ)
    assert {one.digest for one in outcomes} == {again.undisturbed(3)}


def test_stopped_rank_is_named_when_its_lease_ends(services: Services, tmp_path: Path) -> None:
    """Its connections stay open: nothing but its silence tells."""
    run = Run(tmp_path / "w", 2, services.environ, train(tmp_path, FOREVER))
    run.wait_for_step(3)
    run.kill(1, signal.SIGSTOP)
    try:
        wait_until(lambda: not run.processes[0].is_alive(), "the end of rank 0")
    finally:
        run.kill(1)
    (one,) = run.outcomes(0)
    assert one.error is not None
    assert re.search(r"rank 1 .* is dead, stopped|rank 1 .* or is stopped:", one.error), one.error
    assert slots_used(services.controller_addr) == 0


def test_training_does_not_notice_a_controller_that_dies(
    services: Services, tmp_path: Path
) -> None:
    training = train(tmp_path, 20, 0.1)
    run = Run(tmp_path / "w", 2, services.environ, training)
    run.wait_for_step(3)
    services.controller.kill()
    run.wait_for_step(6)
    services.start_controller()
    assert {one.digest for one in run.outcomes()} == {training.undisturbed(2)}
    wait_until(lambda: slots_used(services.controller_addr) == 0, "no slot in use")


@pytest.mark.parametrize("controller", ["stays", "restarts"])
def test_switch_that_restarts_is_one_clear_error(
    controller: str, services: Services, tmp_path: Path
) -> None:
    environ = {**services.environ, "INA_JOB": "mine"}
    run = Run(tmp_path / "first", 2, environ, train(tmp_path, FOREVER))
    run.wait_for_step(3)
    if controller == "restarts":  # it is away when its stream to the switch breaks
        services.controller.kill()
    services.switch.kill()
    services.start_switch()
    if controller == "restarts":
        services.start_controller()
    errors = [one.error for one in run.outcomes()]
    for error in errors:
        assert error is not None
        assert re.search(r"SwitchLostError: .*'mine'.*switch", error), error
    again = train(tmp_path, 3)
    outcomes = launch(again, 2, tmp_path / "second", environ=environ)
    assert {one.digest for one in outcomes} == {again.undisturbed(2)}


def test_switch_that_stays_away_is_an_error(services: Services, tmp_path: Path) -> None:
    run = Run(tmp_path / "w", 2, services.environ, train(tmp_path, FOREVER))
    run.wait_for_step(3)
    services.switch.kill()
    for one in run.outcomes():
        assert one.error is not None
        assert one.error.startswith("SwitchLostError: "), one.error


@pytest.mark.parametrize("rank", [0, 1])
def test_embedded_switch_names_the_dead_rank(rank: int, tmp_path: Path) -> None:
    """Rank 0 has the controller and the switch in its process; they die with it."""
    # After a lease as short as that it is not told whether rank 0 has died or is stopped.
    environ = {"INA_LEASE_S": "1"} if rank else {}
    run = Run(tmp_path / "w", 3, environ, train(tmp_path, FOREVER))
    run.wait_for_step(3)
    run.kill(rank)
    for one in run.outcomes(*(other for other in range(3) if other != rank)):
        assert one.error is not None
        assert re.search(rf"WorkerLostError: .*rank {rank}\b.* has died", one.error), one.error
