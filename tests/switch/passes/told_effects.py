"""What the analysis of effects must say of each kind of code, in a program of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ina.switch.ir import load_program
from ina.switch.ir.data import Stack
from ina.switch.ir.expr import (
    ArrayFieldRef,
    Binary,
    BoolConst,
    Cast,
    Const,
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
    WholeArray,
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
    Truncate,
    Verify,
)
from ina.switch.passes.effect_places import Effects, Place
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
    (WholeArray("c", 0, 3, 8), "field:c.v0 field:c.v1 field:c.v2", ""),
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
