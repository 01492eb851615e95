"""Who has claimed which of the slots that jobs share, as it is in a switch's registers."""

from __future__ import annotations

from collections.abc import Iterator

from ina.p4 import names
from ina.protocol.shared_model import STAMP_MODULUS
from ina.sim.fabric import SimSwitch

_EPOCH = "PoolIngress.claims.slot_owner_epoch"
_STAMP = "PoolIngress.claims.slot_owner_stamp"


def claims(
    switch: SimSwitch, shared: int, *, now_us: int, within_us: int
) -> Iterator[tuple[int, int]]:
    """Slots and the epochs of their owners: of the last ``shared`` slots those that are claimed,
    and of which something was heard within that time."""
    if switch.pipeline is None:
        return
    for slot in range(names.SLOTS_TOTAL - shared, names.SLOTS_TOTAL):
        epoch = switch.pipeline.register(_EPOCH, slot)
        if epoch:
            unheard_us = (now_us - switch.pipeline.register(_STAMP, slot)) % STAMP_MODULUS
            if unheard_us < within_us:
                yield slot, epoch
