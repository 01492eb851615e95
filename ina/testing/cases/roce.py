"""What RoCEv2 has around ina's packet: BTH, ICRC, messages of one SEND or several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.p4 import names
from ina.protocol.bth import BTH_BYTES, UC_SENDS, Bth, Opcode, decode_bth, encode_bth
from ina.protocol.icrc import ICRC_BYTES
from ina.protocol.roce import DROP_ICRC, ipv4_checksum
from ina.protocol.spec import DropReason
from ina.tables.values import AnyItem, Counter, CounterRef, Entry
from ina.testing.case import Arrival, Case
from ina.testing.cases.actors import Team, tally, team
from ina.testing.cases.admission import honest_round
from ina.testing.frames import IPV4, PAYLOAD_OFFSET
from ina.testing.wrapping import InSends, sealed

MODE = names.ROCE
_BTH = slice(PAYLOAD_OFFSET, PAYLOAD_OFFSET + BTH_BYTES)
_SENDS = InSends()
_TOS, _TTL, _UDP_CHECKSUM, _CONGESTION = 15, 22, 40, PAYLOAD_OFFSET + 4


def cases(values: int) -> Iterator[Case]:
    """Of a round of honest workers, the first of whose packets are otherwise."""
    yield from sends(values)
    yield from no_sends(values)
    yield from flips(values)
    yield from on_the_way(values)
    yield from messages(values)
    yield from strangers(values)


def sends(values: int) -> Iterator[Case]:
    """What a NIC may say in a BTH is all the same to the switch."""
    them = team(values)
    usual = decode_bth(first(them)[_BTH])
    for name, bth in {
        **{opcode.name: replace(usual, opcode=opcode) for opcode in UC_SENDS},
        "psn-0": replace(usual, psn=0),
        "psn-jumps": replace(usual, psn=0xFF_FFFF),
        "not-migrated": replace(usual, migrated=0),
        "solicited": replace(usual, solicited=1),
        "asks-for-acknowledgement": replace(usual, ack_request=1),
        "reserved-bits": replace(usual, reserved=0x7F),
    }.items():
        yield whole_round(
            f"send/{name}",
            "Opcodes of SENDs on an unreliable connection, any number, any wish: it counts.",
            them,
            with_bth(first(them), bth),
        )


def no_sends(values: int) -> Iterator[Case]:
    """What is in no SEND is no contribution."""
    them = team(values)
    usual = decode_bth(first(them)[_BTH])
    found = {
        **{f"opcode-{it:#04x}": replace(usual, opcode=it) for it in NO_SENDS},
        "padded": replace(usual, pad_bytes=1),
        "transport-version-1": replace(usual, version=1),
        "another-partition": replace(usual, pkey=0x7FFF),
    }
    for name, bth in found.items():
        yield refused(
            f"no-send/{name}",
            "Counted as malformed, dropped, and never summed.",
            them,
            with_bth(first(them), bth),
            DropReason.MALFORMED,
        )


NO_SENDS = (
    *(opcode for opcode in Opcode if opcode not in UC_SENDS),
    *(0x03, 0x05, 0x06, 0x0A, 0x11, 0x23, 0x25, 0x26, 0x2A, 0x44, 0x64, 0x81, 0xFF),
)
"""Of reliable connections; with immediate data; RDMA WRITEs; ACK; datagrams; CNP; nobody's."""


def flips(values: int) -> Iterator[Case]:
    """One bit is wrong that ICRC covers, or of ICRC itself."""
    them = team(values)
    good = first(them)
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
        yield refused(
            f"icrc/{name}",
            "A bit that has changed on the way: counted by a reason of its own, never summed.",
            them,
            bytes(flipped),
            DROP_ICRC,
        )
    bare = _SENDS.arriving(them.frame(0, 0).build())
    yield refused(
        "icrc/exponents-only",
        "Without values, too, it must be right.",
        them,
        bare[:-1] + bytes([bare[-1] ^ 0x80]),
        DROP_ICRC,
    )
    yield refused(
        "icrc/big-endian",
        "Its bytes are in one order.",
        them,
        good[:-ICRC_BYTES] + good[: -ICRC_BYTES - 1 : -1],
        DROP_ICRC,
    )
    yield refused(
        "icrc/comes-before-what-the-header-says",
        "A header of which a bit is wrong says nothing: not that its version is another.",
        them,
        good[: PAYLOAD_OFFSET + BTH_BYTES] + b"\x01" + good[PAYLOAD_OFFSET + BTH_BYTES + 1 :],
        DROP_ICRC,
    )


def on_the_way(values: int) -> Iterator[Case]:
    """What switches on the way may change, ICRC leaves out."""
    them = team(values)
    for name, offset, number in (
        ("tos", _TOS, 0x2A),
        ("ttl", _TTL, 1),
        ("udp-checksum", _UDP_CHECKSUM, 0xFF),
        ("congestion", _CONGESTION, 0xC0),
    ):
        changed = bytearray(first(them))
        changed[offset] = number
        changed[24:26] = ipv4_checksum(changed[IPV4]).to_bytes(2, "big")
        yield whole_round(
            f"on-the-way/{name}",
            "Changed by a switch on the way, and as good as before.",
            them,
            bytes(changed),
        )


def messages(values: int) -> Iterator[Case]:
    """Results of neighbours are one message where receivers want it so."""
    them = team(values, 2)
    state = tuple(_with_segments(_SENDS.item(item), 3) for item in them.state)
    places = (
        Opcode.UC_SEND_FIRST,
        Opcode.UC_SEND_MIDDLE,
        Opcode.UC_SEND_MIDDLE,
        Opcode.UC_SEND_LAST,
    )
    steps: list[Arrival] = []
    for seq in range(8):
        one, two = (_said(arrival) for arrival in honest_round(them, seq))
        out = tuple((port, _at_place(data, places[seq % 4])) for port, data in two.out)
        steps += [one, two.gives(*out)]
    yield Case(
        "message/of-four",
        "FIRST, MIDDLE, MIDDLE, LAST by the chunk's number, as its packet's number is.",
        values,
        state,
        tuple(steps),
        tally(them, contributions=16, results=8),
        mode=MODE,
    )
    high = 0xFFFF_FFFE
    one, two = (_said(arrival) for arrival in honest_round(them, high))
    yield Case(
        "message/number-wraps",
        "24 bits of the chunk's number are the packet's.",
        values,
        _state(them),
        (one, two),
        tally(them, contributions=2, results=1),
        mode=MODE,
    )


def strangers(values: int) -> Iterator[Case]:
    """Who sends to another queue pair than the controller gave it."""
    them = team(values)
    usual = decode_bth(first(them)[_BTH])
    of_next = _SENDS.switch_qp(them.job.workers[1].udp_port)
    for name, number in (("nobody's", 0x80_0001), ("another-worker's", of_next), ("general", 1)):
        yield refused(
            f"queue-pair/{name}",
            "The queue pair that a worker sends to is its name: no other lets it in.",
            them,
            with_bth(first(them), replace(usual, dest_qp=number)),
            DropReason.MEMBER,
        )


def first(them: Team) -> bytes:
    """The first worker's contribution."""
    return _SENDS.arriving(them.frame(0, 0, them.ones()).build())


def with_bth(data: bytes, bth: Bth) -> bytes:
    """The frame with another BTH, and its ICRC."""
    return sealed(data[: _BTH.start] + encode_bth(bth) + data[_BTH.stop : -ICRC_BYTES])


def whole_round(name: str, about: str, them: Team, data: bytes) -> Case:
    """The first contribution is this frame; the sum leaves all the same."""
    _, *others = (_said(arrival) for arrival in honest_round(them))
    *before, last = others
    counts = tally(them, contributions=3, results=1)
    steps = (Arrival(1, data), *before, last)
    return Case(name, about, them.values, _state(them), steps, counts, mode=MODE)


def refused(name: str, about: str, them: Team, data: bytes, reason: int) -> Case:
    """This frame is dropped; then the round goes on as if it had not come."""
    counts: dict[CounterRef, int] = tally(them, contributions=3, results=1)
    counts[Counter(names.DROPS, reason)] = 1
    steps = (Arrival(1, data), *map(_said, honest_round(them)))
    return Case(name, about, them.values, _state(them), steps, counts, mode=MODE)


def _state(them: Team) -> tuple[AnyItem, ...]:
    return tuple(map(_SENDS.item, them.state))


def _said(arrival: Arrival) -> Arrival:
    out = tuple((port, _SENDS.leaving(data, arrival.frame)) for port, data in arrival.out)
    return Arrival(arrival.port, _SENDS.arriving(arrival.frame), out)


def _with_segments(item: AnyItem, mask: int) -> AnyItem:
    if not isinstance(item, Entry) or item.table != names.RECEIVERS:
        return item
    params = {**dict(item.params), "segment_mask": mask}
    return Entry(item.table, item.match, item.action, tuple(params.items()))


def _at_place(data: bytes, opcode: Opcode) -> bytes:
    return with_bth(data, replace(decode_bth(data[_BTH]), opcode=opcode))
