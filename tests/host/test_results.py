"""Which results a worker accepts: everything else is counted and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina._native.host import VerifyMode, WorkerCore
from ina.protocol.codec import Header, decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import Flag, Kind
from tests.worlds.virtual.cores import result_of, worker_config

SLOTS, VALUES = 8, 4
DATA = np.arange(64, dtype=np.int32)


class Worker:
    def __init__(self, elems: int = VALUES, verify: VerifyMode = VerifyMode.OFF) -> None:
        self.out = np.full(64, -1, np.int32)
        self.core = WorkerCore(worker_config(1, 2, SLOTS, VALUES, verify=verify))
        self.core.submit(1, DATA.ctypes.data, self.out.ctypes.data, Collective(0, elems), 0)
        self.sent = [decode(packet)[0] for packet in self.core.poll_transmit(0)]

    def good(self, index: int = 0) -> Header:
        return result_of(self.sent[index])

    def receive(self, header: Header, fill: int = 9) -> None:
        self.core.on_result(encode(header, np.full(header.value_count, fill, np.int32)), 1000)

    def untouched(self) -> bool:
        return bool((self.out == -1).all()) and self.core.take_completions() == []


def test_the_matching_result_is_accepted() -> None:
    worker = Worker()
    worker.receive(worker.good())
    assert worker.core.take_completions() == [1]
    assert worker.out[:5].tolist() == [9, 9, 9, 9, -1]


@pytest.mark.parametrize(
    ("counter", "change"),
    [
        ("malformed", lambda h: replace(h, kind=Kind.CONTRIBUTION)),
        ("malformed", lambda h: replace(h, kind=Kind.REFUSAL)),
        ("foreign", lambda h: replace(h, job=h.job + 1)),
        ("foreign", lambda h: replace(h, epoch=h.epoch + 1)),
        ("foreign", lambda h: replace(h, worker=0)),
        ("mismatched", lambda h: replace(h, slot=h.slot + 1)),
        ("mismatched", lambda h: replace(h, contributors=0b01)),
        ("mismatched", lambda h: replace(h, contributors=0b111)),
        ("mismatched", lambda h: replace(h, value_type=1)),
        ("mismatched", lambda h: replace(h, value_count=0)),
        ("mismatched", lambda h: replace(h, value_count=VALUES + 1)),
        ("mismatched", lambda h: replace(h, exponent=3)),
        ("mismatched", lambda h: replace(h, seq=h.seq + SLOTS)),
        ("stale", lambda h: replace(h, seq=(h.seq - SLOTS) % 2**32)),
    ],
)
def test_any_other_result_is_counted_and_ignored(
    counter: str, change: Callable[[Header], Header]
) -> None:
    worker = Worker()
    worker.receive(change(worker.good()))
    assert getattr(worker.core.counters, counter) == 1
    assert worker.untouched()
    worker.receive(worker.good())
    assert worker.core.take_completions() == [1]


@pytest.mark.parametrize("next_exponent", [1, 31])
def test_an_exponent_that_no_worker_announces_is_refused(next_exponent: int) -> None:
    core = WorkerCore(worker_config(1, 2, SLOTS, VALUES))
    ones = np.ones(VALUES, np.float32)
    core.submit(1, ones.ctypes.data, ones.ctypes.data, Collective(1, VALUES), 0)
    header = decode(core.poll_transmit(0)[0])[0]
    assert (header.value_count, header.next_exponent) == (0, 128)
    result = replace(result_of(header), next_exponent=next_exponent)
    core.on_result(encode(result), 1000)
    assert core.counters.mismatched == 1
    core.on_result(encode(replace(result, next_exponent=200)), 1000)
    assert decode(core.poll_transmit(1000)[0])[0].exponent == 200


def test_integers_have_no_exponent_whatever_the_result_says() -> None:
    worker = Worker(5 * VALUES)  # the window is 4
    worker.receive(replace(worker.good(0), next_exponent=200))
    (packet,) = worker.core.poll_transmit(1000)
    assert decode(packet)[0].exponent == 0


def test_a_result_that_comes_twice_is_a_duplicate() -> None:
    worker = Worker(2 * VALUES)
    worker.receive(worker.good(0))
    worker.receive(worker.good(0), fill=8)
    assert worker.core.counters.duplicates == 1
    assert worker.out[:5].tolist() == [9, 9, 9, 9, -1]
    worker.receive(worker.good(1))
    assert worker.core.take_completions() == [1]


def test_truncated_and_overlong_packets_are_malformed() -> None:
    worker = Worker()
    packet = encode(worker.good(), np.zeros(VALUES, np.int32))
    for wrong in (b"", packet[:23], packet[:-1], packet + b"\0", b"\x12" + packet[1:]):
        worker.core.on_result(wrong, 1000)
    assert worker.core.counters.malformed == 5
    assert worker.untouched()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64))
def test_random_bytes_change_nothing(payload: bytes) -> None:
    worker = Worker()
    worker.core.on_result(payload, 1000)
    assert worker.untouched()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 23), st.integers(1, 255))
def test_a_changed_header_byte_never_yields_a_wrong_place(index: int, mask: int) -> None:
    """A byte that the worker cannot check (flags, next exponent ...) does no harm either."""
    worker = Worker()
    packet = bytearray(encode(worker.good(), np.full(VALUES, 9, np.int32)))
    packet[index] ^= mask
    worker.core.on_result(bytes(packet), 1000)
    assert worker.out[:VALUES].tolist() in ([9] * VALUES, [-1] * VALUES)
    assert (worker.out[VALUES:] == -1).all()


def test_who_has_stopped_for_corrupted_sums_takes_no_more() -> None:
    """Results of one batch come after those that ended the job."""
    worker = Worker(2 * VALUES, VerifyMode.ACCIDENTS)
    while worker.core.corruption is None:
        worker.receive(worker.good(0))
    assert worker.core.corruption.results == worker.core.counters.corrupted > 1
    worker.receive(worker.good(1))  # it fails its check, too
    assert worker.core.corruption is not None
    assert worker.core.next_deadline_ns(2000) is None
    assert worker.untouched()


def test_the_ecn_mark_is_counted_from_header_and_from_ip() -> None:
    worker = Worker(2 * VALUES)
    worker.receive(replace(worker.good(0), flags=Flag.ECN))
    packet = encode(worker.good(1), np.zeros(VALUES, np.int32))
    worker.core.on_result(packet, 1000, ip_marked=True)
    assert worker.core.counters.ecn_marked == 2


@pytest.mark.parametrize(
    ("rank", "world", "slots", "values"),
    [(0, 0, 8, 4), (0, 33, 8, 4), (2, 2, 8, 4), (-1, 2, 8, 4), (0, 2, 1, 4), (0, 2, 8, 0)],
)
def test_the_configuration_is_checked(rank: int, world: int, slots: int, values: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        WorkerCore(worker_config(rank, world, slots, values))
