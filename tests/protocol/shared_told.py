"""Whose slot was wanted: who must be told, who must not, and that nothing else depends on it.

A packet is handed to a slot twice, once as if another job had found that taken before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ina.protocol.codec import Header
from ina.protocol.slot_model import Outcome, Slot
from ina.protocol.spec import Flag, Kind
from ina.protocol.switch_model import ALONE, Departure
from tests.protocol.moves import SlotState
from tests.protocol.search import Violation
from tests.protocol.shared_tenants import Owned


class Found(NamedTuple):
    """The slot after a packet, what leaves, and what became of it; nothing: it was dropped."""

    slot: Slot
    departures: list[Departure]
    outcomes: set[Outcome]


def unwanted(header: Header) -> Header:
    """Without what the search does not tell apart."""
    return replace(header, flags=header.flags & ~Flag.WANTED)


def check_told(packet: Owned, before: SlotState, found: Found, wanted: Found) -> None:
    """``found``: of a slot that was as ``before``; ``wanted``: and that another job had wanted."""
    if _plain(found) != _plain(wanted):
        raise Violation(f"what another job wants changes {_plain(found)} to {_plain(wanted)}")
    outcomes, begins = found.outcomes, _begins(packet, Slot(*before), found.slot)
    if _is_told(found.slot) != (Outcome.COLLISION in outcomes):
        raise Violation(f"a slot is told of others, {_is_told(found.slot)}, after {outcomes}")
    if _is_told(wanted.slot) == begins:
        raise Violation(f"a slot that was told forgets it, {not begins}, after {outcomes}")
    if packet.header.kind is not Kind.CONTRIBUTION:
        return
    is_put_out = Outcome.EVICTED in outcomes
    is_of_slot = not (begins or outcomes & set(ALONE))
    for it, says in ((found, is_put_out), (wanted, is_put_out or is_of_slot)):
        for departure in it.departures:
            if bool(departure.header.flags & Flag.WANTED) != says:
                raise Violation(f"of others, that want a slot, it is told wrongly: {departure}")


def _is_told(slot: Slot) -> bool:
    return bool(slot.flags & Flag.WANTED)


def _begins(packet: Owned, before: Slot, after: Slot) -> bool:
    """Whether the packet is what the slot holds now, alone."""
    is_changed = (before.owner, before.bitmap) != (after.owner, after.bitmap)
    return is_changed and after.bitmap != 0 and after.digest == packet.header.digest


def _plain(found: Found) -> tuple[object, ...]:
    slot = replace(found.slot, flags=found.slot.flags & ~Flag.WANTED)
    leaving = [(it.to, unwanted(it.header), it.values) for it in found.departures]
    return slot, leaving, found.outcomes
