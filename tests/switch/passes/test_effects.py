"""The analysis that all passes ask has a rule for each kind of statement; a new one is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import pytest

from ina.switch.errors import UnlistedKindError
from ina.switch.ir import load_program
from ina.switch.ir.expr import Const, Expr, FieldRef, InPacket
from ina.switch.ir.program import Checksum
from ina.switch.ir.stmt import If, Stmt
from ina.switch.passes.effect_rules import RULES
from ina.switch.passes.effects import effects
from tests.switch.emit_c.conftest import PROGRAMS


def test_each_kind_of_statement_and_expression_has_a_rule() -> None:
    assert set(RULES) == {*get_args(Stmt), *get_args(Expr), InPacket, Checksum}


def test_a_kind_without_a_rule_is_refused_wherever_it_stands() -> None:
    @dataclass(frozen=True)
    class Recirculate:
        target: FieldRef

    program = load_program(PROGRAMS / "usual.json")
    new = Recirculate(FieldRef("h", "a", 8))
    with pytest.raises(UnlistedKindError, match=r"says what a Recirculate .*effect_rules\.py"):
        effects(program, If(Const(1), (new,), ()))  # type: ignore[arg-type]
