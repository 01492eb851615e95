"""A group that fell back to Gloo goes back to the network as soon as that takes it again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.selection import LONG
from tests.torch.death_cases import Outcome, Training
from tests.worlds.processes.fabric_services import HOSTS, LEAVES, FabricServices
from tests.worlds.processes.runs import Run
from tests.worlds.processes.services import Services

_STEPS = 20
"""At least."""


def training(folder: Path, returns: int, pause_s: float = 0.02, wire: str = "") -> Training:
    return Training(folder, 1, _STEPS, pause_s, returns, wire)


def check(run: Run, outcomes: list[Outcome], returns: int) -> None:
    """No sum is lost, none counts twice, and all are counted where they went."""
    assert [one.error for one in outcomes] == [None] * len(outcomes)
    (steps,) = {one.steps for one in outcomes}
    assert {one.digest for one in outcomes} == {run.training.undisturbed(len(outcomes), steps)}
    gloo = set()
    for rank, one in enumerate(outcomes):
        stats = one.stats
        assert stats is not None
        assert stats.switch_returns == returns
        assert stats.network_all_reduces + stats.fallbacks == 6 * steps
        # All sessions' together, but for what was under way at a loss.
        under_way = 6 * max(1, returns)
        assert stats.session["operations_done"] >= stats.network_all_reduces - under_way
        loss = stats.switch_loss
        assert loss is not None
        gloo.add(loss["gloo_operations"])
        print(
            f"rank {rank}: {loss['reason']}: on Gloo after {loss['recovery_s']:.2f} s, back after"
            f" {loss['away_s']:.2f} s, {loss['gloo_operations']} all_reduces over Gloo"
        )
        assert (loss["returned_unix_s"] > 0) is (returns > 0)
    if returns == 0:
        assert gloo == {0}


def restart(services: Services) -> None:
    services.switch.kill()
    services.start_switch()


def restart_both(services: Services) -> None:
    services.controller.kill()
    restart(services)
    services.start_controller()


@pytest.mark.parametrize("end", [restart, pytest.param(restart_both, marks=pytest.mark.long)])
@pytest.mark.parametrize("seed", range(20 if LONG else 1))
def test_a_switch_that_lost_its_registers_is_used_again(
    end: Callable[[Services], None], seed: int, tmp_path: Path
) -> None:
    loss_rate = 0.02 * (seed % 2)
    with Services(tmp_path / "s", lease_s=10, loss_s=1, loss_rate=loss_rate) as on:
        environ = {**on.environ, "INA_ON_SWITCH_LOSS": "fallback"}
        run = Run(tmp_path / "w", 2, environ, training(tmp_path, 1, wire="16-stochastic"))
        run.wait_for_step(2 + seed)
        end(on)
        check(run, run.outcomes(), 1)


def test_a_switch_that_is_away_for_a_while_is_used_again_and_again(tmp_path: Path) -> None:
    """The second time the ranks do not come back at once."""
    with Services(tmp_path / "s", lease_s=1, loss_s=1) as on:
        environ = {**on.environ, "INA_ON_SWITCH_LOSS": "fallback"}
        run = Run(tmp_path / "w", 3, environ, training(tmp_path, 2, wire="8-stochastic"))
        run.wait_for_step(3)
        on.switch.kill()
        run.wait_for_step(run.step() + 10)  # over Gloo
        on.start_switch()
        run.wait_for_return(1)
        restart(on)
        check(run, run.outcomes(), 2)


def test_a_host_with_a_node_goes_back(tmp_path: Path) -> None:
    """With a node of the new incarnation's."""
    with Services(tmp_path / "s", lease_s=10, loss_s=1) as on:
        environ = {**on.environ, "INA_ON_SWITCH_LOSS": "fallback", "INA_HOST_NODE": "1"}
        run = Run(tmp_path / "w", 2, environ, training(tmp_path, 1, wire="32"))
        run.wait_for_step(3)
        restart(on)
        outcomes = run.outcomes()
    check(run, outcomes, 1)
    assert all(
        one.stats is not None and one.stats.session["transport"] == "shm" for one in outcomes
    )


def test_a_group_stays_on_gloo_where_its_ranks_want_that(tmp_path: Path) -> None:
    with Services(tmp_path / "s", lease_s=10, loss_s=1) as on:
        environ = {**on.environ, "INA_ON_SWITCH_LOSS": "fallback", "INA_SWITCH_RETURN": "0"}
        run = Run(tmp_path / "w", 2, environ, Training(tmp_path, 1, 60, 0.02))
        run.wait_for_step(3)
        restart(on)
        outcomes = run.outcomes()
    check(run, outcomes, 0)
    assert all(one.stats is not None and one.stats.fallbacks > 0 for one in outcomes)


def test_a_spine_that_dies_is_gone_around(tmp_path: Path) -> None:
    """Its entries of the job stay on it, and do not keep the job from its name."""
    spines = ("spine1", "spine2")
    with FabricServices(tmp_path / "s", lease_s=1, loss_s=1, spines=spines) as on:
        settings = {"INA_ON_SWITCH_LOSS": "fallback", "INA_JOB": "mine"}
        run = Run(
            tmp_path / "w", len(HOSTS), {**on.environ, **settings}, training(tmp_path, 1), HOSTS
        )
        run.wait_for_step(3)
        killed_s = time.monotonic()
        on.kill("spine1")
        run.wait_for_return(1)
        print(f"back over spine2 {time.monotonic() - killed_s:.1f} s after spine1 was killed")
        if LONG:  # a successor knows both jobs, and removes the former one in the end
            on.kill("controller")
            on.start("controller")
        on.start("spine1")
        outcomes = run.outcomes()
        check(run, outcomes, 1)
        said = on.log("controller")
    assert "'mine (former " in said
    assert all(leaf in said for leaf in LEAVES)
