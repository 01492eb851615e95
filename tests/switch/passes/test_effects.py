"""The analysis that all passes ask: what each kind of code reads and changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import pytest

from ina.switch.errors import UnlistedKindError
from ina.switch.ir.expr import (
    Const,
    Expr,
    FieldRef,
    InPacket,
    Valid,
)
from ina.switch.ir.program import Checksum
from ina.switch.ir.stmt import (
    Apply,
    Assign,
    CopyHeader,
    Count,
    Exit,
    HeaderRef,
    If,
    Loop,
    RegisterWrite,
    Stmt,
    Truncate,
)
from ina.switch.passes.effect_rules import RULES
from ina.switch.passes.effects import effects, effects_before, effects_outside, of_iteration
from tests.switch.passes.told_effects import (
    EXPECTED,
    LOCAL,
    PROGRAM,
    REGISTER,
    RUN,
    V2,
    M,
    X,
    Y,
    told,
    wanted,
)


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
