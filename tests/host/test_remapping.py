"""What a worker says to its controller while its mapping changes, answer by answer."""

from __future__ import annotations

import pytest

from ina.extension.congestion import Choice
from ina.extension.host import RtoLimits, WorkerConfig
from ina.host.calls import RemapWord
from ina.host.manner import Manner
from ina.host.remapping import Remapping
from ina.host.trees import TreePlace
from ina.protocol.peer import Peer
from ina.protocol.spec import path_of
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.tickets import direct_ticket, tree_message

TO, S = 8, 20


class Steps:
    """A transport that notes what it is told, and has all results at once."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def begin_remap(self, config: WorkerConfig, max_in_flight: int, congestion: Choice) -> None:
        self.told.append("begin")

    def reserve(self, news_ns: int) -> int:
        return S

    def cut_over(self, first: int, may_send: bool) -> None:
        self.told.append((first, may_send))

    def wait_cut(self, timeout_ns: int) -> bool:
        return True

    def end_remap(self) -> None:
        self.told.append("end")

    def cancel_remap(self) -> None:
        self.told.append("cancel")


def mapping(*, first: int = 0, waits: bool = False, epoch: int = TO) -> pb2.Mapping:
    place = TreePlace(1, Peer.at(("127.0.0.1", 4000)), 1, path_of([1]), 0b11, 0, 4)
    return pb2.Mapping(
        mode="pool",
        epoch=epoch, slots=8, window=4, first_operation=first, waits=waits,
        trees=[tree_message(place)],
    )  # fmt: skip


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def remapping(steps: Steps) -> Remapping:
    ticket = direct_ticket("j", 1, 7, 1, 2, 16, 64, "127.0.0.1", 4000)
    manner = Manner(1_000_000, RtoLimits(), False, None, Peer.at(("127.0.0.1", 4000)))
    return Remapping(ticket, manner, steps, lambda _: None)


DONE = RemapWord(TO, 0, True, "")


def test_beside_the_old_one_it_is_over_when_the_controller_says_so(
    remapping: Remapping, steps: Steps
) -> None:
    assert not remapping.on_answer(mapping(), 0.0)
    assert not remapping.on_answer(mapping(first=S), 0.0)
    assert remapping.word() == DONE
    assert not remapping.on_answer(mapping(first=S), 0.0)
    assert remapping.word() == DONE  # a controller that was started again does not know
    assert remapping.word(is_over=True) == RemapWord()
    assert not remapping.on_answer(None, 0.0)
    assert steps.told == ["begin", (S, True), "end"]
    assert remapping.epoch == 0


def test_in_place_it_says_at_once_that_it_has_heard_that_it_may_send(
    remapping: Remapping, steps: Steps
) -> None:
    assert not remapping.on_answer(mapping(first=S, waits=True), 0.0)
    for is_over in (False, True):  # the answer that let it send was lost
        assert remapping.word(is_over=is_over) == DONE
    assert not remapping.on_answer(mapping(first=S, waits=True), 0.0)
    assert remapping.on_answer(mapping(first=S), 0.0)
    assert remapping.word() == RemapWord()
    assert not remapping.on_answer(mapping(first=S), 0.0)  # of a controller that says no more
    assert remapping.word() == RemapWord()
    assert not remapping.on_answer(mapping(epoch=TO + 1), 0.0)  # the next one has begun
    assert steps.told == ["begin", (S, False), (S, False), (S, True), "end", "begin"]
    assert remapping.word() == RemapWord(TO + 1, 0, False, "")
