"""Random packets and entries for the small v1model programs of tests/switch/programs."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ina.protocol.roce import ipv4_checksum
from ina.tables.values import AnyItem, Counter, CounterRef, Entry, Group, MatchValue

FOLDER = Path(__file__).parent.parent / "switch" / "programs"
_EDGES = (0, 1, 0x7F, 0x80, 0xFF)
TAIL_BYTES = 60  # frames on a cable are no shorter, whatever a program takes off


@dataclass(frozen=True)
class Stress:
    """How one program is exercised."""

    name: str
    frame: Callable[[random.Random], bytes]
    state: Callable[[random.Random], list[AnyItem]] = lambda _rng: []
    unsteady: tuple[slice, ...] = ()
    """Bytes of the output that depend on time."""
    counters: tuple[CounterRef, ...] = ()

    def steady(self, frame: bytes) -> bytes:
        """The output without what depends on time."""
        out = bytearray(frame)
        for part in self.unsteady:
            out[part] = bytes(len(out[part]))
        return bytes(out)


def edgy(rng: random.Random, size: int) -> bytes:
    """Bytes at the ends of their range as often as any others."""
    return bytes(
        rng.choice(_EDGES) if rng.random() < 0.5 else rng.getrandbits(8) for _ in range(size)
    )


def arithmetic(rng: random.Random) -> bytes:
    """Every operator; sometimes with equal operands."""
    fields = bytearray(edgy(rng, 96))
    fields[0] = rng.randrange(10)
    if rng.random() < 0.5:
        fields[2] = rng.randrange(140)  # shifts by up to more than the width
    if rng.random() < 0.3:
        fields[8:12] = fields[4:8]
        fields[24:32] = fields[16:24]
    return bytes(fields) + rng.randbytes(rng.randrange(8))


def checksum(rng: random.Random) -> bytes:
    """IP headers with right and wrong sums."""
    head = bytearray(edgy(rng, 20))
    head[0] = rng.choice((0x45, 0x45, 0x45, 0x46, 0x55))
    head[1] = rng.choice((63, 62, 0, 7)) << 2 | rng.randrange(4)
    head[9] = rng.choice((99, 99, 6))
    if rng.random() < 0.7:
        head[10:12] = ipv4_checksum(head).to_bytes(2, "big")
    return bytes(head) + rng.randbytes(TAIL_BYTES)


def any_bytes(rng: random.Random) -> bytes:
    """Nothing but noise."""
    return edgy(rng, rng.randrange(TAIL_BYTES, 128))


def claimed(rng: random.Random) -> bytes:
    """Keys that entries have, and others; slots and kinds that are counted, and others."""
    who, where = rng.choice(((7, 9), (7, 9), (1 << 39, 1), (5, 5), (7, 1)))
    head = bytes((rng.randrange(16), rng.choice((0, 1, 2, 3, 9))))
    return head + who.to_bytes(5, "big") + where.to_bytes(6, "big") + rng.randbytes(TAIL_BYTES)


def claimed_state(_rng: random.Random) -> list[AnyItem]:
    """Owners of both kinds; of kinds some that overlap."""

    def owner(who: int, where: int, *said: int) -> Entry:
        key = ("hdr.claim.who", who), ("hdr.claim.where", where)
        action = "MyIngress.is_known" if said else "MyIngress.is_odd"
        return Entry("MyIngress.owners", key, action, tuple(("value", it) for it in said))

    def kind(priority: int, op: str, slot: str, value: int) -> Entry:
        key = ("hdr.claim.op", op), ("hdr.claim.slot", slot)
        params = (("value", value),)
        return Entry("MyIngress.kinds", key, "MyIngress.is_kind", params, priority)

    return [
        *(owner(7, 9, 1000), owner(1 << 39, 1, 77), owner(5, 5)),
        *(kind(20, "0x1/&0x1", "2...9", 100), kind(10, "0x3/&0x3", "0...15", 200)),
        *(kind(30, "0x2/&0xff", "9...10", 300), kind(5, "0x0/&0xfe", "1...14", 400)),
    ]


def main_path(rng: random.Random) -> bytes:
    """Each op, each kind of second header; group 1 for op 4.

    Op 3 reads a field of the second header. P4 leaves open what is read where that is not valid
    (BMv2: what the last packet had), so there it is.
    """
    op = rng.randrange(6)
    kind = rng.choice((1, 1, 0x0100 | rng.getrandbits(8), rng.getrandbits(16)))
    if op == 3:
        kind = 1
    inner = edgy(rng, 5) + rng.choice((b"\0", b"\1"))
    return bytes([rng.getrandbits(8), op]) + kind.to_bytes(2, "big") + inner + edgy(rng, 60)


def metadata(rng: random.Random) -> bytes:
    """Each way of dropping, and none; all else goes to group 7."""
    return bytes([rng.randrange(5), rng.randrange(9)]) + rng.randbytes(TAIL_BYTES)


def names(rng: random.Random) -> bytes:
    """Indices within the smallest register, keys that entries have and others."""
    keys = bytes([rng.randrange(4), rng.getrandbits(8), rng.choice((9, rng.getrandbits(8)))])
    return keys + rng.randbytes(1 + TAIL_BYTES)


def names_state(_rng: random.Random) -> list[AnyItem]:
    """The table whose name a counter and a register have, too."""
    return [Entry("MyIngress.one", (("hdr.gathered.linux", 3),), "MyIngress.set", (("value", 42),))]


def parsing(rng: random.Random) -> bytes:
    """Every path of the parser, and verify.

    Not a packet that no transition fits: P4 asks for error.NoMatch, which the soft switch sets and
    BMv2 does not.
    """
    start = rng.choice((0x10, 0x20, 0x30, 0x40, 0x50, 0x60)) | rng.getrandbits(4)
    second = rng.choice((0xFF, rng.getrandbits(8)))
    if second == 0xFF and rng.random() < 0.5:
        start |= 0x0F
    return bytes([start, second]) + rng.choice((b"\xbe\xef", rng.randbytes(2))) + edgy(rng, 64)


def registers(rng: random.Random) -> bytes:
    """Reads and writes of a few indices, none out of range: that ends BMv2 1.15."""
    index = rng.choice((0, 1, 2, 7))
    return struct.pack(">BII", rng.choice((0, 1, 1, 2, 3)), index, 0) + edgy(rng, 64 + 4)


def replicate(rng: random.Random) -> bytes:
    """Unicast, multicast, and drops; without truncate, whose 10 bytes no cable carries."""
    op = rng.choice((0, 0, 1, 2, 3, 4))
    head = struct.pack(">BBH", op, rng.randrange(1, 9), rng.choice((0, 5, 5)))
    return head + bytes(23) + rng.randbytes(TAIL_BYTES)


def replicate_state(_rng: random.Random) -> list[AnyItem]:
    """A group with two copies to one port."""
    return [Group(5, ((2, 20), (3, 30), (2, 21)))]


def stack(rng: random.Random) -> bytes:
    """One to six labels, each operation, indices within the stack."""
    labels = [rng.getrandbits(8) & 0xFE for _ in range(rng.randrange(6))] + [rng.getrandbits(8) | 1]
    return bytes([rng.randrange(6), rng.randrange(4), 0, *labels]) + rng.randbytes(TAIL_BYTES)


def tables(rng: random.Random) -> bytes:
    """Keys that entries have, and others beside them."""
    a = rng.choice((0x0A000001, 0x0A000002, 0x0A0B0C0D, rng.getrandbits(32)))
    b = rng.choice((0x0100, 0x0101, 0x0807, 500, rng.getrandbits(16)))
    c = rng.choice((0, 1, 7, 9, 10, rng.getrandbits(8)))
    return struct.pack(">IHBBH", a, b, c, rng.randrange(6), 0) + rng.randbytes(TAIL_BYTES)


def tables_state(rng: random.Random) -> list[AnyItem]:
    """Entries of each match kind; no two with equal priority overlap."""
    made: list[AnyItem] = []

    def entry(table: str, priority: int = 0, **match: MatchValue) -> None:
        fields = tuple((f"hdr.k.{name}", value) for name, value in match.items())
        value = (("value", rng.getrandbits(16)),)
        made.append(Entry(f"MyIngress.{table}", fields, "MyIngress.set", value, priority))

    for a, b in ((0x0A000001, 0x0100), (0x0A000002, 500), (0x0A0B0C0D, 0x0807)):
        entry("exact_t", a=a, b=b)
    for prefix in ("10.0.0.0/8", "10.11.0.0/16", "10.0.0.1/32", "10.0.0.0/31"):
        for c in (0, 7):
            entry("lpm_t", a=prefix, c=c)
    entry("ternary_t", 10, a="0x0a000000/&0xff000000", b="0x0100/&0xff00")
    entry("ternary_t", 20, a="0x00000001/&0x00000001")
    entry("ternary_t", 30, b="0x0001/&0x0001")
    entry("ternary_t", 5, a="0x0a0b0c0d/&0xffffffff")
    entry("range_t", 10, b="0...499", c=7)
    entry("range_t", 20, b="300...600", c=7)
    entry("range_t", 5, b="1...65535", c=1)
    entry("optional_t", 10, a=0x0A000001)
    entry("optional_t", 20, c=7)
    entry("optional_t", 30, a=0x0A000002, c=9)
    return made


def usual(rng: random.Random) -> bytes:
    """Packets that ingress takes, and some with something wrong that it tests first."""
    op, total = rng.randrange(14), rng.choice((16, 16, 16, 17))
    value = rng.choice((9, 10, rng.getrandbits(32)))
    words = 8 + total + (value >> 16) + (value & 0xFFFF)
    csum = rng.choice((0, 0, 0, 1)) ^ (0xFFFF - (words & 0xFFFF) - (words >> 16)) % 0x10000
    head = rng.choice((0x50, 0x50, 0x50, 0x58, 0x40)) | rng.randrange(8)
    kind = rng.choice((0x0800, 0x0800, 0x0900)) | rng.getrandbits(8)
    fields = rng.choice((7, 7, 7, 8)), kind, head, op, 8, total, csum, value
    return struct.pack(">HHBBHHHI", *fields) + bytes(rng.choice((TAIL_BYTES, 104, 105)))


def usual_state(_rng: random.Random) -> list[AnyItem]:
    """A port for each of some operations."""
    return [
        Entry("MyIngress.ops", (("hdr.head.op", op),), "MyIngress.set", (("port", op % 4 + 4),))
        for op in range(10)
    ]


def entries(rng: random.Random) -> bytes:
    """Of a flow with an entry in most cases; on every way through ingress."""
    low = rng.choice((0x22, 0x20, rng.getrandbits(8)))
    head = bytes((rng.randrange(5), rng.randrange(10), low, rng.choice((7, 99, 100, 101, 255))))
    return head + rng.randbytes(5) + bytes(TAIL_BYTES)


def entries_state(_rng: random.Random) -> list[AnyItem]:
    """A flow for each action."""
    said = (
        ("both", (("left", 201), ("right", 40000))),
        ("one", (("left", 17),)),
        ("flagged", ()),
        ("nothing", ()),
    )
    flows: list[AnyItem] = [
        Entry("MyIngress.flows", (("hdr.head.flow", flow),), f"MyIngress.{action}", params)
        for flow, (action, params) in enumerate(said)
    ]
    return [*flows, Group(1, ((2, 1), (3, 2)))]


STRESSES = (
    Stress("arithmetic", arithmetic),
    Stress("checksum", checksum),
    Stress(
        "claimed",
        claimed,
        claimed_state,
        counters=(
            *(Counter("MyIngress.claims", index) for index in range(16)),
            *(Counter("MyIngress.taken", index) for index in range(4)),
        ),
    ),
    Stress("entries", entries, entries_state),
    Stress("hashes", any_bytes),
    Stress("main_path", main_path, lambda _rng: [Group(1, ((2, 5), (3, 6), (2, 7)))]),
    Stress("metadata", metadata, lambda _rng: [Group(7, ((2, 1), (5, 2)))]),
    Stress("names", names, names_state),
    Stress("parsing", parsing),
    Stress(
        "registers",
        registers,
        counters=tuple(Counter("MyIngress.ops", index) for index in range(4)),
    ),
    Stress("replicate", replicate, replicate_state, unsteady=(slice(8, 12), slice(16, 22))),
    Stress("stack", stack),
    Stress("tables", tables, tables_state),
    Stress(
        "usual",
        usual,
        usual_state,
        counters=tuple(Counter("MyIngress.drops", index) for index in range(8)),
    ),
)
