"""Switches that break the rules, of a tree or alone, each in one way: the searches find out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ina.protocol.codec import Header
from ina.protocol.slot_model import Outcome, Slot
from ina.protocol.spec import DropReason, Kind
from ina.protocol.switch_model import Attachment, Departure, Dropped, ModelJob, SwitchModel


class ReplaysToAll(SwitchModel):
    """A repeat is answered as if it had completed the round."""

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        to_all = Outcome.RESULT if outcome is Outcome.REPLAY else outcome
        return super()._distribute(to_all, job, slot, header)


class AdmitsAnyEpoch(SwitchModel):
    """A contribution's epoch is not compared with the job's."""

    kind: ClassVar[Kind] = Kind.CONTRIBUTION

    def admit(self, sender: Attachment, header: Header) -> ModelJob:
        job = self.jobs[header.job]
        if header.kind is self.kind and self._is_neighbour(job, sender, header):
            return job
        return super().admit(sender, header)


class PassesOldResults(AdmitsAnyEpoch):
    """A result's epoch is not looked at."""

    kind = Kind.RESULT


class AdmitsAnySender(SwitchModel):
    """A contribution's port and address are not compared with the worker's."""

    def admit(self, sender: Attachment, header: Header) -> ModelJob:
        if header.kind is Kind.CONTRIBUTION and header.job in self.jobs:
            workers = self.jobs[header.job].workers
            if header.worker >= len(workers):
                raise Dropped(DropReason.MEMBER)
            sender = workers[header.worker]
        return super().admit(sender, header)
