"""The ranks tell each other what they have, and hand on what others lack.

:mod:`ina.host.recovery` says why that is enough, and computes the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from ina.errors import InaError
from ina.host.frozen import Frozen
from ina.host.recovery import Export, Plan, plan
from ina.torch.errors import FallbackError
from ina.torch.fallback.peers import Peers


class _Said(msgspec.Struct):
    """What one rank tells the others."""

    export: Export | None = None
    error: str = ""  # why it cannot take part
    returns: bool = False


# Made here: msgspec crashes where two threads decode the first of a type at once (two groups do).
_DECODER = msgspec.msgpack.Decoder(_Said)


@dataclass(frozen=True)
class Agreed:
    """The same on all ranks."""

    steps: Plan
    newest: int
    """Operations that some rank has submitted."""
    returns: bool
    """Whether all want to go back to the network."""


def agree(frozen: Frozen | InaError, peers: Peers, *, returns: bool = False) -> Agreed:
    """What each rank has to do; the same on all of them, which all call this.

    ``frozen``: this rank's session, or why it could not be frozen. ``returns``: whether this one
    wants to go back to the network. Raises, on every rank,
    :class:`FallbackError` if one cannot take part and :class:`~ina.host.errors.RecoveryError` if
    what they have does not fit together; and what ``peers`` raises.
    """
    mine = _Said(error=str(frozen)) if isinstance(frozen, InaError) else _Said(frozen.export)
    mine.returns = returns
    exports = []
    for rank, message in enumerate(peers.gather(msgspec.msgpack.encode(mine))):
        said = _DECODER.decode(message)
        if said.export is None:
            raise FallbackError(f"rank {rank} cannot go on: {said.error}")
        exports.append(said.export)
        returns &= said.returns
    return Agreed(plan(exports), max(one.submitted for one in exports), returns)


def hand_on(frozen: Frozen, steps: Plan, peers: Peers) -> int:
    """Give each rank the results that it lacks; how many this one was given.

    All ranks call it; raises like :func:`agree`.
    """
    rank = frozen.export.rank
    results = [
        np.frombuffer(frozen.lane_data(transfer), np.uint8) if transfer.supplier == rank else None
        for transfer in steps.transfers
    ]
    sizes = _sizes(results, peers)
    parcels = [
        np.zeros(size, np.uint8) if result is None else result
        for size, result in zip(sizes, results, strict=True)
    ]
    if not parcels and not steps.again:
        return 0
    united = []
    if parcels:
        united = np.split(peers.unite(np.concatenate(parcels)), np.cumsum(sizes)[:-1])
    sums: list[NDArray[np.int32]] = []
    if steps.again:
        own = np.stack([frozen.own_part(again) for again in steps.again])
        sums = list(peers.add(own))
    taken, problem = 0, ""
    for transfer, data in zip(steps.transfers, united, strict=True):
        if rank in transfer.receivers and not problem:
            try:
                frozen.put(transfer, data.tobytes())
                taken += 1
            except InaError as error:  # the session checks that it waits for just this
                problem = str(error)
    for again, words in zip(steps.again, sums, strict=True):
        if rank in again.receivers and not problem:
            try:
                frozen.put_sum(again, words)
                taken += 1
            except InaError as error:
                problem = str(error)
    for other, message in enumerate(peers.gather(problem.encode())):
        if message:
            raise FallbackError(f"rank {other} could not take a result: {message.decode()}")
    return taken


def _sizes(results: list[NDArray[np.uint8] | None], peers: Peers) -> list[int]:
    """Bytes of each result, as its supplier says; in the order of the transfers."""
    mine = [0 if result is None else result.size for result in results]
    said = [
        msgspec.msgpack.decode(one, type=list[int])
        for one in peers.gather(msgspec.msgpack.encode(mine))
    ]
    return [max(of_one) for of_one in zip(*said, strict=True)]
