"""What ranks whose sessions are in one process do together."""

from __future__ import annotations

from functools import partial
from typing import Any

from numpy.typing import NDArray

from ina.host import Session
from ina.host.frozen import Frozen
from ina.host.recovery import Plan, plan
from ina.protocol.coding import Coding, values_per_word
from ina.protocol.collective import Reduction
from ina.testing import packed
from tests.worlds.recovering import finish, hand_on


def reduce_all(
    sessions: list[Session], parts: list[NDArray[Any]], op: str = "sum"
) -> list[NDArray[Any]]:
    handles = [
        session.all_reduce(part, op, async_op=True)
        for session, part in zip(sessions, parts, strict=True)
    ]
    return [handle.wait(60) for handle in handles]


def recover(frozen: list[Frozen]) -> Plan:
    """What two ranks do together, with NumPy as the other means."""
    found = plan([one.export for one in frozen])
    hand_on(found, frozen)
    for left in found.sums:
        op = "avg" if left.what.op == Reduction.AVERAGE else "sum"
        coding = Coding(32 // values_per_word(left.what.value_type))
        words = frozen[0].export.chunk_words
        finish(
            *(left.operation, left.undone, frozen),
            partial(packed.all_reduce, op=op, words=words, coding=coding),
        )
        for one in frozen:
            if left.operation in {pending.operation for pending in one.export.pending}:
                one.complete(left.operation)
    return found
