"""Critical sections: around all uses of registers, no more than needed, and never wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ina.p4 import compiled, names
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir import load_program
from ina.switch.ir.expr import Binary, BoolConst, Const, Expr, FieldRef
from ina.switch.ir.stmt import (
    Apply,
    Assign,
    Block,
    CopyHeader,
    Count,
    HeaderRef,
    If,
    Loop,
    RegisterRead,
    RegisterRef,
    RegisterWrite,
)
from ina.switch.ir.walk import walk
from ina.switch.passes.carried import carried
from ina.switch.passes.indices import with_plain_indices
from ina.switch.passes.plan import Plan, make_plan
from ina.switch.passes.sections import Section, resident_tables, with_sections
from tests.switch.emit_c.conftest import PROGRAMS


def plan_of(mode: str) -> Plan:
    return make_plan(load_program(compiled(64, mode).bmv2_json), main_path=False)


def sectioned(plan: Plan) -> Block:
    return with_sections(plan.program, plan.program.ingress, plan.groups)


@pytest.mark.parametrize("mode", [names.POOL, names.STREAM])
def test_all_of_a_slot_is_in_one_section_without_tables_or_counters(mode: str) -> None:
    found = sectioned(plan_of(mode))
    (section,) = (node for node in walk(found) if isinstance(node, Section))
    accesses = (RegisterRead, RegisterWrite)
    inside = [node for node in walk(section.body) if isinstance(node, accesses)]
    assert len(inside) == len([node for node in walk(found) if isinstance(node, accesses)]) > 10
    assert not [node for node in walk(section.body) if isinstance(node, (Apply, Count))]
    ends = (section.body[0], section.body[-1])
    assert all(any(isinstance(it, accesses) for it in walk(end)) for end in ends)


def test_nothing_else_is_changed() -> None:
    plan = plan_of(names.POOL)

    def flat(block: Block) -> list[object]:
        return [
            inner
            for stmt in block
            for inner in (flat(stmt.body) if isinstance(stmt, Section) else [stmt])
        ]

    found = [node for node in walk(sectioned(plan)) if not isinstance(node, Section)]
    plain = list(walk(plan.program.ingress))
    kinds = [type(node) for node in found if isinstance(node, (Apply, Count, RegisterRead))]
    assert kinds == [type(it) for it in plain if isinstance(it, (Apply, Count, RegisterRead))]
    assert flat(plan.program.ingress) == list(plan.program.ingress)


def of(name: str) -> Plan:
    return make_plan(load_program(PROGRAMS / f"{name}.json"), main_path=False)


def test_sections_of_two_registers_do_not_overlap() -> None:
    with pytest.raises(UnsupportedProgramError, match="other registers between the uses of regist"):
        sectioned(of("registers"))


@pytest.mark.parametrize(
    ("program", "tables"),
    [
        (lambda: plan_of(names.SHARED), {"PoolIngress.claims.owners"}),
        (lambda: of("claimed"), {"MyIngress.owners", "MyIngress.kinds"}),
        (lambda: of("entries"), set()),
    ],
)
def test_tables_within_a_section_are_found(program: Callable[[], Plan], tables: set[str]) -> None:
    assert resident_tables(sectioned(program())) == tables


def test_copies_of_one_index_are_one() -> None:
    """p4c has a temporary field for each cast."""
    (section,) = (it for it in walk(sectioned(of("claimed"))) if isinstance(it, Section))
    assert isinstance(section.index, Binary)
    indices = {it.index for it in walk(section) if isinstance(it, (RegisterRead, RegisterWrite))}
    assert indices == {section.index}


H, M, T, U = (FieldRef("head", name, 8) for name in ("flow", "op", "first", "shown"))


@pytest.mark.parametrize(
    ("between", "index"),
    [
        ((), H),
        ((Assign(M, Const(1)),), H),
        # What was copied is another now, or the copy is.
        ((Assign(H, Const(1)),), T),
        ((Assign(T, Const(1)),), Const(1)),
        ((If(BoolConst(True), (Assign(H, M),), ()),), T),
        ((If(BoolConst(True), (), (Assign(T, M),)),), T),
        ((CopyHeader(HeaderRef("head"), HeaderRef("head")),), T),
        # An action may have changed it, or what stands behind one.
        ((Apply("MyIngress.flows", on_action=((0, (Assign(H, M),)),)),), T),
    ],
)
def test_an_index_is_what_it_was_copied_from_as_long_as_that_stays(
    between: Block, index: Expr
) -> None:
    read = RegisterRead(U, RegisterRef("MyIngress.sums"), T)
    program = of("entries").program
    ways: list[tuple[Block, Callable[[Any], Any]]] = [
        ((read,), lambda it: it),
        ((If(BoolConst(True), (), (read,)),), lambda it: it.otherwise[0]),
        ((Apply("MyIngress.flows", on_miss=(read,)),), lambda it: it.on_miss[0]),
    ]
    for inner, way in ways:
        found = with_plain_indices(program, (Assign(T, H), *between, *inner))
        assert way(found[-1]).index == index


def test_an_index_that_was_cut_is_not_what_it_was_copied_from() -> None:
    wide = FieldRef("head", "second", 16)
    read = RegisterRead(U, RegisterRef("MyIngress.sums"), T)
    found = with_plain_indices(of("entries").program, (Assign(T, wide), read))
    assert found[-1] == read


def test_uses_of_several_elements_have_a_section_each() -> None:
    plan = of("entries")
    (group,) = plan.groups

    def use(index: int) -> RegisterRead:
        return RegisterRead(U, RegisterRef("MyIngress.sums"), Const(index))

    block: Block = (use(1), If(BoolConst(True), (use(2),), (use(3), use(3))), Assign(M, H), use(1))
    found = with_sections(plan.program, block, plan.groups)
    sections = [it for it in walk(found) if isinstance(it, Section)]
    assert [(it.index, it.body) for it in sections] == [
        (Const(1), (use(1),)),
        (Const(2), (use(2),)),
        (Const(3), (use(3), use(3))),
        (Const(1), (use(1),)),
    ]
    assert {it.group for it in sections} == {group}
    within = (Loop(0, 2, (use(1), use(2))),)
    with pytest.raises(UnsupportedProgramError, match="indexed in two ways by one packet"):
        with_sections(plan.program, within, plan.groups)


def test_what_egress_reads_of_ingress_is_carried() -> None:
    found = carried(plan_of(names.POOL).program)
    assert found.headers == ("packet_in", "ethernet", "ipv4", "udp", "ina", "values")
    fields = {ref.field.rpartition(".")[2] for ref in found.fields}
    assert fields == {"is_ours", "job_index", "receiver", "worker", "kind", "ingress_port"}


def test_a_checksum_of_a_header_that_is_not_sent_needs_nothing() -> None:
    """Its own is of no use; what egress itself reads of such a header is refused, with its line."""
    program = of("checksum").program
    unsent = carried(replace(program, deparse=())).fields
    assert unsent == carried(replace(program, deparse=(), checksums=())).fields
    pool = plan_of(names.POOL).program
    kept = tuple(it for it in pool.deparse if it != "ina")
    with pytest.raises(
        UnsupportedProgramError, match=r"ina\.\w+ in egress, which is in no frame at \w+\.p4:\d+$"
    ):
        carried(replace(pool, deparse=kept))
