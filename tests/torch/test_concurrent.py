"""Many all_reduces at once: from several threads and groups, and under a dying switch."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from tests.torch import concurrent_cases
from tests.worlds.processes.launch import finish, launch, outcome, start
from tests.worlds.processes.runs import DEADLINE_S, wait_until
from tests.worlds.processes.services import Services


def test_gradients_are_reduced_while_backward_still_computes(tmp_path: Path) -> None:
    case = concurrent_cases.reduce_while_backward_computes
    assert launch(case, 2, tmp_path / "w") == [True] * 2


def test_groups_and_threads_at_once(tmp_path: Path) -> None:
    environ = {"INA_LOSS_RATE": "0.01"}
    assert launch(concurrent_cases.many_at_once, 2, tmp_path / "w", environ=environ) == [True] * 2


def test_ddp_agrees_with_gloo_through_the_loss_of_the_switch(tmp_path: Path) -> None:
    case = partial(concurrent_cases.train_through_a_loss, tmp_path)
    with Services(tmp_path / "s", lease_s=1, loss_s=1) as services:
        environ = {**services.environ, "INA_ON_SWITCH_LOSS": "fallback"}
        workers = start(case, 3, tmp_path / "w", environ=environ)
        wait_until((tmp_path / "ten").exists, "step 10")
        services.switch.kill()
        (tmp_path / "killed").touch()
        finish(workers, DEADLINE_S)
    outcomes = [outcome(tmp_path / "w", rank) for rank in range(3)]
    assert all(ok for ok, _ in outcomes), outcomes
    gloo = launch(case, 3, tmp_path / "gloo", backend="gloo")
    parameters = [np.array(flat) for _, (flat, _, _) in outcomes]
    assert np.array_equal(parameters[0], parameters[1])
    assert np.array_equal(parameters[0], parameters[2])
    assert np.abs(parameters[0] - np.array(gloo[0][0])).max() < 1e-4
    assert all(lost and sums > 0 for _, (_, lost, sums) in outcomes)
