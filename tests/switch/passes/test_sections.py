"""Critical sections: around all uses of registers, no more than needed, and never wrong ones."""

from __future__ import annotations

import pytest

from ina.p4 import compiled, names
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir import load_program
from ina.switch.ir.stmt import Apply, Block, Count, RegisterRead, RegisterWrite
from ina.switch.ir.walk import walk
from ina.switch.passes.carried import carried
from ina.switch.passes.plan import Plan, make_plan
from ina.switch.passes.sections import Section, with_sections
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


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("entries", "register 'MyIngress.sums', indexed in two ways by one packet"),
        ("registers", "other registers between the uses of register"),
    ],
)
def test_what_is_no_section_is_refused(name: str, why: str) -> None:
    plan = make_plan(load_program(PROGRAMS / f"{name}.json"), main_path=False)
    with pytest.raises(UnsupportedProgramError, match=why):
        sectioned(plan)


def test_a_table_between_is_refused() -> None:
    with pytest.raises(UnsupportedProgramError, match="a table between the uses of register"):
        sectioned(plan_of(names.SHARED))


def test_what_egress_reads_of_ingress_is_carried() -> None:
    found = carried(plan_of(names.POOL).program)
    assert found.headers == ("packet_in", "ethernet", "ipv4", "udp", "ina", "values")
    fields = {ref.field.rpartition(".")[2] for ref in found.fields}
    assert fields == {"is_ours", "job_index", "receiver", "worker", "kind", "ingress_port"}
