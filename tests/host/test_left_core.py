"""A worker leaves the core on which the switch of its host runs, where it can."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from ina._native.host import OperationState
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.hand_switch import VALUES, HandSwitch
from tests.worlds.processes.threads import NewThreads


@pytest.fixture
def new() -> NewThreads:
    return NewThreads()


@pytest.fixture
def switch(two_cores: tuple[int, int], new: NewThreads) -> Iterator[HandSwitch]:
    made = HandSwitch()  # its worker's thread has these cores, too
    yield made
    made.close()


def exchange(switch: HandSwitch, chunk: int) -> None:
    """A packet and its result, after which the worker sleeps again."""
    array = np.full(VALUES, chunk, np.int32)
    out = np.zeros_like(array)
    operation = switch.transport.submit(
        array.ctypes.data, out.ctypes.data, Collective(ValueType.INT32, array.size)
    )
    wait_until(lambda: bool(switch.of(chunk)), "sent", 60.0)
    switch.answer(switch.of(chunk)[0])
    wait_until(lambda: operation.state == OperationState.DONE, "done", 60.0)
    assert (out == array).all()


def test_the_worker_stays_off_the_switchs_core(
    switch: HandSwitch, two_cores: tuple[int, int], new: NewThreads
) -> None:
    first, second = two_cores
    thread = new.only("ina-worker")
    asked = [1 + first, 1 + second, 0, 1 + first, 5000, 1 + second, 0xFFFFFFFF]
    left: list[set[int]] = [{first}, {second}, set(), {first}, set(), {second}, set()]
    for turn, (core, without) in enumerate(zip(asked, left, strict=True)):
        switch.ask_to_leave(core)
        exchange(switch, turn)
        cores = {first, second} - without
        wait_until(lambda: os.sched_getaffinity(thread) == cores, "moved")  # noqa: B023
    assert os.sched_getaffinity(0) == {first, second}  # nobody else's


def test_a_worker_that_has_one_core_stays(
    switch: HandSwitch, two_cores: tuple[int, int], new: NewThreads
) -> None:
    thread = new.only("ina-worker")
    os.sched_setaffinity(thread, {two_cores[0]})
    for turn in range(4):  # it has slept between two packets
        switch.ask_to_leave(1 + two_cores[turn % 2])
        exchange(switch, turn)
        assert os.sched_getaffinity(thread) == {two_cores[0]}
