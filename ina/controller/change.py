"""How a job's mapping changes while the job runs, as a table of stages. Pure.

A job keeps its identity when its mapping changes (docs/resize.md): the other mapping is installed
beside the first, rank 0 says from which operation on it is used, and when every rank has all
results of the operations before, the former one goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from ina.trees.errors import JobRequestError
from ina.trees.mapping import Mapping


class Stage(Enum):
    """How far a change is; the value is what operators see."""

    INSTALLING = "installing"  # the new mapping's entries are being written; no worker knows of it
    ASKED = "asked"  # rank 0 is asked from which operation on it is used
    DECIDED = "decided"  # that is known; ranks are told, and finish what is before it
    CLEARING = "clearing"  # all have; the former mapping's entries are being removed
    OPENED = "opened"  # in place: they are gone, and ranks are told that they may begin
    OFF = "called off"  # the new mapping's entries are being removed
    OVER = "over"


class Step(Enum):
    """What moves a change from one stage to the next."""

    INSTALLED = "all its switches have the new mapping's entries"
    CALLED_OFF = "it cannot be, or rank 0 does not want it, or has not said in time"
    DECIDED = "rank 0 has said from which operation on"
    DONE = "every rank has all results of the operations before"
    OPENED = "the former entries are gone, and the slots are the new mapping's alone"
    REMOVED = "no switch has any of the other mapping's entries"
    SEEN = "every rank has heard that the slots are the new mapping's alone"


TRANSITIONS: dict[tuple[Stage, Step], Stage] = {
    (Stage.INSTALLING, Step.INSTALLED): Stage.ASKED,
    (Stage.INSTALLING, Step.CALLED_OFF): Stage.OFF,
    (Stage.ASKED, Step.CALLED_OFF): Stage.OFF,
    (Stage.ASKED, Step.DECIDED): Stage.DECIDED,
    (Stage.DECIDED, Step.DONE): Stage.CLEARING,
    (Stage.CLEARING, Step.REMOVED): Stage.OVER,
    (Stage.CLEARING, Step.OPENED): Stage.OPENED,
    (Stage.OPENED, Step.SEEN): Stage.OVER,
    (Stage.OFF, Step.REMOVED): Stage.OVER,
}
"""Every (stage, step) that can happen; any other is a bug in the controller."""


@dataclass(frozen=True)
class Word:
    """What a rank says of the mapping that its job changes to."""

    to_epoch: int = 0
    """Which mapping it means; 0: it just asks."""
    first_operation: int = 0
    """Of rank 0: S, operations from this number on are sent by it; 0: it says nothing of that."""
    declined: bool = False
    """It does not want it, or cannot."""
    done: bool = False
    """It has all results of operations before S."""
    reason: str = ""
    """Why it declines, for people."""


@dataclass(frozen=True)
class Terms:
    """On which a rank goes over to the new mapping."""

    first_operation: int
    """S; 0: not known yet."""
    waits: bool
    """Its slots are also the former one's: nothing is to be sent by it yet."""


@dataclass(eq=False)
class Change:
    """From one mapping to another."""

    other: Mapping
    """The new one; from CLEARING on the former: what is beside the one that the job has."""
    why: str
    """Who wants it, for people."""
    in_place: bool = False
    """Slots are both mappings': nobody begins by the new one before the former one is gone."""
    stage: Stage = Stage.INSTALLING
    first_operation: int = 0
    """S: operations from this number on are sent by the new mapping; 0: not known yet."""
    done: set[int] = field(default_factory=set)
    """Ranks that have all results of the operations before S. Not stored: they say it again."""
    since_s: float = 0.0
    """Monotonic clock of the controller: when it began, or was read from a store."""
    since_unix_s: float = 0.0
    asked: set[int] = field(default_factory=set)
    """Ranks that have asked what the new mapping is. Not stored: they ask again."""
    told: set[int] = field(default_factory=set)
    """Ranks that were answered that its slots are the new mapping's alone. Not stored, as the next:
    they ask again."""
    seen: set[int] = field(default_factory=set)
    """Ranks of which it is known that they have heard it."""

    def afresh(self, since_s: float) -> Change:
        """As a controller knows it that was started again: ranks say again how far they are."""
        return replace(self, since_s=since_s, done=set(), asked=set(), told=set(), seen=set())

    def on(self, step: Step) -> None:
        """Moves to the next stage."""
        self.stage = TRANSITIONS[self.stage, step]

    @property
    def is_undecided(self) -> bool:
        """Whether it can still be called off: no rank sends anything by the new mapping."""
        return self.stage in (Stage.INSTALLING, Stage.ASKED)

    @property
    def is_told(self) -> bool:
        """Whether workers are told of it."""
        return self.stage in (Stage.ASKED, Stage.DECIDED, Stage.CLEARING, Stage.OPENED)

    @property
    def has_turned(self) -> bool:
        """Whether the job has the new mapping already, so that the former one is the other."""
        return self.stage in (Stage.CLEARING, Stage.OPENED)

    @property
    def may_be_used(self) -> bool:
        """Whether a rank sends by the other mapping, or will if the change goes through."""
        return self.is_undecided or self.stage is Stage.DECIDED

    @property
    def has_both(self) -> bool:
        """Whether the other mapping's entries are to be on its switches, too."""
        return self.stage in (Stage.ASKED, Stage.DECIDED)

    def not_asked(self, here: Iterable[int]) -> list[int]:
        """Of the ranks that are there, all but 0 that have not asked."""
        return sorted(set(here) - self.asked - {0})

    def not_done(self, here: Iterable[int]) -> list[int]:
        """Of the ranks that are there, those that have not said that they are done."""
        return sorted(set(here) - self.done)

    def ask(self, rank: int, here: Iterable[int]) -> bool:
        """A rank of those that are there asks; returns whether rank 0 can be told only now."""
        if self.stage is not Stage.ASKED or rank in self.asked:
            return False
        self.asked.add(rank)
        return rank != 0 and 0 in self.asked and not self.not_asked(here)

    def is_news_for(self, rank: int) -> bool:
        """Whether the rank is to ask, as far as is known."""
        if self.stage is Stage.OPENED:
            return rank not in self.told
        return self.is_told

    def terms(self, rank: int, here: Iterable[int], *, knows: bool) -> Terms | None:
        """What a rank that asks is to know of the new mapping; None: nothing, or not yet.

        ``knows``: it asks about this one. Once all have gone over, who asks about none has ended
        the change for itself; and no answer is known to arrive before that.
        """
        if self.has_turned and not knows:
            if self.stage is Stage.OPENED:
                self.seen.add(rank)
            return None
        if self.stage is Stage.ASKED:
            # Rank 0's word binds all, so all must be there to hear it.
            return None if rank == 0 and self.not_asked(here) else Terms(0, self.in_place)
        if self.stage in (Stage.DECIDED, Stage.CLEARING):
            return Terms(self.first_operation, self.in_place)
        if self.stage is Stage.OPENED:
            self.told.add(rank)
            return Terms(self.first_operation, waits=False)
        return None

    def next_step(self, here: Iterable[int]) -> Step | None:
        """What no rank of those that are there is waited for any more; None: one is."""
        if self.stage is Stage.DECIDED and not self.not_done(here):
            return Step.DONE
        if self.stage is Stage.OPENED and not set(here) - self.seen:
            return Step.SEEN
        return None

    def decide(self, job: str, first_operation: int) -> bool:
        """Rank 0 has said S; returns whether that is news.

        Raises :class:`JobRequestError`: it has said another one before.
        """
        if self.stage is Stage.ASKED:
            self.first_operation = first_operation
            self.on(Step.DECIDED)
            return True
        if self.first_operation != first_operation:
            raise JobRequestError(
                f"job {job!r} rank 0: changes at operation {first_operation}: it has said"
                f" {self.first_operation} before"
            )
        return False

    def finish(self, job: str, rank: int) -> None:
        """A rank has all results of operations before S.

        Raises :class:`JobRequestError`: nobody can know yet which these are.
        """
        if not self.first_operation:
            raise JobRequestError(
                f"job {job!r} rank {rank}: is done with operations before one that is not known yet"
            )
        self.done.add(rank)
