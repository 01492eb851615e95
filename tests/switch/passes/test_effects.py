"""The analysis that all passes ask: what each kind of code reads and changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, get_args

import pytest

from ina.switch.errors import UnlistedKindError
from ina.switch.ir import load_program
from ina.switch.ir.data import Stack
from ina.switch.ir.expr import (
    ArrayFieldRef,
    Binary,
    BoolConst,
    Cast,
    Const,
    Expr,
    FieldRef,
    InPacket,
    LocalRef,
    Lookahead,
    ParamRef,
    Select,
    StackFieldRef,
    StackInfo,
    StackValid,
    Unary,
    Valid,
)
from ina.switch.ir.program import Checksum, Program
from ina.switch.ir.stmt import (
    Advance,
    Apply,
    Assign,
    CopyHeader,
    CopyStack,
    Count,
    Exit,
    Extract,
    Hash,
    HashInput,
    HeaderRef,
    If,
    Loop,
    RegisterRead,
    RegisterRef,
    RegisterWrite,
    SetValid,
    ShiftStack,
    Stmt,
    Truncate,
    Verify,
)
from ina.switch.passes.effect_places import Effects, Place
from ina.switch.passes.effect_rules import RULES
from ina.switch.passes.effects import effects, effects_before, effects_outside, of_iteration
from tests.switch.bmv2 import Builder, apply, assign, state


def program() -> Program:
    """Headers a, b, c (eight fields) and a stack s of two; a table T on b.x whose entry sets m."""
    fields = [("x", 8), ("y", 8)]
    names = ["a", "b", "s0", "s1"]
    built = load_program(
        Builder(
            headers={**dict.fromkeys(names, fields), "c": [(f"v{i}", 8) for i in range(8)]},
            parser=[state("start", ["a"])],
            metadata=[("m", 8)],
            actions={"set": ([], [assign("meta.m", 1), assign("a.y", "a.x")])},
            tables={"T": (["b.x"], ["set"])},
            ingress=[apply("T")],
        ).json()
    )
    stack = Stack("s", built.headers["a"].type, ("s0", "s1"))
    return replace(built, stacks={"s": stack})


PROGRAM = program()
X, Y, M = FieldRef("a", "x", 8), FieldRef("a", "y", 8), FieldRef("meta", "m", 8)
V2, LOCAL = ArrayFieldRef("c", 2, 8), LocalRef("l", 8)
REGISTER, RUN = RegisterRef("r"), RegisterRef("r", ("r", "q"))
AT_M, LAST = StackFieldRef("s", M, "x", 8), StackFieldRef("s", None, "x", 8)
ELEMENT = HeaderRef("s", M)
INPUTS = (HashInput(X, 8, "a"), HashInput(M, 8))
SUM = Checksum(FieldRef("b", "y", 8), INPUTS, Valid("a"), verify=False, update=False)


def all_of(*names: str) -> str:
    return " ".join(f"field:{name} valid:{name} wire:{name}" for name in names)


EXPECTED: list[tuple[Any, str, str]] = [
    # what, reads, writes: of what is surely set "=" and of what may be "~"; "!" may leave
    (Const(1), "", ""),
    (BoolConst(True), "", ""),
    (ParamRef(0, 8), "", ""),
    (X, "field:a.x", ""),
    (InPacket("a", "x", 8), "wire:a", ""),
    (AT_M, "field:s0.x field:s1.x field:meta.m", ""),
    (LAST, "field:s0.x field:s1.x fill:s", ""),
    (LOCAL, "local:l", ""),
    (V2, "field:c.v2", ""),
    (Lookahead(0, 8), "cursor", ""),
    (Valid("a"), "valid:a", ""),
    (StackValid("s", M), "valid:s0 valid:s1 field:meta.m", ""),
    (StackInfo("s", "size"), "fill:s", ""),
    (Unary("~", X), "field:a.x", ""),
    (Cast("wrap", X, 8), "field:a.x", ""),
    (Binary("+", X, M), "field:a.x field:meta.m", ""),
    (Select(Valid("b"), X, M), "valid:b field:a.x field:meta.m", ""),
    (Assign(X, M), "field:meta.m", "=field:a.x"),
    (Assign(AT_M, X), "field:a.x field:meta.m", "~field:s0.x ~field:s1.x"),
    (CopyHeader(HeaderRef("a"), HeaderRef("b")), all_of("b"), "~" + all_of("a")),
    (CopyHeader(HeaderRef("a"), ELEMENT), all_of("s0", "s1") + " field:meta.m", "~" + all_of("a")),
    (CopyHeader(ELEMENT, HeaderRef("b")), all_of("b") + " field:meta.m", all_of("s0", "s1")),
    (SetValid(HeaderRef("a"), True), "valid:a", all_of("a") + " length"),
    (SetValid(HeaderRef("a"), False), "valid:a", "valid:a length"),
    (SetValid(ELEMENT, False), "valid:s0 valid:s1 field:meta.m", "valid:s0 valid:s1 length"),
    (CopyStack("s", "s"), all_of("s0", "s1") + " fill:s", all_of("s0", "s1") + " fill:s"),
    (ShiftStack("s", 1), all_of("s0", "s1") + " fill:s", all_of("s0", "s1") + " fill:s"),
    (RegisterRead(X, REGISTER, M), "register:r field:meta.m", "=field:a.x"),
    (RegisterRead(LOCAL, RUN, M), "register:r register:q field:meta.m", "=local:l"),
    (RegisterWrite(REGISTER, M, X), "field:meta.m field:a.x", "register:r"),
    (Count("n", M), "field:meta.m", "counter:n"),
    (Hash(M, "crc32", INPUTS, Y, X), "field:a.x field:a.y field:meta.m valid:a", "=field:meta.m"),
    (
        Hash(M, "crc32", (HashInput(Const(0), 0, payload=True),), Y, X),
        "cursor field:a.x field:a.y",
        "=field:meta.m",
    ),
    (Truncate(M), "field:meta.m", "truncation"),
    (Exit(), "", "!"),
    (
        If(Valid("b"), (Assign(X, M), Assign(Y, M)), (Assign(Y, Const(1)), Exit())),
        "valid:b field:meta.m",
        "field:a.x =field:a.y !",
    ),
    (
        Apply("T", (Assign(X, M),), (SetValid(HeaderRef("b"), False),), ((0, (Exit(),)),)),
        "field:b.x valid:b field:a.x field:meta.m",
        "field:meta.m field:a.y field:a.x valid:b length !",
    ),
    (
        Loop(1, 2, (Assign(V2, LOCAL), Assign(LOCAL, X), RegisterWrite(RUN, M, V2), Exit())),
        "field:a.x field:meta.m field:c.v2 field:c.v3",
        "field:c.v2 field:c.v3 register:r register:q !",
    ),
    (Extract("a", False), "cursor", all_of("a") + " cursor"),
    (Extract("s", True), "cursor fill:s", all_of("s0", "s1") + " cursor fill:s"),
    (Verify(Valid("a"), M), "valid:a field:meta.m", "!"),
    (Advance(M), "field:meta.m cursor", "cursor"),
    (
        replace(SUM, verify=True),
        "field:a.x valid:a field:meta.m field:b.y valid:b",
        "field:standard_metadata.checksum_error",
    ),
    (replace(SUM, update=True), "field:a.x valid:a field:meta.m valid:b", "field:b.y"),
]


def told(places: Iterable[Place]) -> set[str]:
    return {
        place.kind.name.lower()
        + (f":{place.name}" if place.name else "")
        + (f".{place.field}" if place.field else "")
        for place in places
    }


def wanted(text: str) -> tuple[set[str], set[str], bool]:
    """Written, surely set, may leave."""
    words = [word.lstrip("~") for word in text.split()]
    sets = {word[1:] for word in words if word.startswith("=")}
    return {word.lstrip("=") for word in words} - {"!"}, sets, "!" in words


def is_as(done: Effects, reads: str, writes: str) -> bool:
    written = told(done.writes.each), told(done.sets.each), done.leaves
    return told(done.reads.each) == set(reads.split()) and written == wanted(writes)


@pytest.mark.parametrize(("node", "reads", "writes"), EXPECTED)
def test_what_each_kind_reads_and_changes(node: Any, reads: str, writes: str) -> None:
    done = effects(PROGRAM, node)
    assert told(done.reads.each) == set(reads.split())
    assert (told(done.writes.each), told(done.sets.each), done.leaves) == wanted(writes)


def test_each_kind_of_statement_and_expression_has_a_rule_and_a_line_here() -> None:
    kinds = {*get_args(Stmt), *get_args(Expr), InPacket, Checksum}
    assert set(RULES) == kinds
    assert {type(node) for node, _, _ in EXPECTED} == kinds


def test_a_kind_without_a_rule_is_refused_wherever_it_stands() -> None:
    @dataclass(frozen=True)
    class Recirculate:
        target: FieldRef

    with pytest.raises(UnlistedKindError, match=r"says what a Recirculate .*effect_rules\.py"):
        effects(PROGRAM, If(Const(1), (Recirculate(X),), ()))  # type: ignore[arg-type]


def test_a_whole_header_and_its_fields_meet() -> None:
    copied = effects(PROGRAM, CopyHeader(HeaderRef("a"), HeaderRef("b")))
    assert copied.disturb(effects(PROGRAM, X))
    assert not copied.disturb(effects(PROGRAM, FieldRef("b", "x", 8)))
    assert effects(PROGRAM, Assign(FieldRef("b", "x", 8), M)).disturb(copied)


def test_what_loops_walk_is_an_iterations_own() -> None:
    body = (Assign(V2, LOCAL), RegisterWrite(RUN, M, V2), RegisterWrite(REGISTER, M, X))
    done = of_iteration(PROGRAM, Loop(1, 2, body))
    assert told(done.writes.each) == {"element:c", "member:r", "register:r"}
    assert told(of_iteration(PROGRAM, body).reads.each) == {
        "local:l", "element:c", "field:meta.m", "field:a.x"
    }  # fmt: skip


def test_before_a_lookup_is_what_stands_on_the_way_to_it() -> None:
    block = (
        Assign(X, Const(1)),
        If(
            Valid("b"),
            (Assign(Y, Const(1)),),
            (Count("n", Const(0)), Apply("T"), Truncate(Const(1))),
        ),
        Exit(),
    )
    done = effects_before(PROGRAM, block, "T")
    assert told(done.writes.each) == {"field:a.x", "counter:n"}
    assert told(done.reads.each) == {"valid:b", "field:b.x"}
    assert not done.leaves
    outside = effects_outside(PROGRAM, block, "T")
    assert "field:meta.m" not in told(outside.writes.each)
    assert outside.leaves
