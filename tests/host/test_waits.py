"""Waits of the host side that end although nobody answers, or a thread does not end."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ina.host import Session, WorkerOptions, shm, watcher
from ina.host.calls import Credentials
from ina.host.client import GrpcWire
from ina.host.errors import ControllerTimeoutError, TransportError
from ina.host.member import beat, client, core
from ina.host.member.client import ControllerClient
from ina.host.shm import ShmLink
from ina.host.thread_driver import ThreadDriver
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.controller import FakeController
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.processes.silence import DEADLINE_S, silent_server, stuck_thread


@contextmanager
def calls_to_nobody(**options: float) -> Iterator[tuple[ControllerClient, ThreadDriver]]:
    driver = ThreadDriver("test")
    with silent_server() as address, GrpcWire(address, driver) as wire:
        yield ControllerClient(wire, "", **options), driver


def test_a_call_that_the_controller_does_not_answer() -> None:
    with (
        calls_to_nobody(timeout_s=0.2) as (calls, driver),
        pytest.raises(ControllerTimeoutError, match=r"cannot leave .* \(after 0.2 s\)"),
    ):
        driver.run(calls.leave(Credentials("j", 0, 1, b"")))


def test_a_join_that_the_controller_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its own time, in which others may come, and a little more for the answer."""
    monkeypatch.setattr(client, "JOIN_GRACE_S", 0.1)
    with (
        calls_to_nobody() as (calls, driver),
        pytest.raises(ControllerTimeoutError, match=r"cannot join .* \(after 0.3 s\)"),
    ):
        driver.run(calls.join(pb2.JoinRequest(name="j", rank=0, timeout_s=0.2)))


class Hanging(FakeController):
    """Hears heartbeats, and answers none of them."""

    def Heartbeat(self, request: pb2.HeartbeatRequest, context: Any) -> pb2.HeartbeatReply:  # noqa: N802
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait(DEADLINE_S)
        return pb2.HeartbeatReply()


def test_a_heartbeat_that_the_controller_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker says so once, and sums go on."""
    monkeypatch.setattr(beat, "_ANSWER_S", 0.1)
    ones = np.ones(10, np.int32)
    with (
        caplog.at_level(logging.WARNING),
        UdpModel() as switch,
        Hanging(switch, lease_s=30.0, heartbeat_s=0.1) as controller,
        Session.join(controller.address, "j", 0, 1, WorkerOptions(threads=1)) as session,
    ):
        end = time.monotonic() + DEADLINE_S
        while "(after 0.1 s); sums do not need it" not in caplog.text:
            assert time.monotonic() < end
            np.testing.assert_array_equal(session.all_reduce(ones), ones)


def test_a_shared_memory_switch_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shm, "_TIMEOUT_S", 1)
    name = f"ina-test-silent-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        with pytest.raises(TransportError, match=f"shared memory of the switch at @{name}: "):
            ShmLink.attach(f"@{name}", 4, 280)


def test_closing_does_not_wait_for_a_callback_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "_JOIN_S", 0.05)
    begun, release = threading.Event(), threading.Event()

    def callback(handle: object) -> None:
        begun.set()
        release.wait(DEADLINE_S)

    with UdpModel() as switch, closing(switch.sessions(1)) as (session,):
        handle = session.all_reduce(np.ones(10, np.int32), async_op=True)
        handle.add_done_callback(callback)
        assert begun.wait(DEADLINE_S)
        session.close()
        assert not release.is_set()
        release.set()


def test_closing_does_not_wait_for_a_heartbeat_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(core, "_JOIN_S", 0.05)
    with (
        UdpModel() as switch,
        FakeController(switch, lease_s=10.0, heartbeat_s=2.0) as controller,
        stuck_thread() as stuck,
        caplog.at_level(logging.WARNING),
    ):
        session = Session.join(controller.address, "j", 0, 1, WorkerOptions(threads=1))
        session._driver._threads[core.WATCH] = stuck
        session.close()
    assert f"thread {stuck.name} does not end" in caplog.text
