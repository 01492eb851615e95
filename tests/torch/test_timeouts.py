"""Timeouts and abort mean what they mean with torch's own backends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from torch.distributed.distributed_c10d import _abort_process_group, _set_pg_timeout

from ina.host.errors import OperationTimeoutError
from ina.torch import ProcessGroupIna, errors, seat
from ina.torch.deadlines import Deadlines
from tests.worlds.fakes.manual_session import ManualSession

_LIMIT = timedelta(seconds=20)
_SOON = timedelta(milliseconds=50)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[ManualSession]:
    """The default group is of one worker, over a session that ends nothing by itself."""
    manual = ManualSession()

    class Joins:
        @staticmethod
        def join(*_: object, **__: object) -> ManualSession:
            return manual

    monkeypatch.setattr(seat, "Session", Joins)
    monkeypatch.setenv("INA_CONTROLLER", "127.0.0.1:1")
    dist.init_process_group("ina", store=HashStore(), rank=0, world_size=1, timeout=_LIMIT)
    yield manual
    if dist.is_initialized():
        dist.destroy_process_group()


def group() -> ProcessGroupIna:
    found = dist.group.WORLD
    assert isinstance(found, ProcessGroupIna)
    return found


def test_operation_with_a_timeout_of_its_own_ends_the_group(session: ManualSession) -> None:
    other = dist.all_reduce(torch.ones(3), async_op=True)
    opts = dist.AllreduceOptions()
    opts.timeout = _SOON
    work = group().allreduce([torch.ones(7)], opts)
    with pytest.raises(OperationTimeoutError, match=r"7 x float32 .* not complete 0.05 s"):
        work.wait(_LIMIT)
    with pytest.raises(OperationTimeoutError, match="7 x float32"):
        other.wait(_LIMIT)


def test_timeout_as_third_argument(session: ManualSession) -> None:
    work = group().allreduce([torch.ones(7)], dist.ReduceOp.SUM, _SOON)
    with pytest.raises(OperationTimeoutError):
        work.wait(_LIMIT)


def test_new_default_timeout(session: ManualSession) -> None:
    _set_pg_timeout(_SOON)
    work = dist.all_reduce(torch.ones(7), async_op=True)
    assert work is not None
    with pytest.raises(OperationTimeoutError, match=r"0.05 s"):
        work.wait(_LIMIT)


def test_set_timeout_of_the_group(session: ManualSession) -> None:
    group().set_timeout(_SOON)
    work = dist.all_reduce(torch.ones(7), async_op=True)
    assert work is not None
    with pytest.raises(OperationTimeoutError):
        work.wait(_LIMIT)


def test_operation_in_time_is_left_alone(session: ManualSession) -> None:
    opts = dist.AllreduceOptions()
    opts.timeout = _SOON
    work = group().allreduce([torch.ones(7)], opts)
    session.handles[0].finish()
    time.sleep(2 * _SOON.total_seconds())
    assert work.wait(_LIMIT)
    later = dist.all_reduce(torch.ones(1), async_op=True)
    assert later is not None
    assert not later.is_completed()
    session.handles[1].finish()


def test_abort_ends_what_is_under_way(session: ManualSession) -> None:
    work = dist.all_reduce(torch.ones(7), async_op=True)
    assert work is not None
    future = work.get_future()
    threading.Timer(0.05, _abort_process_group).start()
    with pytest.raises(errors.GroupClosedError, match="group 0: it has been aborted"):
        work.wait(_LIMIT)
    with pytest.raises(RuntimeError, match="aborted"):
        future.wait()
    deadline = time.monotonic() + 20
    while dist.is_initialized():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert session.closed


def test_aborted_group_can_be_made_anew(session: ManualSession) -> None:
    _abort_process_group()
    dist.init_process_group("ina", store=HashStore(), rank=0, world_size=1, timeout=_LIMIT)
    work = dist.all_reduce(torch.ones(7), async_op=True)
    assert work is not None
    session.handles[0].finish()
    assert work.wait(_LIMIT)


def assert_set(event: threading.Event) -> None:
    assert event.wait(20)


def test_deadlines_call_in_order_and_forget_what_is_over() -> None:
    called: list[int] = []
    all_are_there, third = threading.Event(), threading.Event()
    deadlines = Deadlines("test")
    deadlines.after(0, lambda: False, lambda: assert_set(all_are_there))
    deadlines.after(0.06, lambda: False, third.set)
    deadlines.after(0.03, lambda: False, lambda: called.append(2))
    deadlines.after(0.01, lambda: False, lambda: called.append(1))
    deadlines.after(0.02, lambda: True, lambda: called.append(9))
    all_are_there.set()  # until then the thread waits, however slow this one is
    assert third.wait(20)
    assert called == [1, 2]
    for _ in range(1000):
        deadlines.after(1000, lambda: True, third.set)
    assert len(deadlines._due) <= 1
    deadlines.close()
    deadlines.after(0, lambda: False, third.set)
    assert not deadlines._due
