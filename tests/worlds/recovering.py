"""What ranks do together once their sessions are frozen; the exchange is a function call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ina.host.arrays import Array
from ina.host.chunks import Ranges
from ina.host.frozen import Frozen
from ina.host.recovery import Plan


def given(values: Array | None) -> Array:
    """What this rank has, or gets."""
    assert values is not None
    return values


def hand_on(found: Plan, frozen: Sequence[Frozen]) -> None:
    """All ranks get the newest results that some have."""
    for transfer in found.transfers:
        supplier = transfer.supplier
        data = b"" if supplier is None else frozen[supplier].lane_data(transfer)
        for rank in transfer.receivers:
            frozen[rank].put(transfer, data)
    for again in found.again:
        words = np.add.reduce([one.own_part(again) for one in frozen], dtype=np.int32)
        for rank in again.receivers:
            frozen[rank].put_sum(again, words)


def finish(
    operation: int,
    undone: Ranges,
    frozen: Sequence[Frozen],
    summed: Callable[[list[Array]], Array],
) -> None:
    """These chunks of an operation; if there are any, all ranks have it pending. ``summed``: of all
    ranks' parts."""
    if not undone:
        return
    for span in frozen[0].spans(operation, undone):
        parts = [one.inputs(operation, span) for one in frozen]
        there = [part.copy() for part in parts if part is not None]
        result = there[0] if len(there) == 1 < len(parts) else summed(there)
        for one in frozen:
            out = one.outputs(operation, span)
            if out is not None:
                out[:] = result
