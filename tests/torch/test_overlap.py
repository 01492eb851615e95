"""``ina.torch.overlap``: what may come late does, and what must not does not.

FSDP2 over torch's fake group: this process is one rank of two, and the test's reduce_scatters have
their result only once somebody waits for them. What is read before is NaN.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import ReduceOp, Work
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

import ina.torch
from ina.errors import InvalidInputError
from ina.torch import compat
from ina.torch.errors import NotShardedError
from ina.torch.overlap import LateReduceScatter

RANKS = 4


class LateWork(Work):
    """Its result is there once it has been waited for."""

    def __init__(self, log: list[str], output: torch.Tensor, given: torch.Tensor, op: Any) -> None:
        super().__init__()
        self._log, self._output = log, output
        part = given.view(RANKS if given.numel() == RANKS * output.numel() else 2, -1)[0]
        self._result = part / RANKS if op == ReduceOp.AVG else part.clone()
        self.error: Exception | None = None
        output.fill_(float("nan"))
        log.append("start")

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        self._log.append("wait")
        if self.error is not None:
            raise self.error
        self._output.copy_(self._result)
        return True


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is started and waited for, in order."""
    events: list[str] = []
    monkeypatch.setattr(
        compat, "reduce_scatter", lambda out, given, op, _: LateWork(events, out, given, op)
    )
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=RANKS)
    yield events
    dist.destroy_process_group()


def model(**kwargs: Any) -> Any:
    """FSDP2's, of four layers."""
    torch.manual_seed(1)
    net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)))
    for layer in net:
        fully_shard(layer, **kwargs)
    fully_shard(net, **kwargs)
    return net


def backward(net: Any) -> None:
    torch.manual_seed(2)
    torch.autograd.backward(net(torch.randn(3, 8)).square().mean())


def gradients(net: Any) -> list[torch.Tensor]:
    found = [parameter.grad.to_local().clone() for parameter in net.parameters()]
    assert all(one.isfinite().all() for one in found)
    return found


def compare(
    log: list[str],
    make: Callable[[], Any],
    steps: Callable[[Any], None] = backward,
) -> None:
    """The gradients with and without are the same; ``log`` then has what the former did."""
    found = []
    for overlapped in (False, True):
        net = make()
        ina.torch.overlap(net, under_way=100)
        for module in net.modules() if not overlapped else ():
            for group in module._get_fsdp_state()._fsdp_param_groups:
                group._reduce_scatter_comm._why_at_once = lambda *_: "as usual"
        log.clear()
        steps(net)
        found.append(gradients(net))
    assert all(map(torch.equal, *found))


def test_nothing_is_waited_for_before_the_end_of_backward(log: list[str]) -> None:
    compare(log, model)
    assert log == ["start"] * 4 + ["wait"] * 4


def test_so_many_are_under_way(log: list[str]) -> None:
    net = model()
    ina.torch.overlap(net)
    backward(net)
    assert log == ["start", "start", *["start", "wait"] * 2, "wait", "wait"]
    gradients(net)


def _replicas() -> Any:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "shard"))
    return model(mesh=mesh)


def _factor() -> Any:
    net = model()
    for module in net.modules():
        module.set_force_sum_reduction_for_comms(True)
    return net


def _all_reduce_hook() -> Any:
    net = model()
    for layer in net:
        layer.set_all_reduce_hook(lambda gradient: gradient.mul_(2))
    return net


def _optimizer_in_backward() -> Any:
    net = model()
    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(lambda it: it.grad.to_local().mul_(3))
    return net


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_factor, "the sum is divided after it"),
        (
            lambda: model(mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)),
            "gradients are reduced in another type than their parameters have",
        ),
        (_replicas, "the replicas' gradients are summed after it"),
        (_all_reduce_hook, "there is an all_reduce hook"),
        (
            lambda: model(offload_policy=CPUOffloadPolicy(pin_memory=False)),
            "gradients are offloaded",
        ),
        (_optimizer_in_backward, "a parameter has a hook that runs after it"),
    ],
    ids=lambda it: "" if callable(it) else it,
)
def test_what_is_used_before_the_end_is_waited_for(
    make: Callable[[], Any], why: str, log: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ina.torch")
    compare(log, make)
    assert log == ["start", "wait"] * 4
    assert f"ina: a reduce_scatter is waited for at once because {why}" in caplog.messages


def test_what_is_added_to_is_waited_for(log: list[str]) -> None:
    """The second backward of a step adds to what the first has brought."""

    def twice(net: Any) -> None:
        backward(net)
        backward(net)

    compare(log, model, twice)
    assert log == ["start"] * 4 + ["wait"] * 4 + ["start", "wait"] * 4


def test_outside_of_backward_it_is_waited_for(log: list[str]) -> None:
    net = model()
    ina.torch.overlap(net)
    backward(net)
    log.clear()
    comm = net[0]._get_fsdp_state()._fsdp_param_groups[0]._reduce_scatter_comm
    assert isinstance(comm, LateReduceScatter)
    output = torch.zeros(2)
    world = dist.group.WORLD
    assert world is not None
    comm(output, torch.full((8,), 4.0), world, ReduceOp.AVG)
    assert log == ["start", "wait"]
    assert output.tolist() == [1.0, 1.0]


def test_errors_are_raised_by_backward(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    failing = 2

    def fails(*args: Any) -> Work:
        work = LateWork(log, *args[:3])
        if log.count("start") == failing:
            work.error = RuntimeError("no switch")
        return work

    monkeypatch.setattr(compat, "reduce_scatter", fails)
    net = model()
    ina.torch.overlap(net)
    with pytest.raises(RuntimeError, match="no switch"):
        backward(net)


def test_a_backward_that_fails_leaves_nothing_to_the_next(log: list[str]) -> None:
    net = model()
    ina.torch.overlap(net)
    handle = net[1].register_full_backward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        backward(net)
    handle.remove()
    assert log.count("start") > log.count("wait")
    net._get_fsdp_state()._reset_iter_state()
    net.zero_grad()
    backward(net)
    assert log.count("start") == log.count("wait")
    gradients(net)


def test_what_cannot_be_is_named(log: list[str]) -> None:
    with pytest.raises(NotShardedError, match="no module of Linear is fully_shard's"):
        ina.torch.overlap(nn.Linear(2, 2))
    with pytest.raises(InvalidInputError, match="under_way is 0, must be at least 1"):
        ina.torch.overlap(model(), under_way=0)


def test_other_devices_stay_as_they_are(log: list[str]) -> None:
    net = model()
    (group,) = net[0]._get_fsdp_state()._fsdp_param_groups
    group.device = torch.device("meta")
    ina.torch.overlap(net)
    assert not isinstance(group._reduce_scatter_comm, LateReduceScatter)
    assert not group.unshard_async_op
    others = [layer._get_fsdp_state()._fsdp_param_groups[0] for layer in net[1:]]
    assert all(isinstance(one._reduce_scatter_comm, LateReduceScatter) for one in others)
    assert all(one.unshard_async_op for one in others)
