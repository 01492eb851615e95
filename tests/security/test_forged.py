"""Forged packets: what a worker's socket keeps out, its core refuses, and it must believe.

Some tests hold SECURITY.md to its word about what is not protected: who can send with a member's or
the switch's own address can change the sums of a job that does not verify them. The last are of
those that do.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.host import CorruptedSumError, Session
from ina.protocol.codec import decode, encode
from ina.protocol.spec import Flag, Kind
from tests.security.jobs import captured, summing_job, tapped_sessions
from tests.worlds.fakes.tap import Tap

FORGED = 300
DEADLINE_S = 60.0
LIE = 1_000_000


@pytest.fixture(scope="module")
def embedded() -> Iterator[Embedded]:
    with Embedded(values=64, slots=64) as running:
        yield running


def result_of(contribution: bytes, world_size: int, **fields: int) -> bytes:
    """The result that a switch would send for it, but with other values, and ``fields``."""
    header, _ = decode(contribution)
    digest = world_size * header.digest % (1 << 16)
    truth = {"kind": Kind.RESULT, "contributors": (1 << world_size) - 1, "digest": digest}
    forged = replace(header, **{**truth, **fields})  # type: ignore[arg-type]
    return encode(forged, np.full(forged.value_count, LIE, np.int32))


def until_sent(tap: Tap, count: int) -> bytes:
    """The worker's contribution number ``count``."""
    deadline = time.monotonic() + DEADLINE_S
    while len(tap.sent) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return tap.sent[count - 1]


def test_results_from_elsewhere_do_not_reach_the_worker(embedded: Embedded) -> None:
    with (
        summing_job(embedded, "victim", 2) as victim,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as same_host,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as same_port,
    ):
        tap = victim.taps[0]
        same_host.bind(("127.0.0.1", 0))
        same_port.bind(("127.0.0.2", tap.inner.getsockname()[1]))
        assert tap.worker is not None
        for packet in (captured(victim) * 10)[:FORGED]:
            for sock in (same_host, same_port):
                sock.sendto(result_of(packet, 2), tap.worker)
        assert victim.finish() > 0
        # Not even counted: the connected socket lets nothing through but the switch's.
        assert victim.sessions[0].stats().refused_results == 0


def test_results_from_the_switch_s_address_must_fit_what_is_waited_for(embedded: Embedded) -> None:
    rng = random.Random(7)
    with summing_job(embedded, "victim", 2) as victim:
        tap, ticket = victim.taps[0], victim.sessions[0].ticket
        assert tap.worker is not None
        wrong: list[dict[str, int]] = [
            {"job": ticket.job + 1},
            {"epoch": (ticket.epoch + 1) & 0xFFFF},
            {"worker": 1},
            {"kind": Kind.CONTRIBUTION},
            {"contributors": 1},
            {"value_type": 1},
            {"slot": ticket.slots},
        ]
        packets = captured(victim)
        before = victim.sessions[0].stats()
        for _ in range(FORGED):
            # The sequence number is right as often as not, so that each check is the last one.
            packet = rng.choice([*packets[-8:], tap.sent[-1]])
            tap.inner.sendto(result_of(packet, 2, **rng.choice(wrong)), tap.worker)
        assert victim.finish() > 0
        after = victim.sessions[0].stats()
    # Stale numbers are told apart first; everything else is refused, whatever it got right.
    told = after.refused_results + after.stale + after.duplicates
    assert after.refused_results - before.refused_results >= FORGED // 4
    assert told - (before.refused_results + before.stale + before.duplicates) >= FORGED


def test_a_perfect_result_from_the_switch_s_address_is_believed(embedded: Embedded) -> None:
    with tapped_sessions(embedded, "victim", 2, verify="off") as (taps, sessions):
        handle = sessions[0].all_reduce(np.ones(64, np.int32), async_op=True)
        assert taps[0].worker is not None
        taps[0].inner.sendto(result_of(until_sent(taps[0], 1), 2), taps[0].worker)
        np.testing.assert_array_equal(handle.wait(DEADLINE_S), np.full(64, LIE, np.int32))


def lie_for_rank_0(contribution_of_rank_1: bytes) -> bytes:
    header, _ = decode(contribution_of_rank_1)
    forged = replace(header, worker=0, flags=Flag(0))
    return encode(forged, np.full(header.value_count, LIE, np.int32))


def check_believed(taps: list[Tap], sessions: list[Session], forge: bool) -> None:
    """Both ranks get the sum with rank 0's forged contribution, and the same one."""
    late = sessions[1].all_reduce(np.full(64, 5, np.int32), async_op=True)
    lie = lie_for_rank_0(until_sent(taps[1], 1))
    if forge:
        host, udp_port = taps[0].outer.getsockname()
        ticket = sessions[0].ticket
        send_spoofed((host, udp_port), ticket.switch.place, lie)
    else:
        taps[0].outer.send(lie)
    np.testing.assert_array_equal(late.wait(DEADLINE_S), np.full(64, LIE + 5, np.int32))
    early = sessions[0].all_reduce(np.ones(64, np.int32), async_op=True)
    np.testing.assert_array_equal(early.wait(DEADLINE_S), np.full(64, LIE + 5, np.int32))


def test_a_contribution_from_a_member_s_address_is_believed(embedded: Embedded) -> None:
    with tapped_sessions(embedded, "victim", 2, verify="off") as (taps, sessions):
        check_believed(taps, sessions, forge=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")
def test_a_forged_source_address_is_believed(embedded: Embedded) -> None:
    with tapped_sessions(embedded, "victim", 2, verify="off") as (taps, sessions):
        check_believed(taps, sessions, forge=True)


def send_spoofed(source: tuple[str, int], target: tuple[str, int], payload: bytes) -> None:
    """One UDP datagram with any source port, as only root can send it; no UDP checksum."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
        raw.bind((source[0], 0))
        raw.sendto(
            struct.pack("!HHHH", source[1], target[1], 8 + len(payload), 0) + payload, target
        )


def test_a_perfect_result_is_not_believed_where_sums_are_verified(embedded: Embedded) -> None:
    """With the right check of another round, none, or the one that the worker has sent."""
    rng = random.Random(8)
    with tapped_sessions(embedded, "verified", 2, verify="keyed") as (taps, sessions):
        handle = sessions[0].all_reduce(np.full(64, 0.5, np.float32), async_op=True)
        assert taps[0].worker is not None
        sent = until_sent(taps[0], 1)
        check = decode(sent)[0].check
        for forged in (0, check, rng.getrandbits(32)):
            taps[0].inner.sendto(
                result_of(sent, 2, check=forged, next_exponent=200), taps[0].worker
            )
        other = sessions[1].all_reduce(np.full(64, 0.25, np.float32), async_op=True)
        for each in (handle, other):
            np.testing.assert_array_equal(each.wait(DEADLINE_S), np.full(64, 0.75, np.float32))
        assert sessions[0].stats().corrupted_sums == 3


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_a_forged_contribution_ends_a_job_that_verifies(
    dtype: type[np.generic], embedded: Embedded
) -> None:
    """It is in the slot, and the member's own is not: no rank gets a sum of it."""
    name = f"verified {np.dtype(dtype)}"
    with tapped_sessions(embedded, name, 2, verify="keyed") as (taps, sessions):
        late = sessions[1].all_reduce(np.full(64, 5, dtype), async_op=True)
        taps[0].outer.send(lie_for_rank_0(until_sent(taps[1], 1)))
        early = sessions[0].all_reduce(np.ones(64, dtype), async_op=True)
        for handle in (late, early):
            with pytest.raises(CorruptedSumError, match="each time the same, so the slot holds it"):
                handle.wait(DEADLINE_S)
