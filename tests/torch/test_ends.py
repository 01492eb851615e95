"""What closes does not wait for ever for its own threads."""

from __future__ import annotations

import logging
import sys
import threading
from datetime import timedelta
from typing import Any, cast
from unittest import mock

import pytest
from torch._C._distributed_c10d import HashStore

from ina.errors import UnavailableError
from ina.host.errors import JobEndedError
from ina.torch import deadlines, embedded
from ina.torch.deadlines import Deadlines
from ina.torch.fallback import fallback, member, sums
from ina.torch.fallback.fallback import Fallback
from ina.torch.fallback.sums import GlooSums
from ina.torch.worker import Worker
from tests.worlds.processes.silence import silent_server, stuck_thread


def test_of_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_END_TIMEOUT_S", 0.05)
    one = Deadlines("test")
    with stuck_thread() as stuck:
        one._thread = stuck
        one.close()


def test_of_sums_over_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_END_TIMEOUT_S", 0.05)
    one = GlooSums(cast(Any, None), "test")
    with stuck_thread() as stuck:
        own, one._threads = one._threads, [stuck]
        one.close(UnavailableError("it ends"))
    for thread in own:
        thread.join(60)


def test_of_an_embedded_switch_whose_controller_says_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded, "_RPC_DEADLINE_S", 0.1)
    with silent_server() as address, caplog.at_level(logging.WARNING):
        embedded._wait_until_left(address, 60.0)
    assert "does not say who still uses it" in caplog.text


@pytest.mark.parametrize("crashed", [False, True])
def test_of_a_program_that_has_crashed(crashed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other ranks have nothing to expect of it."""
    one: Any = Worker.__new__(Worker)
    one._closing, one._closed = threading.Lock(), False
    one._fallback, one._seat, one._turns = mock.Mock(), mock.Mock(), mock.Mock()
    one.rendezvous = None
    monkeypatch.setattr("ina.torch.rendezvous.part", mock.Mock())
    if crashed:
        monkeypatch.setattr(sys, "last_value", ValueError(), raising=False)
    else:
        monkeypatch.delattr(sys, "last_value", raising=False)
    one.close(30.0)
    for ended in (one._fallback, one._seat):
        ended.close.assert_called_once_with(1.0 if crashed else 30.0)


def test_of_the_wait_for_a_reason_that_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that has ended may have lost its switch: then another rank says so, soon."""
    monkeypatch.setattr(member, "_HEARSAY_S", 0.05)
    one = Fallback(HashStore(), 0, 1, timedelta(seconds=20), "test")
    assert not one.on_failure(JobEndedError("it has ended"))
    one.close(0.0)


def test_of_who_watches_for_the_loss_of_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "_END_TIMEOUT_S", 0.05)
    one = Fallback(HashStore(), 0, 1, timedelta(seconds=20), "test")
    with stuck_thread() as stuck:
        one._monitor = stuck
        one.close(0.0)
