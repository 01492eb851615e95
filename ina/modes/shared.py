"""Mode ``shared``: an aggregator above a job's switches, and slots shared with other jobs.

A job has slots of its own at its aggregator alone, where all its sums are made whole; on the
switches below it may claim slots of an arc, each for as long as a sum takes (docs/shared_slots.md).
"""

from __future__ import annotations

from ina.modes import rows
from ina.modes.mode import Mode
from ina.modes.patience import Patience
from ina.modes.rows import Place
from ina.p4 import names
from ina.p4.catalogue import Capabilities
from ina.protocol.slot_model import STICKY_FLAGS
from ina.tables.values import Entry
from ina.trees.slots import lanes_of


class Shared(Mode):
    """See :class:`Mode` of each."""

    name = names.SHARED
    is_sized = False
    is_striped = False
    needs_aggregator = True
    switch_keys = ("shared_slots", "slot_age_us", "aggregator")
    gathers = STICKY_FLAGS
    shared_admissions = (names.ADMIT_SHARED_JOB,)

    def slots_shared(self, asked: int) -> int:
        """Half of the switch's, where it does not say."""
        return asked or names.SLOTS_TOTAL // 2

    def is_written_to(self, can: Capabilities) -> bool:
        """Not on chips: there are no owners to be told, and on Tofino 1 no lanes."""
        return can.evicts and can.has_lanes

    def runs_on(self, *, shares_slots: bool) -> bool:
        """Where there are some."""
        return shares_slots

    def admission(self, at: Place) -> Entry:
        """Below its aggregator a job claims slots of an arc."""
        if not at.node.is_shared:
            return super().admission(at)
        patience = Patience.of(at.priority, at.age_us)
        return rows.admission(
            at,
            names.ADMIT_SHARED_JOB,
            **at.above(),
            lane_mask=lanes_of(at.memory.slots) - 1,
            claimable=at.memory.reserved,
            age_us=patience.age_us,
            lead_us=patience.lead_us,
        )

    def member(self, at: Place, index: int) -> Entry:
        """Each packet of a switch that shares slots holds those that it names; that of a worker,
        or of a node on a host, its one bit alone."""
        below = at.node.nodes[max(0, index - len(at.node.ranks)) :]
        if index >= len(at.node.ranks) and at.part.tree[below[0]].is_shared:
            return rows.member(at, index, names.ADMIT_SET, worker_bits=at.bits[index])
        return super().member(at, index)

    def further(self, at: Place) -> tuple[Entry, ...]:
        """Where a sum of the job's goes that another job puts out of a slot that they share.

        Of several trees the switch knows no owners, which it does by their epochs, alike in all: a
        sum that loses its slot to another job is lost, and sent again.
        """
        if not at.node.is_shared or at.parent is None or not at.is_alone:
            return ()
        params = (
            ("job", at.part.number),
            ("job_index", at.part.number),
            ("full_bitmap", sum(at.bits)),
            ("parent_port", at.node.parent_port),
            ("own_worker", at.own_index),
            ("own_level", at.part.tree.level(at.node)),
        )
        return (Entry(names.OWNERS, (("epoch", at.part.epoch),), names.OWNER_IS, params),)
