"""A bit flips in a contribution to slots that jobs share: what it ends, it ends as what it is."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.errors import InaError
from ina.host import CorruptedSumError, Session, WorkerOptions
from ina.host.arrays import Array
from ina.host.handle import Handle
from ina.protocol.codec import Header, decode, encode
from ina.protocol.peer import Peer
from ina.protocol.spec import HEADER_BYTES
from tests.worlds.fakes.tap import Tap

WORKERS, VALUES, SLOTS, CHUNKS = 3, 64, 16, 64


class OneFlip:
    """Of one contribution with values, the first that is far enough from the start."""

    def __init__(self, field: str, bit: int) -> None:
        self.done = False
        self._field, self._bit = field, bit

    def __call__(self, from_worker: bool, packet: bytes) -> tuple[bytes, ...]:
        if self.done or not from_worker or len(packet) <= HEADER_BYTES:
            return (packet,)
        header, values = decode(packet)
        if header.seq < SLOTS or header.seq & SLOTS:
            return (packet,)
        self.done = True
        flipped = {self._field: getattr(header, self._field) ^ 1 << self._bit}
        return (encode(_replaced(header, flipped), values),)


def _replaced(header: Header, changes: dict[str, Any]) -> Header:
    for name, value in changes.items():
        object.__setattr__(header, name, value)
    return header


def _ends(flip: OneFlip, on_failure: Callable[[InaError], bool] | None) -> list[InaError | None]:
    taps: list[Tap] = []
    stack = ExitStack()

    def opened(switch: Peer, own_host: str | None = None) -> Any:
        taps.append(stack.enter_context(Tap(meddle=flip if not taps else None)))
        return taps[-1].open(switch, own_host)

    with stack:
        embedded = stack.enter_context(Embedded(values=VALUES, slots=SLOTS, mode="shared"))
        stack.enter_context(mock.patch("ina.host.udp.open_socket", opened))
        pool = stack.enter_context(ThreadPoolExecutor(WORKERS))

        def join(rank: int) -> Session:
            return Session.join(
                *(embedded.controller_addr, "flipped", rank, WORKERS),
                options=WorkerOptions(
                    verify="accidents",
                    op_timeout_s=20.0,
                    recoverable=on_failure is not None,
                    on_failure=on_failure,
                ),
            )

        sessions = list(pool.map(join, range(WORKERS)))
        for session in sessions:
            stack.callback(session.close)
        ones = np.ones(CHUNKS * VALUES, np.int32)
        handles = [session.all_reduce(ones, async_op=True) for session in sessions]
        found = [_error(handle) for handle in handles]
        assert flip.done
        return found


def _error(handle: Handle[Array]) -> InaError | None:
    try:
        assert (handle.wait(60) == WORKERS).all()
    except InaError as error:
        return error
    return None


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_contribution_that_is_early_by_a_flipped_bit(is_asked: bool) -> None:
    """Its number is that of the next round of its slot; there it stands for the worker's own.

    The digest of that round is as good as random then, as where ranks differ. ``is_asked``: whether
    somebody may take over.
    """
    asked: list[InaError] = []

    def does_not_take_over(error: InaError) -> bool:
        asked.append(error)
        return False

    flip = OneFlip("seq", SLOTS.bit_length() - 1)
    errors = _ends(flip, does_not_take_over if is_asked else None)
    assert [type(error) for error in errors] == [CorruptedSumError] * WORKERS
    assert all("is not of what all ranks have submitted alike" in str(error) for error in errors)
    assert [type(error) for error in asked] == [CorruptedSumError] * WORKERS * is_asked
