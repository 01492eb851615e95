"""The switch model at packet level: who may take part, what is dropped and why, what leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.errors import InvalidInputError
from ina.protocol.codec import Header, encode
from ina.protocol.spec import (
    ALL_WORKERS,
    RESULTS_UDP_PORT,
    UDP_PORT,
    DropReason,
    Flag,
    Kind,
    path_of,
)
from ina.protocol.switch_model import Attachment, ModelJob, Parent, Sharing, SwitchModel

WORKERS = tuple(Attachment(port, 0x0A000001 + port, 5000 + port) for port in range(3))
JOB = ModelJob(number=5, epoch=0x10002, first_slot=4, slots=2, workers=WORKERS)


def switch() -> SwitchModel:
    model = SwitchModel(slots=8, values_per_packet=2)
    model.install(JOB)
    return model


def header(worker: int, **fields: Any) -> Header:
    return replace(Header(job=5, epoch=2, worker=worker, value_count=2, seq=9, slot=1), **fields)


def test_a_sum_goes_to_every_worker() -> None:
    model = switch()
    first = header(0, flags=Flag.ECN | Flag.RESEND, next_exponent=7, digest=3, check=0x9000_0000)
    assert model.receive(WORKERS[0], encode(first, [1, 2**31 - 1])) == []
    marked = encode(header(1, next_exponent=3, digest=5, check=0x7000_0000), [10, 1])
    assert model.receive(WORKERS[1], marked, congestion_experienced=True) == []
    last = header(
        2, next_exponent=5, contributors=4, exponent=11, value_type=2, digest=0xFFFE, check=5
    )
    sent = model.receive(WORKERS[2], encode(last, [100, 0]))
    assert [departure.to for departure in sent] == list(WORKERS)
    for worker, departure in enumerate(sent):
        assert departure.values == (111, -(2**31))
        assert departure.header == replace(
            last,
            kind=Kind.RESULT,
            worker=worker,
            flags=Flag.ECN,
            contributors=0b111,
            next_exponent=7,
            digest=6,
            check=5,
        )
    assert model.slots[JOB.first_slot + 1].bitmap == 0b111
    assert not model.drops


GROUP = 0xEF000005
BEHIND_7 = tuple(replace(at, port=7) for at in WORKERS)


def shared_round(job: ModelJob) -> tuple[SwitchModel, list[tuple[int, Attachment]]]:
    """The switch, and who gets the result of a round."""
    model = switch()
    model.install(job)
    sent = [
        model.receive(at, encode(header(worker), [worker, 1]))
        for worker, at in enumerate(job.workers)
    ]
    assert sent[:-1] == [[]] * (len(sent) - 1)
    assert {departure.values for departure in sent[-1]} == {(3, 3)}
    assert {departure.header.kind for departure in sent[-1]} == {Kind.RESULT}
    return model, [(departure.header.worker, departure.to) for departure in sent[-1]]


def test_workers_behind_a_port_share_one_copy() -> None:
    job = replace(JOB, workers=BEHIND_7, sharing=Sharing(frozenset(range(3)), GROUP))
    model, sent = shared_round(job)
    assert sent == [(ALL_WORKERS, Attachment(7, GROUP, RESULTS_UDP_PORT))]
    for worker, at in enumerate(BEHIND_7):
        (departure,) = model.receive(at, encode(header(worker, flags=Flag.RESEND), [0, 0]))
        assert (departure.header.worker, departure.to) == (worker, at)


def test_who_does_not_listen_gets_a_copy_and_each_port_gets_one() -> None:
    workers = (*BEHIND_7[:2], WORKERS[2])
    some = replace(JOB, workers=workers, sharing=Sharing(frozenset({1}), GROUP))
    shared = Attachment(7, GROUP, RESULTS_UDP_PORT)
    assert shared_round(some)[1] == [(0, workers[0]), (2, workers[2]), (ALL_WORKERS, shared)]
    all_of_them = replace(some, sharing=Sharing(frozenset(range(3)), GROUP, udp_port=9))
    ports = [(ALL_WORKERS, Attachment(port, GROUP, 9)) for port in (2, 7)]
    assert shared_round(all_of_them)[1] == ports


def test_nobody_contributes_for_all() -> None:
    model = switch()
    model.install(replace(JOB, sharing=Sharing(frozenset({0, 1}), GROUP)))
    for sender in (WORKERS[0], Attachment(0, GROUP, RESULTS_UDP_PORT)):
        assert model.receive(sender, encode(header(ALL_WORKERS), [1, 2])) == []
    assert model.drops == {DropReason.MEMBER: 2}


def test_sharing_with_a_rank_that_is_not_there() -> None:
    with pytest.raises(InvalidInputError, match="job 5 shares results with ranks that it lacks"):
        switch().install(replace(JOB, sharing=Sharing(frozenset({3}), GROUP)))


STRANGER = Attachment(port=0, ipv4=WORKERS[0].ipv4, udp_port=1)


@pytest.mark.parametrize(
    ("sender", "payload", "reason"),
    [
        (WORKERS[0], b"", DropReason.MALFORMED),
        (WORKERS[0], encode(header(0), [1, 2])[:-1], DropReason.MALFORMED),
        (WORKERS[0], encode(header(0), [1, 2]) + b"\0", DropReason.MALFORMED),
        (WORKERS[0], encode(header(0, value_count=1), [1]), DropReason.MALFORMED),
        (WORKERS[0], b"\x11" + encode(header(0), [1, 2])[1:], DropReason.VERSION),
        (WORKERS[0], b"\x11" + encode(header(0), [1, 2])[1:-4], DropReason.MALFORMED),
        (WORKERS[0], b"\x5f" + encode(header(0), [1, 2])[1:], DropReason.KIND),
        (WORKERS[0], encode(header(0, kind=Kind.CONTROL), [1, 2]), DropReason.KIND),
        (WORKERS[0], encode(header(0, kind=Kind.RESULT), [1, 2]), DropReason.MEMBER),
        (WORKERS[0], encode(header(0, job=6), [1, 2]), DropReason.JOB),
        (WORKERS[0], encode(header(0, epoch=1), [1, 2]), DropReason.JOB),
        (WORKERS[0], encode(header(1), [1, 2]), DropReason.MEMBER),
        (WORKERS[0], encode(header(3), [1, 2]), DropReason.MEMBER),
        (STRANGER, encode(header(0), [1, 2]), DropReason.MEMBER),
        (replace(WORKERS[0], port=1), encode(header(0), [1, 2]), DropReason.MEMBER),
        (replace(WORKERS[0], ipv4=1), encode(header(0), [1, 2]), DropReason.MEMBER),
        (WORKERS[0], encode(header(0, slot=2), [1, 2]), DropReason.SLOT),
        (WORKERS[1], encode(header(1), [1, 2]), DropReason.DUPLICATE),
        (WORKERS[2], encode(header(2, seq=8), [1, 2]), DropReason.STALE),
    ],
)
def test_dropped_and_counted(sender: Attachment, payload: bytes, reason: DropReason) -> None:
    model = switch()
    model.receive(WORKERS[1], encode(header(1), [3, 4]))
    before = [replace(model.slots[number]) for number in range(model.slots_total)]
    assert model.receive(sender, payload) == []
    assert model.drops == {reason: 1}
    assert [model.slots[number] for number in range(model.slots_total)] == before


@pytest.mark.parametrize("workers", [0, 33])
def test_job_of_a_wrong_size(workers: int) -> None:
    with pytest.raises(InvalidInputError, match=f"{workers} children, 1 to 32"):
        switch().install(replace(JOB, workers=WORKERS[:1] * workers))


def test_job_beyond_the_memory() -> None:
    with pytest.raises(InvalidInputError, match="slots beyond 8"):
        switch().install(replace(JOB, first_slot=7))


PARENT_AT = Attachment(port=9, ipv4=0x0A000063, udp_port=UDP_PORT)


@given(
    st.sampled_from((*WORKERS, PARENT_AT)),
    st.sampled_from((Kind.CONTRIBUTION, Kind.RESULT)),
    st.integers(0, 4),
    st.sampled_from((Flag(0), Flag.REPLAY)),
    st.integers(0, 31),
)
def test_each_admitted_packet_counts_once_for_its_job(
    sender: Attachment, kind: Kind, worker: int, flags: Flag, child: int
) -> None:
    """A replay whose path leads to nobody, which is dropped, among them: as a duplicate is."""
    model = switch()
    model.install(replace(JOB, parent=Parent.above(PARENT_AT, (4,), level=1, children=3)))
    told = header(worker, kind=kind, flags=flags, path=path_of((4, child)))
    sent = model.receive(sender, encode(told, [1, 2]))
    refused = model.drops.total() and not model.passed_down
    assert model.outcomes.total() + model.passed_down.total() == (0 if refused else 1)
    is_parents = (sender, kind, worker) == (PARENT_AT, Kind.RESULT, 4)
    assert model.passed_down == ({JOB.number: 1} if is_parents else {})
    is_astray = is_parents and bool(flags) and child >= 3
    if is_parents:
        assert len(sent) == (0 if is_astray else 1 if flags else 3)
        assert model.drops == ({DropReason.MEMBER: 1} if is_astray else {})


@given(st.binary(max_size=60), st.sampled_from(WORKERS))
def test_any_bytes_are_dropped_or_counted_once(payload: bytes, sender: Attachment) -> None:
    model = switch()
    model.receive(sender, payload)
    assert model.drops.total() + model.outcomes.total() >= 1
