"""Training with mode shared: the aggregator embedded or a process of its own, alive or killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import ina.torch
from tests.torch.death_cases import Training
from tests.worlds.processes.launch import launch
from tests.worlds.processes.runs import Run
from tests.worlds.processes.services import Services

_WORKERS = 3


def sums(rank: int, workers: int) -> tuple[str, int]:
    """int32 sums are Gloo's, bit for bit; floats the same on all ranks."""
    gloo = dist.new_group(backend="gloo")
    for elems in (1, 1025, 30_000):
        generator = torch.Generator().manual_seed(1000 * rank + elems)
        mine = torch.randint(-(2**31), 2**31, (elems,), dtype=torch.int32, generator=generator)
        theirs = mine.clone()
        dist.all_reduce(mine)
        dist.all_reduce(theirs, group=gloo)
        assert torch.equal(mine, theirs)
    floats = torch.randn(5000, generator=torch.Generator().manual_seed(rank))
    dist.all_reduce(floats)
    return floats.numpy().tobytes().hex(), ina.torch.stats().network_all_reduces


@pytest.mark.parametrize("loss", ["0", "0.05"])
def test_torchrun_alone_has_all_of_it_embedded(loss: str, tmp_path: Path) -> None:
    environ = {"INA_MODE": "shared", "INA_LOSS_RATE": loss, "INA_VALUES": "64"}
    found = launch(sums, 2, tmp_path, environ=environ)
    assert len({digest for digest, _ in found}) == 1
    assert [count for _, count in found] == [4, 4]


def test_a_switch_that_restarts_ends_no_training(tmp_path: Path) -> None:
    training = Training(tmp_path, 1, steps=60, pause_s=0.02)
    with Services(tmp_path / "s", lease_s=10, loss_s=30, shared_slots=16) as on:
        run = Run(tmp_path / "w", _WORKERS, on.environ, training)
        run.wait_for_step(3)
        on.switch.kill()
        on.start_switch()
        outcomes = run.outcomes()
    assert [one.error for one in outcomes] == [None] * _WORKERS
    assert {one.digest for one in outcomes} == {training.undisturbed(_WORKERS)}
    for one in outcomes:
        assert one.stats is not None
        assert one.stats.switch_loss is None


def test_when_the_aggregator_dies_training_goes_on_over_gloo(tmp_path: Path) -> None:
    training = Training(tmp_path, 2, steps=60, pause_s=0.02)
    with Services(tmp_path / "s", lease_s=1, loss_s=1, shared_slots=16) as on:
        environ = {**on.environ, "INA_ON_SWITCH_LOSS": "fallback"}
        run = Run(tmp_path / "w", _WORKERS, environ, training)
        run.wait_for_step(3)
        on.aggregator.kill()
        outcomes = run.outcomes()
    assert [one.error for one in outcomes] == [None] * _WORKERS
    assert {one.digest for one in outcomes} == {training.undisturbed(_WORKERS)}
    for one in outcomes:
        assert one.stats is not None
        assert one.stats.switch_loss is not None
