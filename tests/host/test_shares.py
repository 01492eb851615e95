"""Workers that divide their lanes between cores: on the wire, and in the sums, nothing tells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ina._native.host import WorkerCore
from ina.protocol.codec import decode, encode
from ina.testing import numerics
from tests.host.network import MS, SECOND, Array, Link, Network, all_reduce, worker_config
from tests.host.test_worker_core import INT32, ROUGH, random_parts

DTYPES = (INT32, *numerics.FLOATS)
FLOAT = np.dtype(np.float32)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    shares=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4),
    slots=st.sampled_from([2, 4, 16, 33]),
    lengths=st.one_of(
        st.lists(st.integers(0, 200), min_size=1, max_size=6),
        st.lists(st.sampled_from([5, 5, 9]), min_size=9, max_size=25),  # of which some are guessed
    ),
    loss=st.floats(0, 0.3),
    spread_ns=st.integers(0, 5_000_000),
    late=st.floats(0, 0.3),
)
def test_results_are_those_of_one_share(
    seed: int,
    shares: list[int],
    slots: int,
    lengths: list[int],
    loss: float,
    spread_ns: int,
    late: float,
) -> None:
    """Tensors of all types under way at once, some in place, under any schedule of packets."""
    workers = len(shares)
    shares = [min(count, slots // 2) for count in shares]
    link = Link(loss, loss / 2, 1_000, 1_000 + spread_ns, late)
    network = Network(workers, slots=slots, values=8, link=link, seed=seed, shares=shares)
    kept, expected, outs = [], [], []
    for index, length in enumerate(lengths):
        dtype, op = DTYPES[(seed + index) % 4], ("sum", "avg")[index % 2]
        parts = random_parts(dtype, workers, length, seed + index)
        expected.append(numerics.all_reduce(parts, op, 8))
        outs.append([part if index % 3 else np.empty_like(part) for part in parts])
        kept.append(parts)
        for rank, part in enumerate(parts):
            network.submit(rank, index + 1, part, outs[-1][rank], op)
    network.run(len(lengths))
    for index, want in enumerate(expected):
        for rank in range(workers):
            assert numerics.same_bits(outs[index][rank], want), (index, rank)
    event(f"shares: {max(shares)}")
    event(f"guessed: {any(core.counters.guessed_chunks for core in network.workers)}")


def test_tensors_one_after_the_other_from_workers_that_divide_differently() -> None:
    network = Network(3, slots=16, link=ROUGH, seed=4, shares=[1, 2, 8])
    for turn in range(12):
        for dtype in DTYPES:
            parts = random_parts(dtype, 3, (300, 64 * 20 + 1)[turn % 2], seed=turn)
            want = numerics.all_reduce(parts, "sum", 64)
            assert all(numerics.same_bits(got, want) for got in all_reduce(network, parts))


def sent(shares: int, lengths: Sequence[int]) -> list[bytes]:
    """All packets of a lone worker whose tensors are all submitted before the first is sent."""
    link = Link(min_delay_ns=20_000, max_delay_ns=20_000)  # nothing is overtaken
    network = Network(1, slots=16, values=8, link=link, shares=[shares])
    found: list[bytes] = []
    carry = network._carry

    def note(receiver: int, sender: int, payload: bytes) -> None:
        if receiver < 0:
            found.append(payload)
        carry(receiver, sender, payload)

    network._carry = note  # type: ignore[method-assign]
    kept = []
    for index, length in enumerate(lengths):
        (part,) = random_parts(DTYPES[(index + 1) % 4], 1, length, index)
        kept.append((part, np.empty_like(part)))
        network.submit(0, index + 1, *kept[-1])
    network.run(len(lengths))
    return sorted(found)


@pytest.mark.parametrize("shares", [2, 4, 8])
def test_the_packets_are_those_of_one_share(shares: int) -> None:
    lengths = [200, 3, 0, 9, 9, 9, 9, 41, 64, 7, 9, 9, 9, 200, 9]
    packets = sent(1, lengths)
    assert sent(shares, lengths) == packets
    assert len(packets) > sum(-(-length // 8) for length in lengths)


@pytest.mark.parametrize("slots", [4, 16, 64])
@pytest.mark.parametrize("shares", [2, 4, 8])
def test_a_snapshot_of_the_lanes_is_that_of_one_share(slots: int, shares: int) -> None:
    shares = min(shares, slots // 2)
    networks = [Network(2, slots=slots, values=8, shares=[count, 1]) for count in (1, shares)]
    outs: list[Array] = []

    def submit(network: Network, rank: int, tensor: int, part: Array) -> None:
        outs.append(np.empty_like(part))
        network.submit(rank, tensor, part, outs[-1])

    first, second, third = (np.arange(n, dtype=np.int32) for n in (8 * 5, 8 * 9 + 1, 3))
    shown = []
    for network in networks:
        seen = []
        for tensor, part in enumerate((first, second, third), start=1):
            submit(network, 0, tensor, part)
            network._transmit()
            seen.append(network.workers[0].lanes(network.now_ns + 7 * MS))
        for tensor, part in enumerate((first, second, third), start=1):
            submit(network, 1, tensor, part)
        network.run(3)
        seen.append(network.workers[0].lanes(network.now_ns))
        submit(network, 0, 4, third)
        network._transmit()
        seen.append(network.workers[0].lanes(network.now_ns + 3))
        shown.append(
            [(s.seqs, s.waiting, s.in_flight, s.oldest_operation, s.oldest_waited_ns) for s in seen]
        )
        assert [s.in_flight > 0 for s in seen] == [True, True, True, False, True]
        assert [s.silent_ns for s in seen] == [7 * MS, 7 * MS, 7 * MS, 0, 3]
    assert shown[0] == shown[1]
    assert len(shown[0][0][0]) == slots // 2


def test_each_share_has_memory_for_its_own_lanes_and_knows_no_others() -> None:
    core = WorkerCore(worker_config(0, 1, 16, 8, share=1, shares=4))
    assert (core.window, core.first_lane, core.lane_count) == (8, 2, 2)
    assert core.in_flight_limit == 2
    part = np.arange(8 * 8, dtype=np.int32)
    core.submit(1, part.ctypes.data, part.ctypes.data, part.size, 0, False, 0)
    packets = core.poll_transmit(0)
    assert [decode(packet)[0].seq for packet in packets] == [2, 3]
    with pytest.raises(ValueError, match=r"lane must be 2\.\.3, got 1"):
        core.lane_result(1)
    with pytest.raises(ValueError, match="lane 4, sequence number 4: there is no such lane"):
        core.put_result(4, 4, bytes(32))
    (pending,) = core.pending()
    assert pending.undone == [(2, 4)]


def test_results_for_another_share_are_counted_and_ignored() -> None:
    network = Network(1, slots=16, values=8, shares=[2])
    part = np.arange(8 * 8, dtype=np.int32)
    out = np.zeros_like(part)
    network.submit(0, 1, part, out)
    cores = network.workers[0].cores  # type: ignore[attr-defined]
    seqs = []
    for packet in (p for core in cores for p in core.poll_transmit(0)):
        for departure in network.model.receive(network.attachments[0], packet):
            seqs.append(departure.header.seq)
            result = encode(departure.header, departure.values)
            wrong = cores[0 if departure.header.seq >= 4 else 1]
            wrong.on_result(result, 1)
    assert sorted(seqs) == list(range(8))
    assert [core.counters.mismatched for core in cores] == [4, 4]
    assert [core.counters.chunks_done for core in cores] == [0, 0]


def test_a_share_without_a_part_is_done_at_once() -> None:
    cores = [WorkerCore(worker_config(0, 1, 16, 8, share=i, shares=2)) for i in range(2)]
    part = np.arange(8, dtype=np.int32)
    for core in cores:
        core.submit(5, part.ctypes.data, part.ctypes.data, part.size, 0, False, 0)
    assert [core.take_completions() for core in cores] == [[], [5]]
    assert cores[1].next_deadline_ns(0) is None
    assert cores[1].pending() == []
    assert [core.counters.tensors_submitted for core in cores] == [1, 1]


def test_what_the_other_shares_get_counts_as_progress() -> None:
    core = WorkerCore(worker_config(0, 1, 16, 8, stall_s=1.0, share=0, shares=2))
    part = np.arange(8, dtype=np.int32)
    core.submit(1, part.ctypes.data, part.ctypes.data, part.size, 0, False, 0)
    assert core.poll_transmit(0)
    core.note_progress(SECOND // 2)
    core.poll_transmit(SECOND + 1)
    assert core.stall is None
    core.note_progress(0)  # it never goes back
    core.poll_transmit(SECOND * 3 // 2 + 1)
    assert core.stall is not None


@pytest.mark.parametrize(
    ("share", "shares", "why"),
    [
        (0, 0, "shares must be a power of two, at most W = 8, got 0"),
        (0, 3, "shares must be a power of two, at most W = 8, got 3"),
        (0, 16, "shares must be a power of two, at most W = 8, got 16"),
        (2, 2, r"share must be 0\.\.1, got 2"),
    ],
)
def test_shares_that_cannot_be(share: int, shares: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        WorkerCore(worker_config(0, 1, 16, 8, share=share, shares=shares))


def test_different_in_flight_limits_do_not_deadlock() -> None:
    for seed in range(5):
        link = Link(loss=0.1, max_delay_ns=3_000_000)
        network = Network(
            3, link=link, seed=seed, in_flight=[1, 1, 2], shares=[4, 1, 2]
        )  # of each share
        parts = random_parts(INT32, 3, 64 * 41, seed)
        for result in all_reduce(network, parts):
            assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", 64))
