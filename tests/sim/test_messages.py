"""How control messages travel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest

from ina.extension import sim as native
from ina.sim.errors import ScenarioError
from ina.sim.loop import VirtualLoop
from ina.sim.messages import ControlLog, Path, Travel, Wire


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    with VirtualLoop(native.Network(1)) as loop:
        yield loop


def run(loop: VirtualLoop, for_s: float) -> None:
    async def wait() -> None:
        await asyncio.sleep(for_s)

    loop.run_until_complete(wait())


@pytest.mark.parametrize("travel", [Travel(), Travel(0.0, 0.0), Travel(0.0, 1.0)])
def test_messages_of_a_connection_keep_their_order(loop: VirtualLoop, travel: Travel) -> None:
    came: list[int] = []
    wire = Wire(Path("a-b", 1, ControlLog(loop), travel), ">")
    for number in range(100):
        wire.send(f"{number}", partial(came.append, number))
    wire.end("all", lambda: came.append(100))
    run(loop, 2.0)
    assert came == list(range(101))


def test_what_is_lost_is_told_and_an_end_is_always_heard(loop: VirtualLoop) -> None:
    came: list[str] = []
    log = ControlLog(loop)
    wire = Wire(Path("a-b", 1, log, Travel(loss=0.5)), ">")
    for _ in range(100):
        wire.send("x", lambda: came.append("arrives"), lost=lambda: came.append("lost"))
    wire.end("all", lambda: came.append("end"))
    run(loop, 1.0)
    assert len(came) == 101
    assert 20 < came.count("lost") < 80
    assert came[-1] == "end"
    assert len(log.lines) == 101


def test_a_cut_loses_what_is_under_way_and_holds_ends_back(loop: VirtualLoop) -> None:
    came: list[str] = []
    path = Path("a-b", 1, ControlLog(loop))
    wire = Wire(path, ">")
    wire.send("x", lambda: came.append("x"))
    wire.end("all", lambda: came.append("end"))
    path.cut()
    run(loop, 10.0)
    assert came == []
    path.mend()
    run(loop, 1.0)
    assert came == ["end"]


def test_a_path_s_chance_is_its_own(loop: VirtualLoop) -> None:
    log = ControlLog(loop)
    first = [Path("a-b", 1, log).delay_s() for _ in range(2)]
    assert first[0] == first[1]
    assert Path("a-c", 1, log).delay_s() != first[0]
    assert Path("a-b", 2, log).delay_s() != first[0]


@pytest.mark.parametrize("wrong", [{"least_s": 2.0, "most_s": 1.0}, {"loss": 1.0}, {"least_s": -1}])
def test_how_messages_cannot_travel_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ScenarioError):
        Travel(**wrong)
