"""With policy fallback a training goes on when its switch is killed, and loses no bit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ina.protocol.coding import CODINGS
from tests.selection import LONG
from tests.torch.death_cases import Training
from tests.worlds.processes.runs import Run
from tests.worlds.processes.services import Services

_WORKERS = 3


def _restart(services: Services) -> None:
    services.switch.kill()
    services.start_switch()


def _both(services: Services) -> None:
    services.controller.kill()
    services.switch.kill()


def _restart_both(services: Services) -> None:
    _both(services)
    services.start_switch()
    services.start_controller()


_ENDS: dict[str, Callable[[Services], None]] = {
    "switch": lambda services: services.switch.kill(),
    "switch restarts": _restart,
    "switch and controller": _both,
    "switch and controller restart": _restart_both,
}


_WIRES = dict(zip(_ENDS, ("32", "8-stochastic", "", "16"), strict=True))


@pytest.mark.parametrize("seed", range(40 if LONG else 1))
@pytest.mark.parametrize("end", _ENDS)
def test_training_goes_on_without_the_switch(end: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{end} {seed}")
    loss_rate = chance.choice([0.0, 0.03])
    wire = chance.choice(["", *CODINGS]) if seed else _WIRES[end]
    training = Training(tmp_path, seed, steps=60, pause_s=0.02, wire=wire)
    # Who is to notice first: the workers when nobody listens, the controller when it is back.
    lease_s = 10 if end.endswith(("restarts", "restart")) else 1
    with Services(
        tmp_path / "s", lease_s=lease_s, loss_s=1, loss_rate=loss_rate, loss_seed=seed
    ) as on:
        environ = {**on.environ, "INA_ON_SWITCH_LOSS": "fallback"}
        run = Run(tmp_path / "w", _WORKERS, environ, training)
        run.wait_for_step(chance.randint(1, 15))
        time.sleep(chance.uniform(0, 0.05))
        _ENDS[end](on)
        outcomes = run.outcomes()
    assert [one.error for one in outcomes] == [None] * _WORKERS
    assert {one.digest for one in outcomes} == {training.undisturbed(_WORKERS)}
    for one in outcomes:
        assert one.stats is not None
        assert one.stats.switch_loss is not None
        assert one.stats.network_all_reduces > 0
        assert one.stats.fallbacks > 0
