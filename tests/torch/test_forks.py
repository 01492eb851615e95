"""Forks of a process that has a group: DataLoader's workers, above all."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from tests.worlds.processes.launch import launch

EPOCHS = 2


def load(_: int, workers: int) -> list[float]:
    """A worker that does not end well makes the loop raise."""
    sums = []
    for _ in range(EPOCHS):
        for (batch,) in DataLoader(
            TensorDataset(torch.arange(8.0)),
            batch_size=4,
            num_workers=2,
            multiprocessing_context="fork",
        ):
            total = batch.sum().reshape(1)
            dist.all_reduce(total)
            sums.append(total.item() / workers)
    return sums


def end_in_child(*_: object) -> tuple[int, float]:
    """The child destroys its copy of the group, and ends as programs do; then the rank goes on."""
    child = os.fork()
    if child == 0:
        dist.destroy_process_group()
        raise SystemExit(7)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    return code, tensor.item()


def test_workers_of_a_data_loader_end_and_do_no_harm(tmp_path: Path) -> None:
    assert launch(load, 2, tmp_path / "w") == [[6.0, 22.0] * EPOCHS] * 2


def test_a_child_that_destroys_its_copy_of_the_group_does_no_harm(tmp_path: Path) -> None:
    assert launch(end_in_child, 2, tmp_path / "w") == [(7, 2.0)] * 2
