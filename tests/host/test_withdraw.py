"""A core whose tensors another one takes over, sent or not: what is before them goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ina._native.host import WorkerCore
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import Kind
from tests.worlds.virtual.cores import Array, worker_config

VALUES = 8


def core_of(slots: int = 8, keep_results: bool = False) -> WorkerCore:
    return WorkerCore(worker_config(0, 1, slots, VALUES, keep_results=keep_results))


def submit(core: WorkerCore, number: int, array: Array, value_type: int = 0) -> None:
    core.submit(
        number, array.ctypes.data, array.ctypes.data, Collective(value_type, array.size), number
    )


def answer(core: WorkerCore, packets: list[bytes], now_ns: int) -> None:
    """As a switch with one worker does."""
    for packet in packets:
        header, values = decode(packet)
        core.on_result(encode(replace(header, kind=Kind.RESULT), values), now_ns)


def test_what_was_sent_of_it_is_waited_for_no_more() -> None:
    core = core_of()  # four lanes
    before, after = np.arange(VALUES * 2, dtype=np.int32), np.arange(VALUES * 9, dtype=np.int32)
    submit(core, 1, before)
    submit(core, 2, after)
    submit(core, 3, after)
    sent = core.poll_transmit(10)
    assert core.in_flight == len(sent) == 4
    core.withdraw_from(2)
    assert core.in_flight == 2
    assert [pending.operation for pending in core.pending()] == [1]
    answer(core, sent[2:], 20)  # nobody can have it; if it came, it would count for nothing
    assert core.counters.chunks_done == 0
    answer(core, sent[:2], 30)
    assert core.take_completions() == [1]
    assert core.poll_transmit(40) == []
    assert core.next_deadline_ns(50) is None
    assert core.pending() == []


def test_what_waits_behind_it_in_a_lane_goes_with_it() -> None:
    core = core_of(2)  # one lane
    arrays = [np.arange(VALUES * chunks, dtype=np.int32) for chunks in (3, 1, 2)]
    for number, array in enumerate(arrays, start=1):
        submit(core, number, array)
    core.withdraw_from(2)
    chunks = 0
    while packets := core.poll_transmit(chunks):
        answer(core, packets, chunks)
        chunks += len(packets)
    assert chunks == 3
    assert core.take_completions() == [1]


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_rounds_for_exponents_and_guesses_are_taken_back(rounds: int) -> None:
    """Of small floats the first goes without a guess, later ones with one."""
    core, array = core_of(2), np.ones(4, np.float32)
    for number in range(1, rounds + 1):
        submit(core, number, array, 1)
        while packets := core.poll_transmit(number):
            answer(core, packets, number)
    assert core.take_completions() == list(range(1, rounds + 1))
    submit(core, 10, array, 1)
    submit(core, 11, array, 1)
    (packet,) = core.poll_transmit(20)
    assert (decode(packet)[0].value_count > 0) == (rounds > 0)
    core.withdraw_from(10)
    assert core.in_flight == 0
    assert core.poll_transmit(10**9) == []
    assert core.next_deadline_ns(10**9) is None


def test_what_has_results_cannot_be_taken_back() -> None:
    core = core_of()
    submit(core, 1, np.arange(VALUES * 9, dtype=np.int32))
    answer(core, core.poll_transmit(1), 2)
    with pytest.raises(RuntimeError, match="tensor 1 has results already"):
        core.withdraw_from(1)
    core.withdraw_from(2)
    assert [pending.operation for pending in core.pending()] == [1]
