"""Backends by device, and the path of GPU tensors, as far as they run without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from torch._subclasses.fake_tensor import FakeTensorMode

import ina.torch
from ina.protocol.collective import Reduction
from ina.protocol.spec import ValueType
from ina.torch import seat
from tests.torch import device_cases
from tests.worlds.fakes.manual_session import ManualSession
from tests.worlds.processes.launch import launch


@pytest.mark.parametrize("wire", ["32", "16"])
def test_staged_tensors_get_the_bits_of_direct_ones(wire: str, tmp_path: Path) -> None:
    case, environ = device_cases.staged_as_direct, {"INA_WIRE": wire}
    found = launch(case, 3, tmp_path / "w", environ=environ)
    assert found == [2 * (4 * 5260 + 9)] * 3


def test_a_second_backend_is_made_by_us(tmp_path: Path) -> None:
    said = launch(device_cases.two_backends, 3, tmp_path / "w", backend="cpu:ina,cuda:gloo")
    lines, others, no_fallback = said[0]
    assert (
        "INFO ina: all_reduce on cuda in group 0 goes through gloo because the group was made with"
        " cpu:ina,cuda:gloo" in lines
    )
    assert lines.count("INFO ina: group 0: backend gloo for cuda") == 1
    assert others == {"all_reduce on cuda": 2, "reduce on cuda": 1}
    assert no_fallback


def test_ina_for_the_second_device_only(tmp_path: Path) -> None:
    for said in launch(device_cases.ours_second, 2, tmp_path / "w", backend="cpu:gloo,cuda:ina"):
        assert said["network"] == 0
        assert sum(said["others"].values()) == 2


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[ManualSession]:
    """Groups of one worker, over a manual session."""
    session = ManualSession()
    joins = type("Joins", (), {"join": staticmethod(lambda *_, **__: session)})
    monkeypatch.setattr(seat, "Session", joins)
    monkeypatch.setenv("INA_CONTROLLER", "127.0.0.1:1")
    yield session
    if dist.is_initialized():
        dist.destroy_process_group()


def _init(backend: str) -> None:
    dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)


@pytest.mark.parametrize("backend", ["cuda:ina", "ina", "cpu:ina"])
def test_barriers_and_objects_need_no_backend_for_the_cpu(
    backend: str, no_network: ManualSession
) -> None:
    _init(backend)
    meeting = dist.barrier(async_op=True)
    no_network.handles[0].finish()
    meeting.wait()
    objects = [None]
    dist.all_gather_object(objects, "thing")
    assert objects == ["thing"]
    dist.all_reduce(torch.ones(2), async_op=True)
    assert no_network.ops == [(ValueType.INT32, Reduction.SUM), (1, Reduction.SUM)]
    no_network.handles[1].finish()


def test_a_group_bound_to_a_gpu(no_network: ManualSession) -> None:
    """torch asks for the GPU's backend before we can know which it is."""
    _init("cpu:ina,cuda:gloo")
    group = dist.new_group([0], device_id=torch.device("cuda", 0))
    assert isinstance(group, ina.torch.ProcessGroupIna)
    assert group._devices.backend_of("cuda") == "gloo"


def test_a_backend_that_is_not_there_is_named(no_network: ManualSession) -> None:
    _init("cpu:ina,cuda:nccl")
    if dist.is_nccl_available():
        pytest.skip("this torch has NCCL")
    with (
        FakeTensorMode(),
        pytest.raises(RuntimeError, match="doesn't have NCCL built in"),
    ):
        dist.all_reduce(torch.ones(2, device="cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_ranks_that_share_a_gpu(tmp_path: Path) -> None:
    said = launch(device_cases.on_one_gpu, 2, tmp_path / "w", backend="gloo", deadline_s=120)
    assert all(sums > 7 for sums in said)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("backend", ["ina", "cpu:ina,cuda:nccl"])
def test_gpu_tensors(tmp_path: Path, backend: str) -> None:
    if "nccl" in backend and not dist.is_nccl_available():
        pytest.skip("this torch has no NCCL")
    workers = min(2, torch.cuda.device_count())  # NCCL refuses two ranks on one GPU
    said = launch(device_cases.on_gpu, workers, tmp_path / "w", backend=backend)
    assert [network > 0 for network in said] == [backend == "ina"] * workers
