"""The process group's mechanics with a session that completes when the test says."""

from __future__ import annotations

import gc
import logging
import re
import threading
import weakref
from collections.abc import Iterator
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from torch.distributed.distributed_c10d import _coalescing_manager
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.protocol.collective import Reduction
from ina.torch import errors, seat
from ina.torch.embedded import HOST
from ina.torch.env import Settings
from ina.torch.rendezvous import meet
from tests.worlds.fakes.manual_session import ManualSession


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[ManualSession]:
    """The default group is of one worker, over a manual session."""
    manual = ManualSession()

    class Joins:
        @staticmethod
        def join(*_: object, **__: object) -> ManualSession:
            return manual

    monkeypatch.setattr(seat, "Session", Joins)
    monkeypatch.setenv("INA_CONTROLLER", "127.0.0.1:1")
    dist.init_process_group(
        "ina", store=HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=20)
    )
    yield manual
    if dist.is_initialized():
        dist.destroy_process_group()


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def test_async_work_completes_from_another_thread(session: ManualSession) -> None:
    tensor = torch.arange(5.0)
    work = dist.all_reduce(tensor, async_op=True)
    assert not work.is_completed()
    future = work.get_future()
    seen: list[int] = []

    def note(done: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        seen.append(threading.get_ident())
        return done.value()[0]

    chained = future.then(note)
    with pytest.raises(errors.WorkTimeoutError, match=r"5 x float32 .* 0.01 s"):
        work.wait(timedelta(seconds=0.01))
    session.handles[0].finish(_bytes(tensor * 3))
    assert work.wait() is True
    assert work.is_completed()
    assert work.is_success()
    assert work.exception() is None
    assert seen
    assert seen != [threading.get_ident()]
    assert torch.equal(chained.wait(), torch.arange(5.0) * 3)
    assert torch.equal(tensor, torch.arange(5.0) * 3)
    assert work.get_future() is future


def test_who_waits_for_one_sum_needs_no_other_thread(session: ManualSession) -> None:
    tensor = torch.ones(2)
    work = dist.all_reduce(tensor, async_op=True)
    timer = threading.Timer(0.05, lambda: session.handles[0].finish(_bytes(tensor * 2)))
    timer.start()
    assert work.wait() is True
    timer.join()
    assert session.handles[0].callbacks == 0
    assert torch.equal(tensor, torch.full((2,), 2.0))
    assert work.is_completed()
    assert work.is_success()
    assert torch.equal(work.get_future().wait()[0], tensor)


def test_a_work_that_nobody_waits_for_is_seen_to_complete(session: ManualSession) -> None:
    tensor = torch.ones(2)
    work = dist.all_reduce(tensor, async_op=True)
    assert not work.is_completed()
    session.handles[0].finish(_bytes(tensor * 2))
    assert work.is_completed()
    assert work.is_success()
    failed = dist.all_reduce(tensor, async_op=True)
    session.handles[1].finish(error=RuntimeError("no switch"))
    assert str(failed.exception()) == "no switch"
    assert not failed.is_success()


def test_several_may_wait_for_one_sum(session: ManualSession) -> None:
    tensor = torch.ones(2)
    work = dist.all_reduce(tensor, async_op=True)
    waiters = [threading.Thread(target=work.wait) for _ in range(4)]
    for waiter in waiters:
        waiter.start()
    session.handles[0].finish(_bytes(tensor * 2))
    for waiter in waiters:
        waiter.join(30)
        assert not waiter.is_alive()


def test_an_interrupted_wait_leaves_the_work_to_others(session: ManualSession) -> None:
    tensor = torch.ones(2)
    work = dist.all_reduce(tensor, async_op=True)
    session.handles[0].interrupt = True
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    session.handles[0].finish(_bytes(tensor * 2))
    assert work.wait() is True


def test_future_asked_for_after_the_end(session: ManualSession) -> None:
    tensor = torch.ones(2)
    work = dist.all_reduce(tensor, async_op=True)
    session.handles[0].finish()
    assert work.get_future().wait()[0].data_ptr() == tensor.data_ptr()


def test_error_reaches_wait_exception_and_future(session: ManualSession) -> None:
    work = dist.all_reduce(torch.ones(2), async_op=True)
    future = work.get_future()
    session.handles[0].finish(error=errors.RendezvousError("rank 1 is gone"))
    with pytest.raises(errors.RendezvousError, match="rank 1 is gone"):
        work.wait()
    assert isinstance(work.exception(), errors.RendezvousError)
    assert work.is_completed()
    assert not work.is_success()
    with pytest.raises(RuntimeError, match="rank 1 is gone"):
        future.wait()


def test_error_passes_through_ddp(session: ManualSession) -> None:
    model = DistributedDataParallel(torch.nn.Linear(3, 2))
    timer = threading.Timer(
        0.2,
        lambda: session.handles[0].finish(error=errors.RendezvousError("rank 1 is gone")),
    )
    loss = model(torch.ones(1, 3)).sum()
    timer.start()
    with pytest.raises(RuntimeError, match="rank 1 is gone"):
        loss.backward()
    timer.join()


def test_a_sum_that_cannot_be_written_back_fails_the_work(session: ManualSession) -> None:
    view = torch.ones(4)[::2]
    work = dist.all_reduce(view, async_op=True)
    future = work.get_future()
    view.resize_(3)
    session.handles[0].finish()
    with pytest.raises(RuntimeError, match="must match the size"):
        work.wait(timedelta(seconds=20))
    with pytest.raises(RuntimeError, match="must match the size"):
        future.wait()


def test_a_tensor_that_overlaps_is_refused_before_anything_is_sent(session: ManualSession) -> None:
    with pytest.raises(errors.OverlappingTensorError, match=r"shape \(4,\) with strides \(0,\)"):
        dist.all_reduce(torch.ones(1).expand(4))
    with pytest.raises(errors.OverlappingTensorError):
        dist.reduce_scatter_tensor(torch.ones(1).expand(4), torch.ones(4))
    assert session.ops == []


def test_non_contiguous_tensor_of_inference_mode_is_written_back(session: ManualSession) -> None:
    with torch.inference_mode():
        view = torch.zeros(2, 3).t()
        work = dist.all_reduce(view, async_op=True)
    session.handles[0].finish(_bytes(torch.ones(3, 2)))
    assert work.wait(timedelta(seconds=20))
    assert torch.equal(view, torch.ones(3, 2))


def test_non_contiguous_tensor_is_written_back(session: ManualSession) -> None:
    base = torch.zeros(3, 4)
    view = base.t()[1:3]
    work = dist.all_reduce(view, async_op=True)
    wanted = torch.arange(6.0).reshape(2, 3)
    session.handles[0].finish(_bytes(wanted))
    work.wait()
    assert torch.equal(view, wanted)
    assert torch.equal(base[:, 1:3], wanted.t())
    assert base[:, 0].abs().sum() == 0


def test_tensor_lives_until_the_session_is_done(session: ManualSession) -> None:
    tensor = torch.ones(4)
    storage = weakref.ref(tensor.untyped_storage())
    alive = weakref.ref(tensor)
    dist.all_reduce(tensor, async_op=True)
    del tensor
    gc.collect()
    assert alive() is not None or storage() is not None
    session.handles[0].finish(_bytes(torch.ones(4)))
    session.handles.clear()
    gc.collect()
    assert alive() is None


def test_coalesced_completes_with_the_last(session: ManualSession) -> None:
    one, two = torch.ones(2), torch.ones(3, dtype=torch.int32)
    with _coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(one)
        dist.all_reduce(two)
    assert [kind for kind, _ in session.ops] == [1, 0]
    session.handles[1].finish()
    assert not manager.works[0].is_completed()
    session.handles[0].finish()
    manager.wait()


def test_coalesced_that_cannot_start_fails_after_what_started(session: ManualSession) -> None:
    session.fail_at = 1
    group = dist.group.WORLD
    assert group is not None
    work = group.allreduce_coalesced([torch.ones(2), torch.ones(2)])
    assert not work.is_completed()
    session.handles[0].finish()
    with pytest.raises(RuntimeError, match="cannot start"):
        work.wait()


@pytest.mark.parametrize("spelling", ["tensor", "list", "op"])
def test_spellings_of_allreduce(session: ManualSession, spelling: str) -> None:
    group = dist.group.WORLD
    assert group is not None
    tensor = torch.ones(2)
    if spelling == "tensor":
        group.allreduce(tensor)
    elif spelling == "list":
        group.allreduce([tensor])
    else:
        group.allreduce([tensor], op=dist.ReduceOp.AVG)
    assert session.ops == [(1, Reduction.AVERAGE if spelling == "op" else Reduction.SUM)]
    session.handles[0].finish()


def test_that_the_network_sums_is_said_once_for_a_type(
    session: ManualSession, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ina.torch"):
        for dtype in (torch.float32, torch.int32, torch.float32):
            work = dist.all_reduce(torch.ones(2, dtype=dtype), async_op=True)
            session.handles[-1].finish()
            work.wait()
    assert [record.getMessage() for record in caplog.records] == [
        "ina: all_reduce of float32 in group 0 goes through the network",
        "ina: all_reduce of int32 in group 0 goes through the network",
    ]


def test_fallback_is_said_once_and_counted(
    session: ManualSession, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ina.torch"):
        for _ in range(3):
            dist.all_reduce(torch.ones(2), op=dist.ReduceOp.MAX)
            dist.all_reduce(torch.ones(2, dtype=torch.float64))
            dist.gather(torch.ones(1), [torch.ones(1)])
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "ina: all_reduce MAX of float32 in group 0 goes through Gloo because the network sums SUM"
        " and AVG only",
        "ina: all_reduce SUM of float64 in group 0 goes through Gloo because the network sums"
        " int32, float32, float16, bfloat16",
        "ina: gather in group 0 goes through Gloo because the network does not do it",
    ]
    assert [record.levelno for record in caplog.records] == [30, 30, 20]
    stats = ina.torch.stats()
    assert stats.fallbacks == 6
    assert stats.network_all_reduces == 0
    assert stats.fallback_reasons["all_reduce MAX of float32"] == 3
    assert stats.other_collectives == {"gather": 3}
    assert session.handles == []


def test_network_all_reduces_are_counted(session: ManualSession) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
        dist.all_reduce(torch.ones(10, dtype=dtype), async_op=True)
    stats = ina.torch.stats()
    assert (stats.network_all_reduces, stats.network_elems) == (4, 40)
    assert stats.network_bytes == 10 * (4 + 2 + 2 + 4)
    assert stats.fallbacks == 0
    for handle in session.handles:
        handle.finish()


def test_destroyed_group_refuses(session: ManualSession) -> None:
    group = dist.group.WORLD
    assert group is not None
    dist.destroy_process_group()
    assert session.closed
    with pytest.raises(errors.GroupClosedError, match="group 0"):
        group.allreduce([torch.ones(1)])


def test_meta_tensor_is_refused(session: ManualSession) -> None:
    with pytest.raises(errors.UnsupportedDeviceError, match="meta"):
        dist.all_reduce(torch.ones(2, device="meta"))


def test_printed_a_work_and_a_group_say_what_they_are(session: ManualSession) -> None:
    group = dist.group.WORLD
    first, second = (dist.all_reduce(torch.ones(5), async_op=True) for _ in range(2))
    what = r"<all_reduce SUM of 5 x float32 in job torch-\w+, rank 0 of 1: "
    assert re.fullmatch(what + "under way>", repr(first))
    session.handles[0].finish()
    assert re.fullmatch(what + "ended>", repr(first))
    first.wait()
    assert re.fullmatch(what + "done>", repr(first))
    session.handles[1].finish(error=ValueError("lost"))
    with pytest.raises(ValueError, match="lost"):
        second.wait()
    assert re.fullmatch(what + "failed: lost>", repr(second))
    described = r"<ina\.torch\.ProcessGroupIna group=0 job=torch-\w+ rank=0/1 "
    assert re.fullmatch(described + "controller=127.0.0.1:1>", repr(group))
    dist.destroy_process_group()
    assert re.fullmatch(described + "destroyed>", str(group))


def test_1025_workers_are_refused_with_the_reason() -> None:
    with pytest.raises(errors.GroupSizeError, match=r"group 0 has 1025 workers: a job has at most"):
        dist.init_process_group("ina", store=HashStore(), rank=0, world_size=1025)
    assert not dist.is_initialized()


def test_more_than_one_switch_sums_need_a_controller_and_all_ranks_are_told() -> None:
    store, settings = HashStore(), Settings()
    with pytest.raises(
        errors.GroupSizeError, match=r"a group of 33 workers: .* at most 32; set INA"
    ):
        meet(store, range(33), 0, "", settings, 1.0)
    with pytest.raises(
        errors.RendezvousError, match="could not start the group: a group of 33 wor"
    ):
        meet(store, range(33), 32, "", settings, 1.0)
    assert HOST.current() is None


def test_stats_of_another_backend() -> None:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(errors.NotInaGroupError):
            ina.torch.stats()
    finally:
        dist.destroy_process_group()
