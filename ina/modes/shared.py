"""Mode ``shared``: an aggregator above a job's switches, and slots shared with other jobs.

A job has slots of its own at its aggregator alone, where all its sums are made whole; on the
switches below it may claim slots of an arc, each for as long as a sum takes (docs/shared_slots.md).
"""

from __future__ import annotations

from ina.modes.mode import Mode
from ina.p4 import names
from ina.p4.catalogue import Capabilities
from ina.protocol.slot_model import STICKY_FLAGS


class Shared(Mode):
    """See :class:`Mode` of each."""

    name = names.SHARED
    is_sized = False
    is_striped = False
    needs_aggregator = True
    switch_keys = ("shared_slots", "slot_age_us", "aggregator")
    gathers = STICKY_FLAGS

    def slots_shared(self, asked: int) -> int:
        """Half of the switch's, where it does not say."""
        return asked or names.SLOTS_TOTAL // 2

    def is_written_to(self, can: Capabilities) -> bool:
        """Not on chips: there are no owners to be told, and on Tofino 1 no lanes."""
        return can.evicts and can.has_lanes

    def runs_on(self, *, shares_slots: bool) -> bool:
        """Where there are some."""
        return shares_slots
