"""Streams are gone once they are closed, though nothing collects garbage.

Freed by the last collection, at the interpreter's end, one may wait for ever for its lock, with
which gRPC's thread was stopped.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from ina.cli.job import follow as job_follow
from ina.cli.switch import probe as switch_probe
from ina.errors import InaError, UnavailableError
from ina.host import Session
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.fakes.controller import FakeController
from tests.worlds.fakes.operator import FakeController as FakeOperator
from tests.worlds.fakes.operator import serving
from tests.worlds.fakes.udp_model import UdpModel

DEADLINE_S = 5.0


def streams() -> list[Any]:
    # Nothing else of gRPC's takes a lock when it is freed.
    return [it for it in gc.get_objects() if isinstance(it, grpc.Call) and hasattr(it, "__next__")]


@contextlib.contextmanager
def none_left() -> Iterator[None]:
    gc.freeze()  # what is there already is not looked at
    gc.disable()
    try:
        yield
        deadline = time.monotonic() + DEADLINE_S
        while left := streams():
            # gRPC's own thread lets go of what it has just handled.
            if time.monotonic() > deadline:
                pytest.fail(f"{len(left)} streams: {gc.get_referrers(left[0])}")
            del left
            time.sleep(0.01)
    finally:
        gc.enable()
        gc.unfreeze()


@contextlib.contextmanager
def switch() -> Iterator[SoftSwitch]:
    running = SoftSwitch([UdpPort(1, "127.0.0.1")])
    running.start()
    try:
        yield running
    finally:
        running.stop()


def test_of_a_worker_that_leaves_while_others_stay() -> None:
    with UdpModel() as model, FakeController(model, lease_s=60.0, heartbeat_s=0.05) as fake:
        with none_left(), Session.join(fake.address, "digits", 0, 1):
            fake.until(lambda: 0 in fake.watching and 0 in fake.progress)
        assert fake.left


def test_of_a_worker_whose_stream_breaks() -> None:
    with (
        UdpModel() as model,
        FakeController(model, lease_s=60.0, heartbeat_s=0.05) as fake,
        none_left(),
        Session.join(fake.address, "digits", 0, 1) as session,
    ):
        fake.until(lambda: 0 in fake.watching and 0 in fake.progress)
        first = fake.watching.pop(0)
        fake.stop()
        fake.start()
        first.put(None)
        fake.until(lambda: 0 in fake.watching)  # a second stream
        fake.ended = "epoch 1 of it has ended"  # NOT_FOUND to the third
        fake.watching[0].put(None)
        deadline = time.monotonic() + DEADLINE_S
        while session.error() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_of_a_probe_that_the_switch_refuses() -> None:
    with switch() as running, none_left():
        assert not switch_probe.probe(running.grpc_addr, 1).has_program
        with pytest.raises(switch_probe.SwitchRefusedError, match="device"):
            switch_probe.probe(running.grpc_addr, 7)


@pytest.mark.parametrize("end", ["closed", "refused", "ended"])
def test_of_who_follows_jobs(end: str) -> None:
    fake = FakeOperator()
    with serving(fake) as address, none_left():
        following = job_follow.follow(address, "")
        next(following)
        if end == "refused":
            fake.refuse = (grpc.StatusCode.PERMISSION_DENIED, "not yours")
            with pytest.raises(InaError, match="not yours"):
                list(following)
        elif end == "ended":
            fake.events.put(None)
            assert isinstance(next(one for one in following if one), UnavailableError)
        following.close()  # type: ignore[attr-defined]
        del following
