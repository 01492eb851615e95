"""A reference switch whose jobs verify their sums, and whose slots may lose a bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.host import Ticket
from ina.protocol.codec import Header
from ina.protocol.slot_model import Outcome, Slot
from ina.protocol.switch_model import Departure, ModelJob, SwitchModel
from ina.protocol.verify import Verify
from tests.worlds.fakes.udp_model import UdpModel

KEY = bytes(range(16))


class Forgetful(SwitchModel):
    """Slots lose a bit of value 3, once they are told to."""

    damages = False

    def _distribute(
        self, outcome: Outcome, job: ModelJob, slot: Slot, header: Header
    ) -> Iterator[Departure]:
        for one in super()._distribute(outcome, job, slot, header):
            if self.damages and one.values:
                values = (*one.values[:3], one.values[3] ^ 64, *one.values[4:])
                yield replace(one, values=values)
            else:
                yield one


class Switch(UdpModel):
    """Its jobs verify their sums."""

    verify: Verify = "keyed"

    def __init__(self, **options: float) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.model = self.forgetful = Forgetful(self.slots, self.values)

    def __enter__(self) -> Switch:
        return self

    def ticket(self, job: int, epoch: int, rank: int, count: int) -> Ticket:
        whole = super().ticket(job, epoch, rank, count)
        return replace(whole, verify=self.verify, check_key=KEY if self.verify == "keyed" else b"")
