"""Tests that ingress begins with are made at once; packets that fail one still do what they did."""

from __future__ import annotations

import random
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from ina.switch.ir import load_program
from ina.switch.ir.expr import Binary, Const, FieldRef, StackFieldRef, Unary
from ina.switch.ir.load import read_json
from ina.switch.ir.stmt import Apply, Assign, Block, If, RegisterRef, RegisterWrite, Stmt
from ina.switch.match import Exact
from ina.switch.passes.early import early_tables
from ina.switch.passes.main_path import find_parser_path, main_ingress
from ina.switch.passes.usual import Usual, usual_way
from ina.switch.passes.windows import split
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import PROGRAMS

A, B = FieldRef("h", "a", 8), FieldRef("h", "b", 8)
LITTLE = (Assign(B, Const(1)),)
MUCH = (RegisterWrite(RegisterRef("r"), Const(0), Const(1)),)


PROGRAM = load_program(PROGRAMS / "usual.json")


def without_gates(block: Block, known: dict[tuple[str, str], int]) -> Usual:
    return usual_way(PROGRAM, block, known, lambda *_: None)


def equal(field: FieldRef, value: int) -> Binary:
    return Binary("==", field, Const(value))


def test_tests_with_a_light_way_become_conditions() -> None:
    total = Binary("!=", B, Binary("&", Binary("+", A, Const(300)), Const(255)))
    inner = If(Binary("or", Binary("!=", A, Const(5)), total), LITTLE, MUCH)
    usual = without_gates((If(equal(A, 9), LITTLE, (inner, *LITTLE)), *MUCH), {})
    assert usual.conditions == (Binary("!=", A, Const(9)), equal(A, 5), equal(B, 49))
    assert usual.known == {("h", "a"): 5, ("h", "b"): 49}
    assert usual.rest == (*MUCH, *LITTLE, *MUCH)


@pytest.mark.parametrize(
    "first",
    [
        If(equal(A, 1), MUCH, MUCH),
        If(equal(A, 1), LITTLE, ()),
        If(Binary("==", StackFieldRef("s", None, "f", 8), Const(1)), LITTLE, MUCH),
        Assign(A, Const(1)),
    ],
)
def test_other_beginnings_stay(first: Stmt) -> None:
    block = (first, If(equal(A, 1), LITTLE, MUCH))
    usual = without_gates(block, {})
    assert usual.conditions == ()
    assert usual.rest == block


def test_a_way_that_no_packet_goes_is_not_taken() -> None:
    block = (If(Unary("not", equal(A, 4)), LITTLE, MUCH),)
    assert without_gates(block, {("h", "a"): 3}).rest == block
    assert without_gates(block, {("h", "a"): 4}).rest == MUCH


def test_a_table_that_most_packets_hit_is_a_gate() -> None:
    done = (Assign(B, Const(7)),)
    inner = If(equal(A, 1), (If(equal(B, 7), MUCH, LITTLE),), LITTLE)
    usual = usual_way(PROGRAM, (Apply("own", on_hit=(inner,)), *LITTLE), {}, lambda *_: done)
    assert usual.gates == ("own",)
    assert usual.given == done
    assert usual.conditions == (equal(A, 1),)  # the other is known
    assert usual.known == {("h", "a"): 1}  # when the block begins: nothing of what the gate does
    assert usual.rest == (*done, *MUCH, *LITTLE)


@pytest.mark.parametrize(
    "table",
    [
        Apply("own", on_hit=LITTLE),
        Apply("own", on_hit=MUCH, on_miss=MUCH),
        Apply("own", on_action=((1, MUCH),)),
    ],
)
def test_other_tables_are_none(table: Apply) -> None:
    assert usual_way(PROGRAM, (table,), {}, lambda *_: ()).gates == ()
    assert without_gates((Apply("own", on_hit=MUCH),), {}).gates == ()


@pytest.mark.parametrize(
    ("masked", "size", "end", "parts"),
    [
        ([12, 53], 322, 66, [(2, 64)]),
        ([0, 63], 64, 64, [(0, 64)]),
        ([0, 90], 100, 100, [(0, 64), (36, 64)]),
        ([3], 10, 10, [(3, 1)]),
        ([1, 2, 3, 8], 10, 10, [(1, 8)]),
        ([], 10, 10, []),
    ],
)
def test_windows_hold_every_masked_byte(
    masked: list[int], size: int, end: int, parts: list[tuple[int, int]]
) -> None:
    got = split([int(number in masked) for number in range(size)], end)
    assert got == parts
    covered = {number for first, length in got for number in range(first, first + length)}
    assert covered >= set(masked)
    assert all(first + length <= end for first, length in got)


def test_a_table_is_looked_up_early_if_nothing_can_change_its_key() -> None:
    program = load_program(read_json(PROGRAMS / "usual.json"))
    [table] = program.tables
    op, apply = table.keys[0].value, Apply(table.name)
    assert isinstance(op, FieldRef)
    reason = FieldRef("scalars", "meta_t.reason", 8)

    in_packet = {(op.header, op.field)}

    def early(*ingress: Stmt) -> list[str]:
        changed = replace(program, ingress=ingress)
        path = find_parser_path(changed)
        assert path is not None
        return early_tables(changed, main_ingress(changed, path).block, in_packet)

    assert early(*program.ingress) == [table.name]
    assert early_tables(program, (apply,), frozenset()) == []
    assert early(apply) == [table.name]
    assert early(Assign(reason, Const(1)), apply) == [table.name]
    assert early(Assign(op, Const(1)), apply) == []
    assert early(apply, Assign(op, Const(1))) == [table.name]  # later
    assert early(apply, apply) == []
    assert early(If(equal(op, 1), (apply,), (Assign(reason, Const(1)),))) == [table.name]
    assert early(Assign(reason, Const(1)), If(equal(op, 1), (apply,), ())) == []


def test_packets_do_the_same_with_and_without_a_main_path(
    cache_dir: Path,
) -> None:
    program = PROGRAMS / "usual.json"
    fast = default_target(cache_dir).load(program)
    plain = default_target(cache_dir).load(program, main_path=False)
    assert fast.generated is not None
    source = fast.generated.read_text()
    start = source.partition("bool parse_main")[2].partition("\n}")[0]
    assert "ina_matches" in start
    assert "packet_length <= 0x78" in start
    body = source.partition("void ingress_main")[2].partition("\n}")[0]
    assert not re.search(r"version == 5|ingress_port|checksum_error", body)
    try:
        for pipeline in (fast, plain):
            for op in range(12):
                pipeline.insert("MyIngress.ops", [Exact(op)], "MyIngress.set", [op + 10])
        rng = random.Random(5)
        usual = 0
        for _ in range(400):
            frames = [(rng.choice([5, 6, 7]), packet(rng)) for _ in range(10)]
            got = fast.process_batch(frames)
            assert got == plain.process_batch(frames)
            usual += sum(port >= 10 for port, _ in got)
        assert 200 < usual < 3800  # both ways were gone
        for index in range(16):
            assert fast.counter("MyIngress.drops", index) == plain.counter("MyIngress.drops", index)
            assert fast.register("MyIngress.sums", index) == plain.register("MyIngress.sums", index)
        assert fast.counter("MyIngress.drops", 2)[0] > 0
        assert fast.counter("MyIngress.drops", 3)[0] > 0
    finally:
        fast.close()
        plain.close()


def packet(rng: random.Random) -> bytes:
    """A sound packet, in most cases with one or two things wrong."""
    length, total, value = 8, 16, rng.choice([9, 10, rng.randrange(1 << 32)])
    words = length + total + (value >> 16) + (value & 0xFFFF)
    csum = 0xFFFF - (words & 0xFFFF) - (words >> 16)
    fields = [7, 0x0800 + rng.randrange(256), 0x50 | rng.randrange(8), rng.randrange(14)]
    data = bytearray(struct.pack(">HHBBHHHI", *fields, length, total, csum % 0x10000, value))
    for _ in range(rng.choice([0, 0, 1, 2])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    data += bytes(rng.choice([0, 3, 104, 105]))
    return bytes(data[: rng.choice([len(data)] * 9 + [rng.randrange(17)])])
