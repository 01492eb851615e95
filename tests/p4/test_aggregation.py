"""Frames of a job through the compiled program: sums, replays, refusals, addresses."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP, IPOption, IPOption_NOP
from scapy.layers.l2 import Ether

from ina.p4 import names
from ina.protocol.codec import Header
from ina.protocol.spec import UDP_PORT, DropReason, Flag, Kind
from tests.p4.bench import SLOTS, SWITCH_ADDR, SWITCH_MAC, VALUES, Bench, header, read
from tests.p4.bench import checksum_is_right as ipv4_is_right

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


def test_sums_wrap_as_int32(bench: Bench) -> None:
    for rank in range(2):
        bench.contribute(rank, header(), [2**31 - 1] * VALUES)
    (_, frame), *_ = bench.contribute(2, header(), [1] * VALUES)
    assert read(frame)[2] == [-1] * VALUES


def test_an_exponent_round_sends_no_values(bench: Bench) -> None:
    for rank in range(3):
        bench.contribute(rank, header(0), ONES)
    for rank, exponent in enumerate((9, 4, 11)):
        results = bench.contribute(rank, header(SLOTS, next_exponent=exponent))
    assert len(results) == 3
    for _, frame in results:
        _, head, values = read(frame)
        assert (head.value_count, head.next_exponent, values) == (0, 11, [])


def test_values_of_an_earlier_round_cannot_be_read_through_a_mixed_one(bench: Bench) -> None:
    secret = [1000 + i for i in range(VALUES)]
    for rank in range(3):
        bench.contribute(rank, header(0), secret)
    bench.contribute(0, header(SLOTS))  # takes the slot over without values
    bench.contribute(1, header(SLOTS), [0] * VALUES)
    (_, frame), *_ = bench.contribute(2, header(SLOTS), ONES)
    assert read(frame)[2] == ONES
    ((_, frame),) = bench.contribute(0, header(SLOTS), ONES)
    assert read(frame)[2] == ONES  # a replay with values reads this round's sum


def test_repeats_are_dropped_then_answered_from_the_slot(bench: Bench) -> None:
    bench.contribute(0, header(), ONES)
    assert bench.contribute(0, header(flags=Flag.RESEND), [9] * VALUES) == []
    bench.contribute(1, header(), ONES)
    bench.contribute(2, header(), ONES)
    replay = bench.contribute(0, header(flags=Flag.RESEND), [9] * VALUES)
    assert [port for port, _ in replay] == [1]
    _, head, values = read(replay[0][1])
    assert (head.worker, head.flags, head.contributors) == (0, Flag(0), 0b111)
    assert values == [3] * VALUES
    assert bench.job_counts() == {
        names.JOB_CONTRIBUTIONS: 3,
        names.JOB_DUPLICATES: 1,
        names.JOB_RESULTS: 1,
        names.JOB_REPLAYS: 1,
    }
    assert bench.drops() == {DropReason.DUPLICATE: 1}


@pytest.mark.parametrize("start", [0, 2**31 - 3, 2**32 - 3])
def test_a_newer_round_takes_the_slot_and_an_older_packet_does_not(start: int) -> None:
    bench = Bench(1)
    old = header(start)
    for step in range(6):
        new = header((start + step * SLOTS) % 2**32, slot=old.slot)
        ((_, frame),) = bench.contribute(0, new, [step] * VALUES)
        assert read(frame)[2] == [step] * VALUES
    assert bench.contribute(0, old, [77] * VALUES) == []
    assert bench.drops() == {DropReason.STALE: 1}
    ((_, frame),) = bench.contribute(0, new)  # a repeat finds its own sum
    assert read(frame)[1].seq == new.seq


def test_sticky_flags_are_gathered_and_others_end(bench: Bench) -> None:
    bench.contribute(0, header(flags=Flag.NON_FINITE | Flag.RESEND), ONES)
    bench.contribute(1, header(flags=Flag.OVERFLOW | Flag.COLLISION), ONES)
    (_, frame), *_ = bench.contribute(2, header(flags=Flag.PARTIAL), ONES)
    assert read(frame)[1].flags == Flag.NON_FINITE | Flag.OVERFLOW


def test_congestion_on_the_way_in_is_told_in_the_result(bench: Bench) -> None:
    marked = bench.workers[0].packet(header(), ONES)
    marked[IP].tos |= 3
    bench.send(1, marked)
    bench.contribute(1, header(), ONES)
    (_, frame), *_ = bench.contribute(2, header(), ONES)
    assert read(frame)[1].flags == Flag.ECN


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


def test_a_copy_without_receiver_is_counted(bench: Bench) -> None:
    bench.pipeline.delete(names.RECEIVERS, bench.receivers[1])
    for rank in range(3):
        results = bench.contribute(rank, header(), ONES)
    assert [port for port, _ in results] == [1, 3]
    assert bench.job_counts()[names.JOB_UNADDRESSED] == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 1}, DropReason.VERSION),
        ({"kind": Kind.RESULT}, DropReason.KIND),
        ({"kind": Kind.CONTROL}, DropReason.KIND),
        ({"job": 8}, DropReason.JOB),
        ({"epoch": 8}, DropReason.JOB),
        ({"slot": SLOTS}, DropReason.SLOT),
        ({"slot": 0xFFFF}, DropReason.SLOT),
    ],
)
def test_refused_by_what_the_header_says(
    bench: Bench, change: dict[str, int], reason: DropReason
) -> None:
    assert bench.contribute(0, header(**change), ONES) == []
    assert bench.drops() == {reason: 1}
    assert bench.job_counts() == {}


def test_refused_unless_port_address_and_worker_are_the_members(bench: Bench) -> None:
    worker = bench.workers[0]
    for field, value in (("src", "10.0.0.2"), ("src", "10.9.0.1")):
        packet = worker.packet(header(), ONES)
        setattr(packet[IP], field, value)
        assert bench.send(worker.port, packet) == []
    packet = worker.packet(header(), ONES)
    packet[UDP].sport += 1
    assert bench.send(worker.port, packet) == []
    assert bench.send(2, worker.packet(header(), ONES)) == []
    other = bytes(bench.workers[1].packet(header(), ONES))[42:]
    forged = worker.packet(header(), ONES)
    forged[UDP].remove_payload()
    assert bench.send(1, forged / other) == []
    assert bench.drops() == {DropReason.MEMBER: 5}


def spoil_total_length(packet: Ether) -> bytes:
    packet[IP].len = len(packet[IP]) - 4
    return bytes(packet)


def spoil_udp_length(packet: Ether) -> bytes:
    packet[UDP].len = len(packet[UDP]) + 4
    return bytes(packet)


def spoil_checksum(packet: Ether) -> bytes:
    packet[IP].chksum = 0x1234
    return bytes(packet)


def first_fragment(packet: Ether) -> bytes:
    packet[IP].flags = "MF"
    return bytes(packet)


def bytes_behind(packet: Ether) -> bytes:
    return bytes(packet) + b"more"


def bytes_behind_within_ip(packet: Ether) -> bytes:
    packet[IP].len = len(packet[IP]) + 4
    packet[UDP].len = len(packet[UDP])
    return bytes(packet) + b"more"


def cut_short(packet: Ether) -> bytes:
    return bytes(packet)[:-1]


def fewer_values(packet: Ether) -> bytes:
    payload = bytes(packet[UDP].payload)[:-4]
    packet[UDP].remove_payload()
    return bytes(packet / payload)


def half_the_values(packet: Ether) -> bytes:
    """Consistent in itself, but not the count of this build."""
    payload = bytearray(bytes(packet[UDP].payload)[: 24 + 4 * 32])
    payload[10] &= 0xF0
    payload[11] = 32
    packet[UDP].remove_payload()
    return bytes(packet / bytes(payload))


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_total_length,
        spoil_udp_length,
        spoil_checksum,
        first_fragment,
        bytes_behind,
        bytes_behind_within_ip,
        cut_short,
        fewer_values,
        half_the_values,
    ],
)
def test_malformed_packets_are_counted_and_never_summed(bench: Bench, spoil) -> None:  # type: ignore[no-untyped-def]
    assert bench.send(1, spoil(bench.workers[0].packet(header(), ONES))) == []
    assert bench.drops() == {DropReason.MALFORMED: 1}
    for rank in range(3):
        results = bench.contribute(rank, header(), ONES)
    assert read(results[0][1])[2] == [3] * VALUES


def test_every_cut_of_a_packet_is_dropped(bench: Bench) -> None:
    whole = bytes(bench.workers[0].packet(header(), ONES))
    for length in range(len(whole)):
        assert bench.send(1, whole[:length]) == []
    # From the UDP header on it is seen to be for the aggregator.
    assert bench.drops() == {DropReason.MALFORMED: len(whole) - 42}
    assert bench.job_counts() == {}


def test_options_and_later_fragments_are_ordinary_traffic(bench: Bench) -> None:
    packet = bench.workers[0].packet(header(), ONES)
    for options in ([IPOption_NOP()], [IPOption(bytes(packet[UDP])[:8])]):  # posing as UDP
        packet[IP].options = options
        assert bench.send(1, packet) == []
    packet = bench.workers[0].packet(header(), ONES)
    packet[IP].frag = 1
    assert bench.send(1, packet) == []
    assert bench.drops() == {}
    assert bench.job_counts() == {}
