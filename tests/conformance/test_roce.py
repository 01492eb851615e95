"""Modes roce and transparent: ICRC of all that leaves, by scapy's reckoning; flipped bits; the
cases said anew."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

from ina.p4 import names
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.icrc import ICRC_BYTES, MASKED_OFFSETS
from ina.protocol.roce import DROP_ICRC, ipv4_checksum
from ina.protocol.spec import DropReason
from ina.tables.values import AnyItem, Counter, EntryCounter
from ina.testing.case import Arrival, run_case
from ina.testing.cases import all_cases
from ina.testing.cases.actors import team
from ina.testing.cases.ring import ring
from ina.testing.cases.sends import roce_scene
from ina.testing.device import Device
from ina.testing.frames import ETHERNET_BYTES, IPV4, is_udp, parse
from ina.testing.model_device import ModelDevice
from ina.testing.wrapping import WRAPPINGS, said_of

VALUES = 56
SENDS = WRAPPINGS["rocev2"]
FLIPS = 10_000
NOT_WHOLE = ("reply/spoilt", "unreadable/", "bystander/another-udp-port")
"""Cases in which packets pass that are damaged, and are let through for their receivers to see."""
NOT_OURS = {0, *range(16, 20), 9, 6, 7, 22, 23}
"""Bytes of an IP packet that say what it is, and whom it is for: changed, it is other traffic."""


@pytest.mark.parametrize("mode", [names.ROCE, names.TRANSPARENT])
def test_scapy_agrees_with_the_icrc_of_all_that_must_leave(mode: str) -> None:
    """Devices' frames are compared with these, byte by byte."""
    left = {
        data
        for case in all_cases(VALUES, mode)
        if not case.name.startswith(NOT_WHOLE)
        for step in case.steps
        if isinstance(step, Arrival)
        for _, data in step.out
        if is_udp(data) and parse(data).dst_udp == ROCE_UDP_PORT
    }
    judged = random.Random(1).sample(sorted(left), 300)
    for data in judged:
        bth = Ether(data)[BTH]
        assert bth.compute_icrc(bytes(bth)[:-ICRC_BYTES]) == data[-ICRC_BYTES:]


def roce_job() -> tuple[tuple[AnyItem, ...], bytes]:
    """A job's rows, and a packet of its one worker's."""
    scene = roce_scene(team(VALUES, 1))
    return scene.state, scene.first


def ring_job() -> tuple[tuple[AnyItem, ...], bytes]:
    """The same of a ring."""
    them = ring(VALUES, 1)
    return (*them.all_rows, *them.ways), them.sends(0, 0, them.them.ones()).frame


@pytest.mark.parametrize(
    ("device", "job"),
    [
        ("model_roce", roce_job),
        ("soft_roce", roce_job),
        ("model_transparent", ring_job),
        ("soft_transparent", ring_job),
    ],
)
def test_no_flipped_bit_is_summed(
    device: str,
    job: Callable[[], tuple[tuple[AnyItem, ...], bytes]],
    request: pytest.FixtureRequest,
) -> None:
    """10,000 of 10,000 are dropped; those for this switch are counted, too."""
    under_test: Device = request.getfixturevalue(device)
    rng = random.Random(7)
    state, good = job()
    under_test.reset(VALUES)
    under_test.insert(state)
    covered = [
        offset for offset in range(len(good) - ETHERNET_BYTES) if offset not in MASKED_OFFSETS
    ]
    frames, of_others = [], 0
    for _ in range(FLIPS):
        offset = rng.choice(covered)
        flipped = bytearray(good)
        flipped[ETHERNET_BYTES + offset] ^= 1 << rng.randrange(8)
        if rng.random() < 0.9:
            flipped[24:26] = ipv4_checksum(flipped[IPV4]).to_bytes(2, "big")
        of_others += offset in NOT_OURS
        frames.append((1, bytes(flipped)))
    assert under_test.process(frames) == []
    refs = [Counter(names.DROPS, reason) for reason in (*DropReason, DROP_ICRC)]
    drops = [count[0] for count in under_test.counts(refs)]
    assert FLIPS - of_others <= sum(drops) <= FLIPS
    strays = drops[DropReason.MEMBER]  # in a ring, what seems to be for others is stopped, too
    assert sum(drops[1:DROP_ICRC]) == strays <= of_others
    assert strays == 0 or job is ring_job  # nothing of a header is believed before
    assert drops[DROP_ICRC] > FLIPS // 2
    assert under_test.process([(1, good)]) != []


def test_a_case_said_anew_has_what_was_wrong() -> None:
    usual = {case.name: case for case in all_cases(64)}
    anew = {name: said_of(case, SENDS) for name, case in usual.items()}
    with ModelDevice(names.ROCE) as model:
        assert not run_case(anew["malformed/udp-length-short"], model).differences
    checksum = anew["malformed/ip-checksum-0"].steps[0]
    assert isinstance(checksum, Arrival)
    assert checksum.frame[24:26] != ipv4_checksum(checksum.frame[IPV4]).to_bytes(2, "big")
    counts, before = anew["counters/everything"].counts, usual["counters/everything"].counts
    assert counts[Counter(names.JOB_STALE, 1)] == tuple(
        number + more
        for number, more in zip(before[Counter(names.JOB_STALE, 1)], (0, 32), strict=True)  # type: ignore[arg-type]
    )
    assert all(
        "dest_qp" in dict(ref.match)
        for ref in counts
        if isinstance(ref, EntryCounter) and ref.table == names.MEMBERS
    )
    assert said_of(usual["counters/everything"], WRAPPINGS["udp"]) is usual["counters/everything"]
