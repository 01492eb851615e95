"""What RoCEv2 has around ina's packet, in whichever mode: BTH, ICRC, what may change on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ina import modes
from ina.p4 import names
from ina.protocol.bth import (
    BTH_BYTES,
    RC_SENDS,
    REPLIES,
    UC_SENDS,
    Bth,
    Opcode,
    decode_bth,
    encode_bth,
)
from ina.protocol.icrc import ICRC_BYTES
from ina.protocol.roce import DROP_ICRC, ipv4_checksum
from ina.protocol.spec import DropReason
from ina.tables.values import AnyItem, Counter, CounterRef
from ina.testing.case import Arrival, Case
from ina.testing.cases.actors import Team, tally
from ina.testing.cases.admission import honest_round
from ina.testing.frames import IPV4, PAYLOAD_OFFSET
from ina.testing.state import own_address
from ina.testing.wrapping import WRAPPINGS, Wrapping, sealed

BTH = slice(PAYLOAD_OFFSET, PAYLOAD_OFFSET + BTH_BYTES)
_TOS, _TTL, _UDP_CHECKSUM, _CONGESTION = 15, 22, 40, PAYLOAD_OFFSET + 4
_NOBODYS = (0x03, 0x05, 0x06, 0x0A, 0x23, 0x25, 0x26, 0x2A, 0x44, 0x64, 0xFF)
"""Opcodes with immediate data; of RDMA WRITEs; of datagrams; nobody's."""


@dataclass(frozen=True)
class Scene:
    """A job in packets of a mode's, and rounds of it of which the first packet is otherwise."""

    mode: str
    them: Team
    opcodes: tuple[Opcode, ...]
    """Of SENDs that the mode takes."""

    @property
    def wrapping(self) -> Wrapping:
        """How the job's frames and rows are said."""
        return WRAPPINGS[modes.of(self.mode).framing].of(self.them.state)

    @property
    def state(self) -> tuple[AnyItem, ...]:
        """What the controller installs."""
        return tuple(map(self.wrapping.item, (own_address(), *self.them.state)))

    @property
    def first(self) -> bytes:
        """The first worker's contribution."""
        return self.wrapping.arriving(self.them.frame(0, 0, self.them.ones()).build())

    @property
    def usual(self) -> Bth:
        """That contribution's."""
        return decode_bth(self.first[BTH])

    def said(self, arrival: Arrival) -> Arrival:
        """An arrival of UDP's frames."""
        wrapping = self.wrapping
        out = tuple(wrapping.leaving(port, data, arrival.frame) for port, data in arrival.out)
        return Arrival(arrival.port, wrapping.arriving(arrival.frame), out)

    def round(self, seq: int = 0) -> tuple[Arrival, ...]:
        """All contribute, all get the sum."""
        return tuple(map(self.said, honest_round(self.them, seq)))

    def whole_round(self, name: str, about: str, data: bytes) -> Case:
        """The first contribution is this frame; the sum leaves all the same."""
        _, *others = self.round()
        counts = tally(self.them, contributions=len(self.them.ranks), results=1)
        steps = (Arrival(1, data), *others)
        return Case(name, about, self.them.values, self.state, steps, counts, mode=self.mode)

    def refused(self, name: str, about: str, data: bytes, reason: int) -> Case:
        """This frame is dropped; then the round goes on as if it had not come."""
        counts: dict[CounterRef, int] = tally(
            self.them, contributions=len(self.them.ranks), results=1
        )
        counts[Counter(names.DROPS, reason)] = 1
        steps = (Arrival(1, data), *self.round())
        return Case(name, about, self.them.values, self.state, steps, counts, mode=self.mode)


def roce_scene(them: Team) -> Scene:
    """In mode roce."""
    return Scene(names.ROCE, them, UC_SENDS)


def ring_scene(them: Team) -> Scene:
    """In mode transparent."""
    return Scene(names.TRANSPARENT, them, RC_SENDS)


def cases_of(scene: Scene) -> Iterator[Case]:
    """Of a round of honest workers, the first of whose packets are otherwise."""
    yield from sends(scene)
    yield from no_sends(scene)
    yield from flips(scene)
    yield from on_the_way(scene)


def sends(scene: Scene) -> Iterator[Case]:
    """What a NIC may say in a BTH is all the same to the switch."""
    usual = scene.usual
    for name, bth in {
        **{opcode.name: replace(usual, opcode=opcode) for opcode in scene.opcodes},
        "psn-0": replace(usual, psn=0),
        "psn-jumps": replace(usual, psn=0xFF_FFFF),
        "not-migrated": replace(usual, migrated=0),
        "solicited": replace(usual, solicited=1),
        "asks-for-acknowledgement": replace(usual, ack_request=1),
        "reserved-bits": replace(usual, reserved=0x7F),
    }.items():
        yield scene.whole_round(
            f"send/{name}",
            "Opcodes of SENDs of its kind of connection, any number, any wish: it counts.",
            with_bth(scene.first, bth),
        )


def no_sends(scene: Scene) -> Iterator[Case]:
    """What is in no SEND is no contribution."""
    usual = scene.usual
    others = [it for it in Opcode if it not in scene.opcodes]
    if scene.opcodes == RC_SENDS:  # there some pass
        others = [it for it in others if it not in REPLIES]
    found = {
        **{f"opcode-{it:#04x}": replace(usual, opcode=it) for it in (*others, *_NOBODYS)},
        "padded": replace(usual, pad_bytes=1),
        "transport-version-1": replace(usual, version=1),
        "another-partition": replace(usual, pkey=0x7FFF),
    }
    for name, bth in found.items():
        yield scene.refused(
            f"no-send/{name}",
            "Counted as malformed, dropped, and never summed.",
            with_bth(scene.first, bth),
            DropReason.MALFORMED,
        )


def flips(scene: Scene) -> Iterator[Case]:
    """One bit is wrong that ICRC covers, or of ICRC itself."""
    good = scene.first
    length = len(good)
    offsets = {
        "identification": 18,
        "source-port": 34,
        "dest-qp": PAYLOAD_OFFSET + 7,
        "psn": PAYLOAD_OFFSET + 11,
        "seq": PAYLOAD_OFFSET + BTH_BYTES + 15,
        "check": PAYLOAD_OFFSET + BTH_BYTES + 24,
        "first-value": PAYLOAD_OFFSET + BTH_BYTES + 32,
        "last-value": length - ICRC_BYTES - 1,
        "icrc": length - ICRC_BYTES,
        "icrc-end": length - 1,
    }
    for name, offset in offsets.items():
        flipped = bytearray(good)
        flipped[offset] ^= 1 << offset % 8
        flipped[24:26] = ipv4_checksum(flipped[IPV4]).to_bytes(2, "big")
        yield scene.refused(
            f"icrc/{name}",
            "A bit that has changed on the way: counted by a reason of its own, never summed.",
            bytes(flipped),
            DROP_ICRC,
        )
    bare = scene.wrapping.arriving(scene.them.frame(0, 0).build())
    yield scene.refused(
        "icrc/exponents-only",
        "Without values, too, it must be right.",
        bare[:-1] + bytes([bare[-1] ^ 0x80]),
        DROP_ICRC,
    )
    yield scene.refused(
        "icrc/big-endian",
        "Its bytes are in one order.",
        good[:-ICRC_BYTES] + good[: -ICRC_BYTES - 1 : -1],
        DROP_ICRC,
    )
    yield scene.refused(
        "icrc/comes-before-what-the-header-says",
        "A header of which a bit is wrong says nothing: not that its version is another.",
        good[: PAYLOAD_OFFSET + BTH_BYTES] + b"\x01" + good[PAYLOAD_OFFSET + BTH_BYTES + 1 :],
        DROP_ICRC,
    )


def on_the_way(scene: Scene) -> Iterator[Case]:
    """What switches on the way may change, ICRC leaves out."""
    for name, offset, number in (
        ("tos", _TOS, 0x2A),
        ("ttl", _TTL, 1),
        ("udp-checksum", _UDP_CHECKSUM, 0xFF),
        ("congestion", _CONGESTION, 0xC0),
    ):
        changed = bytearray(scene.first)
        changed[offset] = number
        changed[24:26] = ipv4_checksum(changed[IPV4]).to_bytes(2, "big")
        yield scene.whole_round(
            f"on-the-way/{name}",
            "Changed by a switch on the way, and as good as before.",
            bytes(changed),
        )


def with_bth(data: bytes, bth: Bth) -> bytes:
    """The frame with another BTH, and its ICRC."""
    return sealed(data[: BTH.start] + encode_bth(bth) + data[BTH.stop : -ICRC_BYTES])
