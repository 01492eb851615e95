"""Mode roce: ICRC of all that leaves, by scapy's reckoning; flipped bits; the cases said anew."""

from __future__ import annotations

import random

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

from ina.p4 import names
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.icrc import ICRC_BYTES, MASKED_OFFSETS
from ina.protocol.roce import DROP_ICRC, ipv4_checksum
from ina.protocol.spec import DropReason
from ina.tables.values import Counter, EntryCounter
from ina.testing.case import Arrival, run_case
from ina.testing.cases import all_cases
from ina.testing.cases.actors import team
from ina.testing.cases.roce import first
from ina.testing.device import Device
from ina.testing.frames import ETHERNET_BYTES, IPV4, is_udp, parse
from ina.testing.model_device import ModelDevice
from ina.testing.state import own_address
from ina.testing.wrapping import WRAPPINGS, said_of

VALUES = 56
SENDS = WRAPPINGS["rocev2"]
FLIPS = 10_000
NOT_OURS = {0, *range(16, 20), 9, 6, 7, 22, 23}
"""Bytes of an IP packet that say what it is, and whom it is for: changed, it is other traffic."""


def test_scapy_agrees_with_the_icrc_of_all_that_must_leave() -> None:
    """Devices' frames are compared with these, byte by byte."""
    left = {
        data
        for case in all_cases(VALUES, names.ROCE)
        for step in case.steps
        if isinstance(step, Arrival)
        for _, data in step.out
        if is_udp(data) and parse(data).dst_udp == ROCE_UDP_PORT
    }
    judged = random.Random(1).sample(sorted(left), 300)
    for data in judged:
        bth = Ether(data)[BTH]
        assert bth.compute_icrc(bytes(bth)[:-ICRC_BYTES]) == data[-ICRC_BYTES:]


@pytest.mark.parametrize("device", ["model_roce", "soft_roce"])
def test_no_flipped_bit_is_summed(device: str, request: pytest.FixtureRequest) -> None:
    """10,000 of 10,000 are dropped; those for this switch are counted, too."""
    under_test: Device = request.getfixturevalue(device)
    them, rng = team(VALUES, 1), random.Random(7)
    under_test.reset(VALUES)
    under_test.insert((own_address(), *map(SENDS.item, them.state)))
    good = first(them)
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
    assert sum(drops[1:DROP_ICRC]) == 0  # nothing of a header is believed before
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
