"""Ways to make a contribution wrong: in its header, and in its frame."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ina.protocol import serial
from ina.protocol.codec import Header
from ina.protocol.roce import ipv4_checksum
from ina.protocol.spec import HEADER_BYTES, VALUES_PER_PACKET_BUILDS
from ina.testing.frames import IPV4, PAYLOAD_OFFSET, PortFrame

Mutation = Callable[[random.Random, int, bytes], PortFrame]


def mutate_header(rng: random.Random, header: Header, values: int) -> dict[str, Any]:
    """Returns fields to change: each choice is one that the switch has a rule for."""
    # A worker that jumps ahead starves its slot until the job starts over: keep it rare.
    jump = rng.choice((1, 2, 40, 2**31 - 1) if rng.random() < 0.05 else (-1, -2, -40, 2**31))
    choices: list[dict[str, Any]] = [
        {"seq": serial.add(header.seq, jump)},
        {"seq": serial.add(header.seq, -rng.randrange(1, 64))},
        {"epoch": (header.epoch + rng.choice((1, -1, 0x100))) % 2**16},
        {"worker": (header.worker + rng.choice((1, -1, 128))) % 256},
        {"job": (header.job + rng.choice((1, -1, 0x100))) % 2**16},
        {"slot": (header.slot + rng.choice((1, -1))) % 2**16},
        {"slot": rng.getrandbits(16)},
        {"version": rng.choice((0, 1, 15))},
        {"kind": rng.choice((0, 2, 3, 4, 5, 6, 15))},
        {"value_count": rng.choice((1, values - 1, values + 1, *VALUES_PER_PACKET_BUILDS, 4095))},
        {"value_count": values - header.value_count},  # the other of the two lengths
        {"level": rng.getrandbits(4), "digest": rng.getrandbits(16)},
        {"contributors": rng.getrandbits(32)},
    ]
    return rng.choice(choices)


def _other_port(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return rng.choice((port + 1, 0, 99)), data


def _changed(data: bytes, offset: int, replacement: bytes, *, resum: bool = True) -> bytes:
    """Returns the frame with some bytes replaced, and with a right IP checksum if ``resum``."""
    changed = bytearray(data)
    changed[offset : offset + len(replacement)] = replacement
    if resum:
        changed[24:26] = ipv4_checksum(changed[IPV4]).to_bytes(2, "big")
    return bytes(changed)


def _other_address(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(data, 26 + rng.randrange(4), rng.randbytes(1))


def _other_udp_source(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(data, 34, rng.randbytes(2))


def _ordinary_traffic(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(data, 36, rng.choice((b"\0\x35", b"\x45\x61", b"\x45\x5f")))


def _not_udp(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(data, 23, rng.choice((b"\x06", b"\x01", b"\x00")))


def _not_ipv4(rng: random.Random, port: int, data: bytes) -> PortFrame:
    changes = ((12, b"\x86\xdd"), (14, b"\x65"), (14, b"\x46"), (14, b"\x44"))
    offset, replacement = rng.choice(changes)
    return port, _changed(data, offset, replacement)


def _fragment(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(
        data, 20, rng.choice((b"\x20\x00", b"\x00\x01", b"\x20\x10", b"\x80\x00"))
    )


def _wrong_ip_checksum(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(data, 24, rng.randbytes(2), resum=False)


def _wrong_ip_length(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(data, 16, rng.randbytes(2))


def _wrong_udp_length(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, _changed(data, 38, rng.choice((b"\0\0", b"\0\x08", b"\xff\xff", rng.randbytes(2))))


def _cut(rng: random.Random, port: int, data: bytes) -> PortFrame:
    """A frame cut off anywhere, its lengths as they were."""
    return port, data[: rng.randrange(len(data))]


def _padded(rng: random.Random, port: int, data: bytes) -> PortFrame:
    return port, data + rng.randbytes(rng.choice((1, 2, 4, 60)))


def _padded_in_ip(rng: random.Random, port: int, data: bytes) -> PortFrame:
    """Bytes behind the datagram that IP counts and UDP does not."""
    padded = data + rng.randbytes(rng.choice((1, 2, 4, 60)))
    return port, _changed(padded, 16, (len(padded) - 14).to_bytes(2, "big"))


def _resized(rng: random.Random, port: int, data: bytes) -> PortFrame:
    """An honest datagram of another length: IP and UDP agree, the ina header does not."""
    about_right = len(data) - PAYLOAD_OFFSET + rng.choice((-4, -1, 1, 4))
    size = rng.choice(
        (0, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, HEADER_BYTES + 4, about_right)
    )
    whole = (data + bytes(64))[: PAYLOAD_OFFSET + size]
    whole = _changed(whole, 38, (len(whole) - 34).to_bytes(2, "big"))
    return port, _changed(whole, 16, (len(whole) - 14).to_bytes(2, "big"))


def _bit_flip(rng: random.Random, port: int, data: bytes) -> PortFrame:
    """One wrong bit, in the headers or anywhere, with the IP checksum made right or not."""
    end = len(data) if rng.random() < 0.5 else PAYLOAD_OFFSET + HEADER_BYTES
    offset = rng.randrange(min(end, len(data)))
    flipped = bytes([data[offset] ^ 1 << rng.randrange(8)])
    return port, _changed(data, offset, flipped, resum=rng.random() < 0.5)


def _noise(rng: random.Random, port: int, data: bytes) -> PortFrame:
    """Random bytes: as a frame, or behind UDP."""
    if rng.random() < 0.3:
        return port, rng.randbytes(rng.choice((0, 1, 13, 14, 33, 41, 60, 400)))
    return port, data[:PAYLOAD_OFFSET] + rng.randbytes(len(data) - PAYLOAD_OFFSET)


MUTATIONS: tuple[Mutation, ...] = (
    _other_port,
    _other_address,
    _other_udp_source,
    _ordinary_traffic,
    _not_udp,
    _not_ipv4,
    _fragment,
    _wrong_ip_checksum,
    _wrong_ip_length,
    _wrong_udp_length,
    _cut,
    _padded,
    _padded_in_ip,
    _resized,
    _bit_flip,
    _noise,
)
