"""Packets that are not what they say: cut, padded, of a wrong length, checksum or form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.protocol.roce import ipv4_checksum
from ina.protocol.spec import HEADER_BYTES, VALUES_PER_PACKET_BUILDS, DropReason
from ina.testing.case import Arrival, Case
from ina.testing.cases.actors import tally, team, with_fields
from ina.testing.cases.admission import honest_round
from ina.testing.device import Ability
from ina.testing.frames import ETHERNET_BYTES, IPV4, PAYLOAD_OFFSET, Frame


def cases(values: int) -> Iterator[Case]:
    """Each malformed packet comes first; then an honest round must be exact."""
    them = team(values)
    good = them.frame(0, 0, them.numbers(1))
    for name, data in {**lengths(values, good), **headers(good)}.items():
        yield Case(
            f"malformed/{name}",
            "Frame, IP, UDP and INA lengths must agree: counted, dropped, and never summed.",
            values,
            them.state,
            (Arrival(1, data), *honest_round(them)),
            tally(them, contributions=3, results=1, drops={DropReason.MALFORMED: 1}),
        )
    yield from every_cut(values)
    yield from ordinary(values)


def lengths(values: int, good: Frame) -> dict[str, bytes]:
    """Honest datagrams of a wrong size, and dishonest ones."""
    whole = good.build()
    payload = good.payload
    more = 4 * values + HEADER_BYTES + 4
    about = (HEADER_BYTES - 1, HEADER_BYTES + 1, HEADER_BYTES + 4)
    found = {
        f"payload-of-{size}-bytes": replace(good, payload=(payload + bytes(8))[:size]).build()
        for size in (0, 1, *about, len(payload) - 4, more)
    }
    found["header-alone-announces-values"] = replace(good, payload=payload[:HEADER_BYTES]).build()
    found["jumbo"] = replace(good, payload=payload + bytes(8192 - len(payload))).build()
    other = min((b for b in VALUES_PER_PACKET_BUILDS if b != values), key=lambda b: abs(b - values))
    for count in (0, 1, values - 1, values + 1, other, 4095):
        announced = with_fields(payload, value_count=count)
        found[f"announces-{count}-values"] = replace(good, payload=announced).build()
    for count in (1, 32, values - 1, values + 1, other):
        honest = with_fields((payload + bytes(2048))[: HEADER_BYTES + 4 * count], value_count=count)
        found[f"another-build's-{count}-values"] = replace(good, payload=honest).build()
    for extra in (1, 4, 60):
        found[f"{extra}-bytes-behind"] = whole + bytes(extra)
        counted = changed(whole + bytes(extra), 16, len(whole) + extra - ETHERNET_BYTES)
        found[f"{extra}-bytes-behind-within-ip"] = counted
    for size in (len(whole) - 1, len(whole) - 4, PAYLOAD_OFFSET + HEADER_BYTES, PAYLOAD_OFFSET):
        found[f"cut-to-{size}"] = whole[:size]
    return found


def headers(good: Frame) -> dict[str, bytes]:
    """Wrong IP and UDP headers in front of a good payload."""
    # Without a UDP checksum: over another length it would be wrong, and the frame lost on its way.
    good = replace(good, udp_checksum=0)
    whole = good.build()
    ip_bytes, udp_bytes = len(whole) - ETHERNET_BYTES, len(whole) - IPV4.stop
    return {
        "ip-length-short": changed(whole, 16, ip_bytes - 4),
        "ip-length-long": changed(whole, 16, ip_bytes + 4),
        "ip-length-0": changed(whole, 16, 0),
        "udp-length-short": changed(whole, 38, udp_bytes - 4),
        "udp-length-long": changed(whole, 38, udp_bytes + 4),
        "udp-length-0": changed(whole, 38, 0),
        "udp-length-65535": changed(whole, 38, 0xFFFF),
        "first-fragment": replace(good, fragment=0x2000).build(),
        "ip-checksum-0": replace(good, checksum=0).build(),
        "ip-checksum-off-by-one": changed(
            whole, 24, (int.from_bytes(whole[24:26], "big") + 1) % 65536, resum=False
        ),
    }


def every_cut(values: int) -> Iterator[Case]:
    """A contribution cut after any number of bytes."""
    them = team(values, 1)
    whole = them.frame(0, 0, them.numbers(1)).build()
    for first, last, needs in (
        (0, ETHERNET_BYTES, frozenset({Ability.ANY_FRAME})),
        (ETHERNET_BYTES, PAYLOAD_OFFSET, frozenset()),
        (PAYLOAD_OFFSET, PAYLOAD_OFFSET + 64, frozenset()),
        (len(whole) - 33, len(whole), frozenset()),
    ):
        seen = last - max(first, PAYLOAD_OFFSET) if last > PAYLOAD_OFFSET else 0
        yield Case(
            f"malformed/cut-to-{first}-to-{last - 1}",
            "Cut anywhere: from the end of the UDP header on it is counted, before it is no UDP.",
            values,
            them.state,
            (*(Arrival(1, whole[:size]) for size in range(first, last)), *honest_round(them)),
            tally(them, contributions=1, results=1, drops={DropReason.MALFORMED: seen}),
            needs,
        )


def ordinary(values: int) -> Iterator[Case]:
    """What only resembles an INA packet is ordinary traffic: no drop of ours is counted."""
    them = team(values, 2)
    good = them.frame(0, 0, them.ones())
    whole = good.build()
    options = bytearray(whole[:34] + bytes([1] * 4) + whole[34:])  # NOP options
    options[14] = 0x46
    options[16:18] = (len(options) - ETHERNET_BYTES).to_bytes(2, "big")
    for name, data in {
        "later-fragment": replace(good, fragment=1).build(),
        "ip-options": bytes(options),
        "tcp": changed(whole, 22, 0x3F06),
        "ipv6-ethertype": changed(whole, 12, 0x86DD),
        "ip-version-5": changed(whole, 14, 0x5502),
        "another-udp-port": replace(good, dst_udp=17761).build(),
        "from-our-udp-port": replace(good, src_udp=17760, dst_udp=4000).build(),
    }.items():
        yield Case(
            f"ordinary/{name}",
            "Not for the aggregator: forwarded like any frame, here dropped by the empty tables.",
            values,
            them.state,
            (Arrival(1, data), *honest_round(them)),
            tally(them, contributions=2, results=1),
        )


def changed(data: bytes, offset: int, word: int, *, resum: bool = True) -> bytes:
    """The frame with 16 bits replaced, and with a right IP checksum if ``resum``."""
    out = bytearray(data)
    out[offset : offset + 2] = word.to_bytes(2, "big")
    if resum:
        out[24:26] = ipv4_checksum(out[IPV4]).to_bytes(2, "big")
    return bytes(out)
