"""Results that are no sums, in a session that can be finished without the switch: it is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from ina.errors import InaError
from ina.host import CorruptedSumError, Handle, JobEvictedError, Session, SessionFrozenError, halts
from ina.host.frozen import Frozen
from ina.host.halts import HaltWatch
from ina.testing import numerics
from tests.host.sums import recover
from tests.worlds.fakes.forgetful import Switch
from tests.worlds.fakes.udp_model import closing
from tests.worlds.processes.silence import stuck_thread

ONES = np.ones(300, np.int32)
END_S = 30.0


class Asked:
    """What ``on_failure`` of each rank was told, and whether it takes over."""

    def __init__(self, takes_over: bool) -> None:
        self.errors: list[InaError] = []
        self.called = threading.Semaphore(0)
        self._takes_over = takes_over

    def __call__(self, error: InaError) -> bool:
        self.errors.append(error)
        self.called.release()
        return self._takes_over


@pytest.fixture
def switch() -> Iterator[Switch]:
    with Switch() as made:
        yield made


def halted(switch: Switch, asked: Asked, recoverable: bool = True) -> list[Session]:
    """Two ranks that have one sum behind them; what the switch adds from now on is wrong."""
    made = switch.sessions(2, recoverable=recoverable, on_failure=asked)
    for handle in [session.all_reduce(ONES, async_op=True) for session in made]:
        assert (handle.wait(END_S) == 2).all()
    switch.forgetful.damages = True
    return made


def test_what_is_under_way_is_finished_by_other_means(switch: Switch) -> None:
    """That was submitted before the halt, and after it."""
    asked = Asked(takes_over=True)
    with closing(halted(switch, asked)) as pair:
        parts = [np.arange(300, dtype=np.float32) * (rank + 1) for rank in range(2)]
        handles: list[Handle[numerics.Array]] = []
        for _ in range(2):
            handles += [s.all_reduce(p, async_op=True) for s, p in zip(pair, parts, strict=True)]
            for _ in pair if len(handles) == 2 else ():
                assert asked.called.acquire(timeout=END_S)
        assert all(isinstance(error, CorruptedSumError) for error in asked.errors)
        assert [session.error() for session in pair] == [None, None]
        assert not any(handle.done() for handle in handles)
        frozen: list[Frozen] = [session.freeze() for session in pair]
        with pytest.raises(SessionFrozenError):
            pair[0].all_reduce(ONES)
        assert [one.export.submitted for one in frozen] == [3, 3]
        recover(frozen)
        for handle in handles:
            assert numerics.same_bits(handle.wait(END_S), numerics.all_reduce(parts, "sum", 64))


def test_nobody_takes_over(switch: Switch) -> None:
    asked = Asked(takes_over=False)
    with closing(halted(switch, asked)) as pair:
        handles = [session.all_reduce(ONES, async_op=True) for session in pair]
        for handle in handles:
            with pytest.raises(CorruptedSumError, match="are not the sum of what the workers sent"):
                handle.wait(END_S)
        assert len(asked.errors) == 2
        with pytest.raises(CorruptedSumError):
            pair[0].all_reduce(ONES)


def test_who_cannot_freeze_is_not_asked(switch: Switch) -> None:
    asked = Asked(takes_over=True)
    with closing(halted(switch, asked, recoverable=False)) as pair:
        for handle in [session.all_reduce(ONES, async_op=True) for session in pair]:
            with pytest.raises(CorruptedSumError):
                handle.wait(END_S)
        assert asked.errors == []


def test_another_failure_ends_what_has_halted(switch: Switch) -> None:
    """Its reason was there first: the job was evicted while it was thought about."""
    told = threading.Event()

    def waits(_: InaError) -> bool:
        told.set()
        pair[0].fail(JobEvictedError("an operator says so"))
        return False

    pair = switch.sessions(2, recoverable=True, on_failure=waits)
    with closing(pair):
        switch.forgetful.damages = True
        handles = [session.all_reduce(ONES, async_op=True) for session in pair]
        with pytest.raises(JobEvictedError):
            handles[0].wait(END_S)
        assert told.is_set()


def test_a_halted_session_closes(switch: Switch) -> None:
    asked = Asked(takes_over=True)
    with closing(halted(switch, asked)) as pair:
        for session in pair:
            session.all_reduce(ONES, async_op=True)
        assert asked.called.acquire(timeout=END_S)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ina-halt")]


def test_closing_does_not_wait_for_a_function_that_does_not_end(
    switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halts, "_JOIN_S", 0.05)
    with closing(switch.sessions(1)) as (session,), stuck_thread() as stuck:
        watch = HaltWatch(session._transport, lambda: None, "test")
        own, watch._thread = watch._thread, stuck
        watch.close()
        session.close()
        own.join(END_S)
        assert not own.is_alive()
