"""DDP communication hooks: ours beside Gloo, torch's over ina."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.host.errors import OperationTimeoutError
from ina.torch import seat
from tests.torch import hook_cases
from tests.worlds.fakes.manual_session import ManualSession
from tests.worlds.processes.launch import launch


def test_hook_over_gloo(tmp_path: Path) -> None:
    said = launch(
        hook_cases.hook_over_gloo, 3, tmp_path / "w", backend="gloo", environ={"INA_JOB": "mine"}
    )
    assert len({one["job"] for one in said}) == 1
    assert said[0]["job"].startswith("mine/")
    for one in said:
        assert one["sums"] > 3  # several buckets in a step
        assert one["fallbacks"] == 0


def test_hooks_over_ina(tmp_path: Path) -> None:
    for stats in launch(hook_cases.hooks_over_ina, 3, tmp_path / "w"):
        assert stats.network_all_reduces > 20
        assert stats.fallbacks == 0


def test_backward_raises_what_ended_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ManualSession()
    joins = type("Joins", (), {"join": staticmethod(lambda *_, **__: session)})
    monkeypatch.setattr(seat, "Session", joins)
    monkeypatch.setenv("INA_CONTROLLER", "127.0.0.1:1")
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    try:
        model = DistributedDataParallel(torch.nn.Linear(3, 2))
        model.register_comm_hook(ina.torch.HookState(), ina.torch.allreduce_hook)
        loss = model(torch.ones(1, 3)).sum()
        error = OperationTimeoutError("rank 1 is gone")
        timer = threading.Timer(0.2, lambda: session.handles[0].finish(error=error))
        timer.start()
        with pytest.raises(RuntimeError, match="rank 1 is gone"):
            torch.autograd.backward(loss)
        timer.join()
    finally:
        dist.destroy_process_group()
