"""Ctrl-C ends whatever a process waits for, soon."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore

from ina.torch import process_group, rendezvous
from ina.torch.env import Settings
from ina.torch.fresh_store import StoreWait, fresh

SOON_S = 5.0
LATE_S = 20.0


def wait_for_ranks() -> None:
    fresh(HashStore(), 1, 2, timedelta(seconds=LATE_S))


def wait_for_controller() -> None:
    rendezvous._follow(HashStore(), Settings(), StoreWait("rank 1", LATE_S))


@pytest.mark.parametrize("wait", [wait_for_ranks, wait_for_controller])
def test_it_ends_a_wait_for_others_to_start(wait: Callable[[], None]) -> None:
    timer = threading.Timer(0.3, _thread.interrupt_main)
    began_s = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        wait()
    assert time.monotonic() - began_s < SOON_S


class Waiting:
    """A group whose process waits for others to leave."""

    group_name = "3"

    def shutdown(self) -> None:
        raise KeyboardInterrupt


class Closed:
    """The other group."""

    closed = False

    def shutdown(self) -> None:
        self.closed = True


def test_at_exit_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waiting, other = Waiting(), Closed()
    monkeypatch.setattr(process_group, "LIVING", [waiting, other])
    process_group.close_living_groups()
    assert [record.getMessage() for record in caplog.records] == [
        "ina: interrupted while it left group 3"
    ]
    assert other.closed
