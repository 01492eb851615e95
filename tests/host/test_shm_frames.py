"""What a worker puts into shared memory stays whole until its result is there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ina._native.host import OperationState
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.hand_switch import VALUES, WINDOW, HandSwitch


@pytest.fixture
def switch() -> Iterator[HandSwitch]:
    made = HandSwitch()
    yield made
    made.close()


def test_a_packet_that_was_sent_twice_is_whole_until_it_is_answered(switch: HandSwitch) -> None:
    array = np.arange(3 * WINDOW * VALUES, dtype=np.int32)
    out = np.zeros_like(array)
    operation = switch.transport.submit(
        array.ctypes.data, out.ctypes.data, Collective(ValueType.INT32, array.size)
    )
    wait_until(lambda: len(switch.of(0)) >= 2, "sent again", 60.0)

    def assert_whole(seqs: range) -> None:
        for seq in seqs:
            for cell in switch.of(seq):
                _, values = switch.packet(cell)
                assert values.tolist() == array[seq * VALUES : (seq + 1) * VALUES].tolist()

    assert_whole(range(WINDOW))
    first = switch.of(0)
    for seq in range(WINDOW):
        switch.answer(switch.of(seq)[0])
    wait_until(lambda: all(switch.of(WINDOW + lane) for lane in range(WINDOW)), "next", 60.0)
    assert_whole(range(WINDOW, 2 * WINDOW))
    # The lane has one frame. A late copy of what it held says so, and the switch takes no values
    # from a copy of what it has answered.
    assert {cell.rest_at for cell in first} == {cell.rest_at for cell in switch.of(WINDOW)}
    assert all(switch.packet(cell)[0].seq == 0 for cell in first)
    for seq in range(WINDOW, 3 * WINDOW):
        wait_until(lambda: bool(switch.of(seq)), "sent", 60.0)  # noqa: B023
        switch.answer(switch.of(seq)[0])
    wait_until(lambda: operation.state == OperationState.DONE, "done", 60.0)
    assert (out == array).all()
