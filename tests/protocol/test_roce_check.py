"""Modes `roce` and `transparent` keep their promises in every interleaving of small cases; seeded
faults break them.

A row of the cases has how many states there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ina.protocol.codec import Header
from ina.protocol.slot_model import Contribution, Outcome, Slot
from ina.protocol.switch_model import Departure, ModelJob, SwitchModel
from tests.protocol import ring_check
from tests.protocol.ring_check import RingSystem
from tests.protocol.roce_slots import SentJob
from tests.protocol.search import Model, Violation, search
from tests.protocol.slot_faults import NeverReplays, NoBitmap, OlderCounts, OlderTakesOver
from tests.protocol.switch_faults import ReplaysToAll
from tests.protocol.uc_check import UcSystem
from tests.selection import LONG

System = Model[Any]


def cases() -> Iterator[tuple[str, System, int]]:
    two, three = SentJob(2, 4), SentJob(3, 3)
    yield "roce, 2 workers", UcSystem(two), 31
    yield "roce, 3 workers", UcSystem(three), 67
    yield "roce, a window of 2", UcSystem(SentJob(2, 4, window=2)), 225
    six = SentJob(2, 6, window=2)
    yield "roce, messages of 2", UcSystem(six, segments=2), 436
    yield "roce, messages of 2, numbers wrap", UcSystem(six, segments=2, psns=4), 436
    like_rxe = UcSystem(six, segments=2, psns=4, is_like_rxe=True)
    yield "roce, messages of 2, like rxe", like_rxe, 436
    of_three = UcSystem(SentJob(3, 4, window=2), segments=2, is_like_rxe=True)
    yield "roce, 3 workers, messages of 2, like rxe", of_three, 1453
    yield "ring of 2", RingSystem(two), 77
    yield "ring of 3", RingSystem(three), 241
    yield "ring of 2, a window of 2", RingSystem(SentJob(2, 4, window=2)), 506
    if LONG:
        yield "ring of 3, a window of 2", RingSystem(SentJob(3, 4, window=2)), 6428
    yield "ring, all by their own sums", RingSystem(three, credit=ring_check.own_sums), 2008
    by_acknowledgements = RingSystem(three, credit=ring_check.acknowledgements)
    yield "ring, all by acknowledgements", by_acknowledgements, 301
    yield "ring, the switch reboots twice", RingSystem(SentJob(2, 3), reboots=2), 1233


@pytest.mark.parametrize(
    ("system", "states"),
    [pytest.param(system, states, id=name) for name, system, states in cases()],
)
def test_promises_hold(system: System, states: int) -> None:
    assert len(search(system).states) == states


class PassesDuplicates(SwitchModel):
    """A repeat of what is summed goes on as it came: one worker's part."""

    def contribute(
        self, job: ModelJob, header: Header, values: tuple[int, ...], congested: bool = False
    ) -> list[Departure]:
        self.came = values
        return super().contribute(job, header, values, congested)

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for departure in super()._distribute(outcome, job, slot, header):
            values = self.came if outcome is Outcome.REPLAY else departure.values
            yield Departure(departure.to, departure.header, values)


class AnswersOlder(Slot):
    """What is older than the slot's owner is answered with what is there."""

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        outcome = super().contribute(part, all_bits)
        is_whole = self.bitmap == all_bits
        return Outcome.REPLAY if outcome is Outcome.STALE and is_whole else outcome


def two(**faults: object) -> SentJob:
    return SentJob(2, 4, **faults)  # type: ignore[arg-type]


def messages(**faults: bool) -> UcSystem:
    """Of two packets, whose numbers are soon the same again."""
    return UcSystem(SentJob(2, 6, window=2), segments=2, psns=2, **faults)


FAULTS: dict[str, tuple[System, str]] = {
    "roce: one version": (UcSystem(two(versions=1)), "nobody gets on"),
    "roce: no bitmap": (UcSystem(two(slot_type=NoBitmap)), "chunk . is"),
    "roce: tags not compared": (UcSystem(two(slot_type=OlderCounts)), "chunk . is"),
    "roce: results are written": (UcSystem(two(), writes=True), "chunk . is"),
    "roce: the first header is the message's": (
        messages(first_speaks_for_all=True),
        "chunk . is",
    ),
    "roce: all numbers are 0": (messages(has_psns=False), "nobody gets on"),
    "ring: one version": (RingSystem(two(versions=1)), "nobody gets on"),
    "ring: no bitmap": (RingSystem(two(slot_type=NoBitmap)), "takes"),
    "ring: tags not compared": (RingSystem(two(slot_type=OlderCounts)), "takes"),
    "ring: duplicates pass as they are": (RingSystem(two(switch_type=PassesDuplicates)), "takes"),
    "ring: no credit": (RingSystem(two(), credit=ring_check.no_credit), "nobody gets on"),
    "ring: an empty switch forwards": (
        RingSystem(SentJob(2, 2), reboots=1, forwards_when_empty=True),
        "takes",
    ),
    "ring: numbers by counting": (RingSystem(SentJob(2, 4, 2), counts_psns=True), "takes"),
    # And beyond those that the modes were designed by:
    "roce: no replay": (UcSystem(two(slot_type=NeverReplays)), "nobody gets on"),
    "ring: no replay": (RingSystem(two(slot_type=NeverReplays)), "nobody gets on"),
    "ring: late copies take slots over": (RingSystem(two(slot_type=OlderTakesOver)), "nobody"),
    "ring: credit by whichever comes first": (
        RingSystem(two(), credit=ring_check.either),
        "nobody gets on",
    ),
    "ring: so in a ring of 3": (
        RingSystem(SentJob(3, 3), credit=ring_check.either),
        "nobody gets on",
    ),
}


@pytest.mark.parametrize(("system", "broken"), FAULTS.values(), ids=FAULTS)
def test_seeded_faults_are_found(system: System, broken: str) -> None:
    with pytest.raises(Violation, match=broken):
        search(system)


@pytest.mark.parametrize(
    ("fault", "states"), [(two(switch_type=ReplaysToAll), 77), (two(slot_type=AnswersOlder), 77)]
)
def test_what_an_adapter_does_not_take_does_no_harm(fault: SentJob, states: int) -> None:
    """Its number is one that the receiver has had, so it drops what nobody has asked for."""
    assert len(search(RingSystem(fault)).states) >= states
