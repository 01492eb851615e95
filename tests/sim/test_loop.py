"""The event loop in virtual time, and processes that die in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from ina.extension import sim as native
from ina.sim.errors import NothingHappensError, VirtualTimeError
from ina.sim.loop import VirtualLoop
from ina.sim.process import Killed, Process


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    with VirtualLoop(native.Network(1), limit_s=1e6) as loop:
        yield loop


def test_a_day_passes_at_once(loop: VirtualLoop) -> None:
    order = []

    async def wait(for_s: float) -> None:
        await asyncio.sleep(for_s)
        order.append((loop.time(), loop.now_ns))

    async def both() -> None:
        await asyncio.gather(wait(86_400.0), wait(1e-9), wait(0.1))

    began_s = time.process_time()
    loop.run_until_complete(both())
    assert order == [(1e-9, 1), (0.1, 100_000_000), (86_400.0, 86_400_000_000_000)]
    assert time.process_time() - began_s < 3600  # it has not waited for it


def test_who_waits_for_what_never_comes_is_named(loop: VirtualLoop) -> None:
    async def waits_in_vain() -> None:
        await asyncio.sleep(1.5)
        await loop.create_future()

    with pytest.raises(NothingHappensError, match=r"at 1\.5\d* s .*waits_in_vain:\d+"):
        loop.run_until_complete(waits_in_vain())


def test_a_run_has_a_limit_of_virtual_time() -> None:
    async def goes_on_for_ever() -> None:
        while True:
            await asyncio.sleep(1.0)

    with VirtualLoop(native.Network(1), limit_s=100.0) as loop:
        with pytest.raises(VirtualTimeError, match=r"100 s .*goes_on_for_ever"):
            loop.run_until_complete(goes_on_for_ever())
        assert loop.time() == 100.0


def test_a_task_that_asks_without_waiting_is_found(
    loop: VirtualLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ina.sim.loop._MAX_TURNS", 1000)

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(VirtualTimeError, match=r"no time has passed.*spins"):
        loop.run_until_complete(spins())


@pytest.mark.parametrize("began_s", [0.0, 0.1, 12345.6789, 1e5])
def test_the_rest_of_a_nanosecond_passes(loop: VirtualLoop, began_s: float) -> None:
    async def waits() -> None:
        await asyncio.sleep(began_s)
        end_s = loop.time() + 0.1234567891234
        while (left_s := end_s - loop.time()) > 0:
            await asyncio.wait([loop.create_future()], timeout=left_s)

    loop.run_until_complete(waits())


def test_all_tasks_of_a_process_die_with_it(loop: VirtualLoop) -> None:
    process = Process("p")
    done: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(10.0)
            done.append("child")
        finally:
            try:
                process.check()
                done.append("an effect after death")
            except Killed:
                done.append("unwound")

    async def parent() -> None:
        first = asyncio.ensure_future(child())  # its process follows from here
        await asyncio.sleep(1.0)
        process.kill()
        assert not first.done()
        process.check()

    async def outside() -> None:
        task = process.spawn(parent())
        await asyncio.wait([task])
        await asyncio.sleep(20.0)
        assert isinstance(task.exception(), Killed)

    loop.run_until_complete(outside())
    assert done == ["unwound"]


def test_the_dead_begin_nothing(loop: VirtualLoop) -> None:
    process = Process("p")

    async def begin() -> None:
        process.kill()
        await asyncio.ensure_future(asyncio.sleep(0))

    async def outside() -> None:
        task = process.spawn(begin())
        await asyncio.wait([task])
        assert isinstance(task.exception(), Killed)

    loop.run_until_complete(outside())


def test_a_stopped_process_goes_on_later(loop: VirtualLoop) -> None:
    process = Process("p")

    async def outside() -> None:
        await process.running()
        process.stop()
        loop.call_later(5.0, process.go_on)
        await process.running()
        assert loop.time() == 5.0

    loop.run_until_complete(outside())
