"""When a packet can leave: never less often than it does, and for most contributions never."""

from __future__ import annotations

from typing import Any

import pytest

from ina.p4 import compiled, names
from ina.switch.ir import load_program
from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import Binary, BoolConst, Const, Expr, FieldRef, Unary
from ina.switch.ir.source import UNKNOWN
from ina.switch.ir.stmt import Apply, Assign, Block, Exit, If, Stmt
from ina.switch.ir.walk import walk
from ina.switch.passes.leaving import with_leaving
from ina.switch.passes.plan import Plan, make_plan
from ina.switch.passes.sections import Section, with_sections
from ina.switch.passes.specialise import Facts, known

SPEC, GROUP = FieldRef(STANDARD, "egress_spec", 9), FieldRef(STANDARD, "mcast_grp", 16)
PORT = FieldRef(STANDARD, "ingress_port", 9)
METADATA, CONTRIBUTES, REPEATS, PARENT = "ina_metadata_t", 2, 3, 5
DROP = (Assign(SPEC, Const(511)), Assign(GROUP, Const(0)))
IS_ONE = Binary("==", PORT, Const(1))
TRUE, FALSE = BoolConst(True), BoolConst(False)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(load_program(compiled(64, names.POOL).bmv2_json))


def leaves(plan: Plan, block: Block) -> Expr:
    """Of the only section in it."""
    found = with_leaving(plan.program, block)
    (section,) = (node for node in walk(found) if isinstance(node, Section))
    return section.leaves


def before(plan: Plan, *rest: Stmt) -> Block:
    """A section with these behind it."""
    section: Any = Section(plan.groups[0], Const(0), (), UNKNOWN)
    return (section, *rest)


@pytest.mark.parametrize(
    ("access", "missing", "can"),
    [
        (CONTRIBUTES, 6, False),
        (CONTRIBUTES, 0, True),
        (REPEATS, 6, False),
        (REPEATS, 0, True),
        (PARENT, 6, True),
    ],
)
def test_only_what_completes_a_sum_or_asks_for_it_leaves(
    plan: Plan, access: int, missing: int, can: bool
) -> None:
    assert plan.main is not None
    condition = leaves(plan, with_sections(plan.program, plan.main.ingress, plan.groups))
    (name,) = (it for it in plan.program.headers if it.startswith("scalars"))
    types = plan.program.headers[name].type.by_name
    facts = {
        (name, field): value
        for field in types
        for end, value in (("access", access), ("missing", missing))
        if field.endswith(f"ina_metadata_t.{end}")
    }
    assert len(facts) == 2
    assert known(condition, Facts({}, facts)) == BoolConst(can)


def test_what_is_dropped_behind_it_takes_nothing_along(plan: Plan) -> None:
    assert leaves(plan, before(plan, *DROP)) == FALSE
    assert leaves(plan, before(plan, *DROP, Assign(SPEC, Const(3)))) == TRUE
    assert leaves(plan, before(plan, *DROP, Assign(GROUP, Const(3)))) == TRUE
    assert leaves(plan, before(plan, Assign(SPEC, PORT))) == TRUE


def test_branches_are_told_apart(plan: Plan) -> None:
    one = If(IS_ONE, DROP, (Assign(SPEC, Const(2)),))
    assert leaves(plan, before(plan, one)) == Unary("not", IS_ONE)
    both = If(IS_ONE, DROP, DROP)
    assert leaves(plan, before(plan, both)) == FALSE
    inside = If(IS_ONE, before(plan, *DROP), ())
    assert leaves(plan, (inside,)) == FALSE
    assert leaves(plan, (inside, Assign(SPEC, Const(2)))) == TRUE


def test_what_changes_a_condition_makes_it_unknown(plan: Plan) -> None:
    one = If(IS_ONE, DROP, (Assign(SPEC, Const(2)),))
    assert leaves(plan, before(plan, Assign(PORT, GROUP), one)) == TRUE
    assert leaves(plan, before(plan, Assign(PORT, Const(1)), one)) == FALSE
    dmac = Apply("PoolIngress.forwarding.dmac")  # its actions set the port
    assert leaves(plan, before(plan, *DROP, dmac)) == TRUE
    own = Apply("PoolIngress.own_addresses", on_hit=DROP, on_miss=DROP)
    assert leaves(plan, before(plan, own)) == TRUE


def test_behind_an_exit_nothing_is_done(plan: Plan) -> None:
    at_end = leaves(plan, before(plan))
    assert at_end not in (TRUE, FALSE)
    assert leaves(plan, before(plan, Exit(), *DROP)) == at_end
    assert leaves(plan, before(plan, *DROP, Exit(), Assign(SPEC, Const(3)))) == FALSE
