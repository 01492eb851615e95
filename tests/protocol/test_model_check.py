"""Promises 1 to 3 hold in every interleaving of small cases; seeded bugs break them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from ina.protocol.codec import Header
from ina.protocol.slot_model import CHECK_MODULUS, DIGEST_MODULUS, Contribution, Outcome, Slot
from ina.protocol.spec import ALL_WORKERS
from ina.protocol.switch_model import Departure, ModelJob, SwitchModel
from tests.protocol.pool_check import System
from tests.protocol.search import Violation, search
from tests.protocol.slot_faults import (
    NeverReplays,
    NoBitmap,
    OlderCounts,
    OlderTakesOver,
    ReplaysOpenRound,
)
from tests.protocol.switch_faults import AdmitsAnyEpoch, AdmitsAnySender, ReplaysToAll


@pytest.mark.parametrize(
    ("system", "at_least"),
    [
        pytest.param(System(workers=2, chunks=6), 40, id="2 workers, 3 rounds a slot"),
        pytest.param(System(workers=3, chunks=6), 100, id="3 workers, 3 rounds a slot"),
        pytest.param(System(workers=4, chunks=4), 250, id="4 workers, 2 rounds a slot"),
        pytest.param(System(workers=2, chunks=4, restart=True), 600, id="2 workers, restart"),
        pytest.param(System(workers=3, chunks=4, restart=True), 3000, id="3 workers, restart"),
        pytest.param(System(3, 6, listening=3), 100, id="3 workers, who share results"),
        pytest.param(
            System(3, 4, restart=True, listening=2), 3000, id="3 workers, two share, restart"
        ),
        pytest.param(System(2, 6, forger=True), 70, id="2 workers, a forger"),
        pytest.param(
            System(3, 3, restart=True, forger=True), 1000, id="3 workers, forger, restart"
        ),
    ],
)
def test_promises_hold(system: System, at_least: int) -> None:
    assert len(search(system).states) >= at_least, "the search did not go where it should"


class AddsWhatIsDropped(Slot):
    """A digest or a check is added though the values are not."""

    where: ClassVar[Outcome]
    what: ClassVar[str]

    def contribute(self, part: Contribution, all_bits: int) -> Outcome:
        outcome = super().contribute(part, all_bits)
        if outcome is self.where:
            whole = getattr(self, self.what) + getattr(part, self.what)
            setattr(self, self.what, whole % _MODULUS[self.what])
        return outcome


_MODULUS = {"digest": DIGEST_MODULUS, "check": CHECK_MODULUS}


class RepeatsAddTheirDigest(AddsWhatIsDropped):
    """A repeated contribution's digest is added once more."""

    where, what = Outcome.DUPLICATE, "digest"


class OlderAddTheirDigest(AddsWhatIsDropped):
    """The digest of a late copy is added, though its values are not."""

    where, what = Outcome.STALE, "digest"


class RepeatsAddTheirCheck(AddsWhatIsDropped):
    """A repeated contribution's check is added once more."""

    where, what = Outcome.DUPLICATE, "check"


class OlderAddTheirCheck(AddsWhatIsDropped):
    """The check of a late copy is added, though its values are not."""

    where, what = Outcome.STALE, "check"


class ReplaysToTheListeners(SwitchModel):
    """A replay goes to the shared address, in the name of all."""

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        to_all = Outcome.RESULT if outcome is Outcome.REPLAY else outcome
        for departure in super()._distribute(to_all, job, slot, header):
            if outcome is not Outcome.REPLAY or departure.header.worker == ALL_WORKERS:
                yield departure


@pytest.mark.parametrize(
    ("system", "broken"),
    [
        pytest.param(System(2, 4, slot_type=OlderCounts), "holds", id="no tag check"),
        pytest.param(System(2, 4, slot_type=OlderTakesOver), "to all twice", id="no order of tags"),
        pytest.param(System(2, 4, slot_count=1), "no progress", id="one version"),
        pytest.param(System(2, 4, slot_type=NoBitmap), "holds", id="no bitmap"),
        pytest.param(System(2, 4, slot_type=ReplaysOpenRound), "holds", id="replay of open round"),
        pytest.param(System(2, 4, slot_type=NeverReplays), "no progress", id="no replay"),
        pytest.param(
            System(2, 4, slot_type=RepeatsAddTheirDigest), "digest", id="repeats add digests"
        ),
        pytest.param(System(2, 4, slot_type=OlderAddTheirDigest), "digest", id="late digests"),
        pytest.param(
            System(2, 4, slot_type=RepeatsAddTheirCheck), "does not verify", id="repeats add checks"
        ),
        pytest.param(
            System(2, 4, slot_type=OlderAddTheirCheck), "does not verify", id="late checks"
        ),
        pytest.param(
            System(2, 4, forger=True, worker_verifies=False), "holds", id="forger, unverified"
        ),
        pytest.param(System(2, 4, switch_type=ReplaysToAll), "to all twice", id="replay to all"),
        pytest.param(
            System(3, 3, listening=2, slot_type=NeverReplays), "no progress", id="no shared replay"
        ),
        pytest.param(
            System(3, 3, listening=2, switch_type=ReplaysToTheListeners),
            "no progress",
            id="shared replay, one does not listen",
        ),
        pytest.param(
            System(2, 3, restart=True, switch_type=AdmitsAnyEpoch), "holds", id="any epoch"
        ),
        pytest.param(
            System(2, 3, restart=True, worker_checks_epoch=False), "took a result", id="old result"
        ),
        pytest.param(System(2, 4, switch_type=AdmitsAnySender), "holds", id="any sender"),
    ],
)
def test_seeded_bugs_are_found(system: System, broken: str) -> None:
    with pytest.raises(Violation, match=broken) as found:
        search(system)
    assert "arrives" in str(found.value), "the trace is missing"
