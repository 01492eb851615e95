"""Frames of a job through the compiled program, as Scapy reads them, and in one batch.

What the program makes of each packet is in the conformance cases (ina/testing/cases)."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.p4 import names
from ina.protocol.codec import Header
from ina.protocol.spec import UDP_PORT, DropReason, Flag, Kind
from tests.worlds.virtual.pool import SLOTS, SWITCH_ADDR, SWITCH_MAC, VALUES, Bench, header, read
from tests.worlds.virtual.pool import checksum_is_right as ipv4_is_right

ONES = [1] * VALUES


@pytest.fixture
def bench() -> Bench:
    return Bench(3)


def test_the_last_contribution_leaves_as_the_result_to_all(bench: Bench) -> None:
    parts = [[rank * 1000 + i - 50 for i in range(VALUES)] for rank in range(3)]
    heads = [header(9, next_exponent=exponent, exponent=4) for exponent in (3, 200, 7)]
    assert bench.contribute(0, heads[0], parts[0]) == []
    assert bench.contribute(1, heads[1], parts[1]) == []
    results = bench.contribute(2, heads[2], parts[2])

    assert [port for port, _ in results] == [1, 2, 3]
    for worker, (_, frame) in zip(bench.workers, results, strict=True):
        packet, head, values = read(frame)
        assert values == [sum(column) for column in zip(*parts, strict=True)]
        assert head == Header(
            kind=Kind.RESULT,
            job=head.job,
            epoch=head.epoch,
            worker=worker.rank,
            slot=9 % SLOTS,
            value_count=VALUES,
            seq=9,
            contributors=0b111,
            exponent=4,
            next_exponent=200,
        )
        assert (packet[Ether].src, packet[Ether].dst) == (SWITCH_MAC, worker.mac)
        assert (packet[IP].src, packet[IP].dst) == (SWITCH_ADDR, worker.addr)
        assert (packet[UDP].sport, packet[UDP].dport) == (UDP_PORT, worker.udp_port)
        assert packet[UDP].chksum == 0
        assert ipv4_is_right(frame)
    assert bench.job_counts() == {names.JOB_CONTRIBUTIONS: 3, names.JOB_RESULTS: 1}
    assert bench.drops() == {}


def test_results_are_marked_above_the_threshold(bench: Bench) -> None:
    bench.pipeline.set_default(names.ECN_THRESHOLD, names.MARK_ABOVE, [1])
    bench.pipeline.set_multicast(9, [(1, worker.rank + 1) for worker in bench.workers])
    frames = [worker.frame(header(), ONES) for worker in bench.workers]
    results = [read(frame) for _, frame in bench.pipeline.process_batch(frames)]
    # Three copies queue at port 1: behind 0, 1 and 2 packets.
    assert [head.flags for _, head, _ in results] == [Flag(0), Flag(0), Flag.ECN]
    assert [packet[IP].tos & 3 for packet, _, _ in results] == [2, 2, 3]
    assert all(ipv4_is_right(bytes(packet)) for packet, _, _ in results)
    assert bench.job_counts()[names.JOB_ECN_MARKS] == 1


def test_every_cut_of_a_packet_is_dropped(bench: Bench) -> None:
    whole = bytes(bench.workers[0].packet(header(), ONES))
    for length in range(len(whole)):
        assert bench.send(1, whole[:length]) == []
    # From the UDP header on it is seen to be for the aggregator.
    assert bench.drops() == {DropReason.MALFORMED: len(whole) - 42}
    assert bench.job_counts() == {}
