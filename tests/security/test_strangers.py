"""A stranger's packets change no sum, get no answer, are counted by reason, while sums go on."""

from __future__ import annotations

import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ina.controller.embedded import Embedded
from ina.protocol.codec import Header, decode_header, encode_header
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES, VERSION, DropReason, Kind
from tests.security.jobs import captured, summing_job

PACKETS = 200  # of each kind of attack
SEED = 20260
DEADLINE_S = 60.0

Attack = tuple[socket.socket, Callable[[bytes, random.Random], bytes], DropReason]


@pytest.fixture(scope="module")
def embedded() -> Iterator[Embedded]:
    with Embedded(values=64, slots=64) as running:
        yield running


def drops(embedded: Embedded) -> Counter[str]:
    return Counter({c.label: c.packets for c in embedded.show().counters if c.name == "drops"})


def changed(packet: bytes, **fields: int) -> bytes:
    """The same packet, with other numbers in its header."""
    header = replace(decode_header(packet), **fields)  # type: ignore[arg-type]
    return encode_header(header) + packet[HEADER_BYTES:]


@contextmanager
def stranger(host: str, udp_port: int, switch: tuple[str, int]) -> Iterator[socket.socket]:
    """A socket that no job knows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((host, udp_port))
        sock.connect(switch)
        sock.setblocking(False)
        yield sock


def fire(attacks: dict[str, Attack], seen: list[bytes], seed: int) -> Counter[str]:
    """Sends every attack's packets, mixed; returns how many there were by reason."""
    rng = random.Random(seed)
    volley = [name for name in attacks for _ in range(PACKETS)]
    rng.shuffle(volley)
    fired: Counter[str] = Counter()
    for number, name in enumerate(volley):
        sock, forge, reason = attacks[name]
        sock.send(forge(rng.choice(seen), rng))
        fired[reason.name.lower()] += 1
        if number % 20 == 0:
            time.sleep(0.001)  # the switch's receive buffer shall lose none
    return fired


def settled(embedded: Embedded, before: Counter[str], fired: Counter[str]) -> Counter[str]:
    """What was counted since ``before``, once it is at least what was fired."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        counted = drops(embedded)
        counted.subtract(before)
        if all(counted[reason] >= fired[reason] for reason in fired):
            return counted
        assert time.monotonic() < deadline, (counted, fired)
        time.sleep(0.05)


def same(packet: bytes, rng: random.Random) -> bytes:
    return packet


def setting(**choices: range) -> Callable[[bytes, random.Random], bytes]:
    """A packet with header numbers drawn from ranges."""

    def forge(packet: bytes, rng: random.Random) -> bytes:
        return changed(packet, **{name: rng.choice(numbers) for name, numbers in choices.items()})

    return forge


def test_strangers_change_nothing_and_are_counted(embedded: Embedded) -> None:
    with (
        summing_job(embedded, "victim", 2) as victim,
        summing_job(embedded, "neighbour", 2) as neighbour,
    ):
        ticket = victim.sessions[0].ticket
        member = victim.taps[0].outer  # rank 0's own address and port
        member_port = member.getsockname()[1]
        switch = ticket.switch.place
        with (
            stranger("127.0.0.1", 0, switch) as other_port,
            stranger("127.0.0.2", member_port, switch) as other_address,
            stranger("127.0.0.3", 0, switch) as elsewhere,
        ):
            seen = captured(victim)
            attacks: dict[str, Attack] = {
                # Packets of rank 0, as they were captured.
                "replay from another port": (other_port, same, DropReason.MEMBER),
                "replay from another address": (other_address, same, DropReason.MEMBER),
                "replay from elsewhere": (elsewhere, same, DropReason.MEMBER),
                "replay by rank 1": (victim.taps[1].outer, same, DropReason.MEMBER),
                "replay by another job": (neighbour.taps[0].outer, same, DropReason.MEMBER),
                # From where rank 0 is, with what is not rank 0's.
                "ranks not its own": (member, setting(worker=range(1, 256)), DropReason.MEMBER),
                "another job's number": (
                    member,
                    setting(
                        job=range(
                            neighbour.sessions[0].ticket.job, neighbour.sessions[0].ticket.job + 1
                        ),
                        epoch=range(
                            neighbour.sessions[0].ticket.epoch,
                            neighbour.sessions[0].ticket.epoch + 1,
                        ),
                    ),
                    DropReason.MEMBER,
                ),
                "jobs that nobody has": (member, setting(job=range(300, 1 << 16)), DropReason.JOB),
                "other epochs": (
                    member,
                    setting(epoch=range(ticket.epoch + 1, 1 << 16)),
                    DropReason.JOB,
                ),
                "slots out of range": (
                    member,
                    setting(slot=range(ticket.slots, 1 << 16)),
                    DropReason.SLOT,
                ),
                # Not contributions at all.
                "results": (elsewhere, setting(kind=range(2, 3)), DropReason.MEMBER),
                "other kinds": (elsewhere, setting(kind=range(3, 6)), DropReason.KIND),
                "other versions": (elsewhere, wrong_version, DropReason.VERSION),
                "cut short": (elsewhere, cut_short, DropReason.MALFORMED),
                "too long": (elsewhere, too_long, DropReason.MALFORMED),
            }
            before = drops(embedded)
            counters_before = victim_packets(embedded)
            fired = fire(attacks, seen, SEED)
            counted = settled(embedded, before, fired)
            assert victim.finish() > 0
            assert neighbour.finish() > 0
            # Every packet, and under its own reason; repeats of the workers themselves aside.
            for reason in ("stale", "duplicate"):
                counted.pop(reason, None)
            assert {reason: n for reason, n in counted.items() if n} == dict(fired)
            assert victim_packets(embedded) >= counters_before
            for silent in (other_port, other_address, elsewhere):  # nobody was answered
                with pytest.raises(BlockingIOError):
                    silent.recv(1)
        for session in (*victim.sessions, *neighbour.sessions):
            assert session.stats().refused_results == 0
        ports = embedded.switch.stats().ports.values()
        assert sum(port.kernel_drop_packets for port in ports) == 0


def victim_packets(embedded: Embedded) -> int:
    return sum(c.packets for c in embedded.show().counters if c.label == "job victim")


def wrong_version(packet: bytes, rng: random.Random) -> bytes:
    version = rng.choice([v for v in range(16) if v != VERSION])
    return bytes([version << 4 | packet[0] & 0xF]) + packet[1:]


def cut_short(packet: bytes, rng: random.Random) -> bytes:
    return packet[: rng.randrange(1, len(packet))]


def too_long(packet: bytes, rng: random.Random) -> bytes:
    return packet + rng.randbytes(rng.randrange(1, 100))


def test_random_bytes_change_nothing(embedded: Embedded) -> None:
    """Noise from a stranger, and noise from behind a member's own address."""
    with summing_job(embedded, "victim", 2) as victim:
        ticket = victim.sessions[0].ticket
        with stranger("127.0.0.2", 0, ticket.switch.place) as noisy:
            captured(victim)
            rng = random.Random(SEED)
            before = sum(drops(embedded).values())
            for number in range(2000):
                size = rng.choice([1, HEADER_BYTES, HEADER_BYTES + 64 * VALUE_BYTES, 1400])
                sock = noisy if number % 2 else victim.taps[0].outer
                sock.send(rng.randbytes(size))
                if number % 20 == 0:
                    time.sleep(0.001)
            deadline = time.monotonic() + DEADLINE_S
            while sum(drops(embedded).values()) - before < 2000:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        assert victim.finish() > 0


def test_the_kinds_of_attack_are_what_they_say() -> None:
    """The forged packets differ from a real one as the attack's name says, and nowhere else."""
    header = Header(kind=Kind.CONTRIBUTION, job=3, epoch=9, slot=5, value_count=1, seq=7)
    packet = encode_header(header) + bytes(VALUE_BYTES)
    rng = random.Random(0)
    assert decode_header(setting(slot=range(64, 65))(packet, rng)) == replace(header, slot=64)
    assert decode_header(setting(kind=range(2, 3))(packet, rng)).kind is Kind.RESULT
    assert wrong_version(packet, rng)[0] >> 4 != VERSION
    assert len(cut_short(packet, rng)) < len(packet) < len(too_long(packet, rng))
