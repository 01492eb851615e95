"""One feature at a time: exact outputs, worked out by hand."""

from __future__ import annotations

import binascii
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from ina.switch.errors import EntryNotFoundError, InvalidEntryError
from ina.switch.match import Exact
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import PROGRAMS, Load, csum16


def only(packets: list[tuple[int, bytes]]) -> bytes:
    [(port, packet)] = packets
    assert port == 1
    return packet


@pytest.mark.parametrize(
    ("op", "index", "labels", "seen", "out"),
    [
        (0, 0, "0204 07", 0, "0204 07"),
        (1, 0, "0204 07", 0, "aa 0204 07"),  # push: 0x55 << 1
        (1, 0, "02040609", 0, "aa 020406"),  # the fourth falls off
        (2, 0, "02040609", 0, "0609"),  # pop 2
        (2, 0, "09", 0, ""),
        (3, 1, "0204 07", 0, "0222 07"),  # labels[1].value = 0x11
        (3, 9, "0204 07", 0, "0204 07"),  # outside the stack: nothing
        (4, 0, "0205", 0, "0205 02"),  # labels[3] = labels[0]
        (5, 0, "0204 07", 0, "0207"),  # labels[1] invalid
        (0, 0, "02040608", 1, "02040608"),  # a fifth label: stack out of bounds
        (0, 0, "0204", 2, "0204"),  # no last label: packet too short
    ],
)
def test_header_stacks(load: Load, op: int, index: int, labels: str, seen: int, out: str) -> None:
    packet = bytes([op, index, 0]) + bytes.fromhex(labels)
    tail = b"" if seen == 2 else b"\xf0\xf1"
    assert only(load("stack").process(0, packet + tail)) == (
        bytes([op, index, seen]) + bytes.fromhex(out) + tail
    )


def ip_header(dscp: int = 0, ihl: int = 5, proto: int = 6, csum: int | None = None) -> bytearray:
    head = bytearray(
        struct.pack(
            ">BBHHHBBHII", 0x40 | ihl, dscp << 2 | 1, 60, 0xABCD, 0x4000, 64, proto, 0,
            0x0A000001, 0xC0A80102,
        )
    )  # fmt: skip
    head[10:12] = (csum16(head) if csum is None else csum).to_bytes(2, "big")
    return head


def after(head: bytearray, *, wrong: int, update: bool = True) -> bytes:
    """What the program makes of a header: id tells of an error, ttl goes down, checksum follows."""
    out = bytearray(head)
    out[4:6], out[8] = wrong.to_bytes(2, "big"), head[8] - 1
    if update:
        out[10:12] = bytes(2)
        out[10:12] = csum16(out).to_bytes(2, "big")
    return bytes(out)


def test_checksums_are_verified_and_updated(load: Load) -> None:
    process = load("checksum").process
    good = ip_header()
    assert only(process(0, bytes(good) + b"xyz")) == after(good, wrong=0) + b"xyz"
    bad = ip_header(csum=0x1234)
    assert only(process(0, bytes(bad))) == after(bad, wrong=1)
    other = ip_header(ihl=6, csum=0x1234)  # the condition does not hold: not verified
    assert only(process(0, bytes(other))) == after(other, wrong=0)
    skipped = ip_header(dscp=63)  # not updated
    assert only(process(0, bytes(skipped))) == after(skipped, wrong=0, update=False)


def test_a_checksum_over_two_headers(load: Load) -> None:
    process = load("checksum").process
    made = ip_header(dscp=62)
    extra = bytes.fromhex("abcd 0000 123456789abc")
    want = csum16(extra + bytes(made[12:16]))
    assert only(process(0, bytes(made))) == (
        after(made, wrong=0) + extra[:2] + want.to_bytes(2, "big") + extra[4:]
    )
    parsed = ip_header(proto=99)
    sent = bytes.fromhex("0102 ffff 030405060708")
    want = csum16(sent[:2] + sent[4:] + bytes(parsed[12:16]))
    assert only(process(0, bytes(parsed) + sent)) == (
        after(parsed, wrong=0) + sent[:2] + want.to_bytes(2, "big") + sent[4:]
    )


REPLICATE = ">BBHHHII6sIB"


def replicate(op: int, port: int, group: int) -> bytes:
    return struct.pack(REPLICATE, op, port, group, 0, 0, 0, 0, bytes(6), 0, 0)


def test_multicast_runs_egress_for_each_copy(load: Load) -> None:
    pipeline = load("replicate")
    pipeline.set_multicast(5, [(2, 20), (3, 30), (2, 21)])
    out = pipeline.process(7, replicate(0, 9, 5) + b"pay", now_ns=7_000_999)
    length = struct.calcsize(REPLICATE) + 3
    stamp = (7000).to_bytes(6, "big")
    want = [(2, 20, 0), (3, 30, 0), (2, 21, 1)]  # port, rid, queue depth: port 2 has one already
    assert out == [
        (p, struct.pack(REPLICATE, 0, 9, 5, rid, p, depth, 5, stamp, length, 1) + b"pay")
        for p, rid, depth in want
    ]
    dropped_on_2 = pipeline.process(7, replicate(4, 9, 5))
    assert [port for port, _ in dropped_on_2] == [3]
    pipeline.set_multicast(5, [])
    assert pipeline.process(7, replicate(0, 9, 5)) == []


def test_drop_and_multicast_precedence(load: Load) -> None:
    pipeline = load("replicate")
    pipeline.set_multicast(5, [(2, 20)])
    assert pipeline.process(0, replicate(1, 9, 5)) == []  # mark_to_drop clears mcast_grp
    assert [p for p, _ in pipeline.process(0, replicate(2, 9, 5))] == [2]  # set again afterwards
    assert [p for p, _ in pipeline.process(0, replicate(3, 9, 0))] == [5]  # egress_spec afterwards
    assert [p for p, _ in pipeline.process(0, replicate(0, 9, 0))] == [9]
    [(_, short)] = pipeline.process(0, replicate(5, 9, 0))
    assert len(short) == 10  # truncate
    with pytest.raises(InvalidEntryError, match="group 0"):
        pipeline.set_multicast(0, [(1, 1)])
    with pytest.raises(InvalidEntryError, match="out of range"):
        pipeline.set_multicast(1, [(512, 1)])


def registers(op: int, index: int, values: list[int] | None = None, before: int = 0) -> bytes:
    packed = b"" if values is None else struct.pack(">16I", *values)
    return struct.pack(">BII", op, index, before) + packed


def test_fused_registers_sum_values(load: Load) -> None:
    pipeline = load("registers")
    first = [n * 0x11111111 & 0xFFFFFFFF for n in range(16)]
    second = [0xFFFFFFFF - n for n in range(16)]
    sums = [(a + b) & 0xFFFFFFFF for a, b in zip(first, second, strict=True)]
    assert (
        only(pipeline.process(0, registers(0, 31, first) + b"t")) == registers(0, 31, first) + b"t"
    )
    assert only(pipeline.process(0, registers(1, 31, second))) == registers(1, 31, sums, before=1)
    assert pipeline.register("MyIngress.value_7", 31) == sums[7]
    assert pipeline.register("MyIngress.rounds", 31) == 2
    assert pipeline.register("MyIngress.value_7", 30) == 0
    larger = [max(a, b) for a, b in zip(sums, first, strict=True)]
    assert only(pipeline.process(0, registers(2, 31, first))) == registers(2, 31, larger)
    assert pipeline.counter("MyIngress.ops", 1) == (1, 9 + 64)


def test_indices_out_of_range_touch_nothing(load: Load) -> None:
    pipeline = load("registers")
    values = list(range(1, 17))
    for index in (32, 0xFFFFFFFF):
        assert only(pipeline.process(0, registers(1, index, values))) == registers(1, index, values)
    assert all(pipeline.register("MyIngress.value_0", i) == 0 for i in range(32))
    assert only(pipeline.process(0, registers(9, 0))) == registers(9, 0)  # counter index 9 of 4
    assert [pipeline.counter("MyIngress.ops", i)[0] for i in range(4)] == [0, 2, 0, 0]
    with pytest.raises(EntryNotFoundError):
        pipeline.counter("MyIngress.ops", 4)
    with pytest.raises(EntryNotFoundError):
        pipeline.register("MyIngress.value_0", 32)


def test_narrow_registers_wrap(load: Load) -> None:
    pipeline = load("registers")
    seen = [
        struct.unpack_from(">I", only(pipeline.process(0, registers(3, 2, [0] * 16))), 5)[0]
        for _ in range(5)
    ]
    assert seen == [0, 9, 18, 27, 4]  # bit<5>


@pytest.mark.parametrize(
    ("packet", "code", "rest"),
    [
        ("1abc 0001ff", 1, "1abc 000100"),
        ("2111 99", 2, "2111 99"),  # first byte 0x21 & 0xf0 == 0x20
        ("3111 eeee 000105", 3, "3111 000106"),  # advance skips (and so loses) two bytes
        ("4111 0001", 4, "4111 0001"),
        ("6111 beef 07", 1, "6111 beef 08"),
        ("7111", 0xE2, "7111"),  # no transition fits
        ("1fff 000105", 0xE3, "1fff 000105"),  # verify fails: b stays payload
        ("1abc 0001", 0xE1, "1abc 0001"),  # too short for b
        ("3111 ee", 0xE1, "3111 ee"),  # too short to advance
        ("4111 be", 0xE1, "4111 be"),  # too short to look ahead
        ("1a", 0xE1, "1a"),
        ("", 0xE1, ""),
    ],
)
def test_parsing(load: Load, packet: str, code: int, rest: str) -> None:
    out = only(load("parsing").process(0, bytes.fromhex(packet)))
    assert out == bytes([code]) + bytes.fromhex(rest)


def crc16_arc(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def test_hashes(load: Load) -> None:
    assert crc16_arc(b"123456789") == 0xBB3D  # the published check value
    data = bytes.fromhex("0a000001 1234 5e")  # a, b, and c ++ d in one byte
    out = only(load("hashes").process(0, data + bytes(18)))
    crc16, crc32, csum, xor, same = struct.unpack(">HIHHQ", out[7:])
    assert crc16 == crc16_arc(data)
    assert crc32 == binascii.crc32(data)
    assert csum == csum16(data + b"\0")
    assert xor == 0x0A00 ^ 0x0001 ^ 0x1234 ^ 0x5E00
    assert same == 0x0A0000011234 % 1000 + 5


def test_drops_are_of_the_metadata_that_is_given(load: Load) -> None:
    pipeline = load("metadata")
    pipeline.set_multicast(7, [(2, 20)])
    assert pipeline.process(0, b"\x00\x05") == [(2, b"\x00\x05")]
    assert pipeline.process(0, b"\x01\x05") == []  # a copy, which is copied back
    assert pipeline.process(0, b"\x02\x05") == [(2, b"\x02\x05")]  # a copy that nobody reads
    assert pipeline.process(0, b"\x03\x05") == []  # egress's own


def test_names_that_c_cannot_have(load: Load) -> None:
    """A table, a counter and a register of one name; names that are words and macros of C."""
    pipeline = load("names")
    pipeline.insert("MyIngress.one", [Exact(3)], "MyIngress.set", [42])
    assert only(pipeline.process(0, bytes([3, 0, 0, 7]))) == bytes([3, 42, 0, 0])
    assert only(pipeline.process(0, bytes([3, 0, 9, 7]))) == bytes([3, 99, 9, 0])
    assert pipeline.register("MyIngress.one", 3) == 3
    assert pipeline.counter("MyIngress.one", 2)[0] == 2
    assert [pipeline.register(name, 1) for name in ("p", "S", "UINT32_MAX")] == [0, 3, 3]
    assert pipeline.register("p", 3) == 2


@pytest.mark.parametrize("end", ["\\", "\n#error", "*/\n#error", "\r#error", "\x00", "é", '"'])
def test_names_of_any_characters_stay_in_comments(end: str, cache_dir: Path) -> None:
    """`@name` and file names may hold what C would read: none is code, none hides the next line."""
    program = json.loads((PROGRAMS / "names.json").read_text())
    tables = {table["name"] for pipeline in program["pipelines"] for table in pipeline["tables"]}
    registers = {register["name"] for register in program["register_arrays"]}
    actions = {action["name"] for action in program["actions"]}
    others = {program["program"], "start", "hdr.gathered.linux"}

    def renamed(node: Any) -> Any:
        if isinstance(node, dict):
            return {renamed(key): renamed(value) for key, value in node.items()}
        if isinstance(node, list):
            return [renamed(item) for item in node]
        return node + end if node in {*tables, *registers, *actions, *others} else node

    with default_target(cache_dir).load(json.dumps(renamed(program))) as pipeline:
        pipeline.insert("MyIngress.one" + end, [Exact(3)], "MyIngress.set" + end, [42])
        assert only(pipeline.process(0, bytes([3, 0, 0, 7]))) == bytes([3, 42, 0, 0])
        assert only(pipeline.process(0, bytes([3, 0, 9, 7]))) == bytes([3, 99, 9, 0])
        assert pipeline.register("MyIngress.one" + end, 3) == 3
