"""What a plan says: decisions, without a line of C."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ina.p4 import compiled, names
from ina.switch.ir import load_program
from ina.switch.ir.expr import Const, FieldRef, LocalRef
from ina.switch.ir.stmt import Assign, Loop, RegisterRead, RegisterRef, RegisterWrite, Stmt
from ina.switch.passes.fusion import RegisterGroup
from ina.switch.passes.loops import Element, plan_loops
from ina.switch.passes.plan import MainPath, Plan, make_plan
from ina.switch.passes.tables import Lookup
from tests.switch.bmv2 import Builder, state

PROGRAMS = Path(__file__).parent.parent / "programs"
SOURCES = [*sorted(PROGRAMS.glob("*.json")), compiled(64).bmv2_json]

LOCAL = LocalRef("v", 32)


@cache
def pool() -> tuple[Plan, MainPath]:
    plan = make_plan(load_program(compiled(64).bmv2_json))
    assert plan.main is not None
    return plan, plan.main


def parts(node: Any) -> Iterator[Any]:
    """The node and all data below it."""
    yield node
    if dataclasses.is_dataclass(node):
        children: Any = [getattr(node, field.name) for field in dataclasses.fields(node)]
    elif isinstance(node, Mapping):
        children = [*node.keys(), *node.values()]
    else:
        children = node if isinstance(node, tuple | frozenset) else ()
    for child in children:
        yield from parts(child)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_plan_is_frozen_data_and_the_same_each_time(source: Path) -> None:
    plan = make_plan(load_program(source))
    for part in parts(plan):
        if dataclasses.is_dataclass(part):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(part, dataclasses.fields(part)[0].name, None)
        else:
            plain = (str, bytes, int, type(None), tuple, frozenset, Mapping, Enum)
            assert isinstance(part, plain), type(part)
    assert make_plan(load_program(source)) == plan


def test_one_program_gives_one_text_in_every_process() -> None:
    script = (
        "import sys, pathlib, hashlib\n"
        "from ina.switch.emit_c.emit import emit_c\n"
        "from ina.switch.ir import load_program\n"
        "from ina.switch.passes.plan import make_plan\n"
        "for path in sys.argv[1:]:\n"
        "    text = emit_c(make_plan(load_program(pathlib.Path(path))), '')\n"
        "    print(hashlib.sha256(text.encode()).hexdigest())\n"
    )
    told = {
        subprocess.check_output(
            [sys.executable, "-c", script, *map(str, SOURCES)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            text=True,
        )
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_the_pool_s_main_path_reads_values_where_they_stand() -> None:
    plan, main = pool()
    assert main.steps[0].plan.state.name == "start"
    assert main.size_bytes == main.headers_bytes + 4 * 64
    assert main.tail_header == "values"
    values = main.late_arrays["values"]
    assert (values.array.count, values.is_written, values.ends_frame) == (64, True, True)
    assert main.early == (names.JOBS, names.MEMBERS)
    assert [gate.table for gate in main.gates] == [names.OWN_ADDRESSES]
    assert all(
        window.first_byte + len(window.mask) <= main.headers_bytes for window in main.windows
    )
    [ecn] = [field for header, field in main.late_fields if (header, field) == ("ipv4", "ecn")]
    ref = FieldRef("ipv4", ecn, 2)
    assert plan.in_packet(ref, late=True)
    assert not plan.in_packet(ref, late=False)


def test_the_pool_s_loops_touch_one_slot_and_leave_results_there() -> None:
    plan, main = pool()
    assert len(plan.loops) == 5  # take, join, read, clear; zeros, of what comes without values
    assert not any(loop.late for loop in plan.loops.values())
    elements = [loop.element for loop in (*plan.loops.values(), *main.loops.values())]
    assert elements.count(None) <= 2  # zeros touch none, here and there
    for element in filter(None, elements):
        assert len(max(element.group.runs, key=len)) == 64
    changed = [use for loop in main.loops.values() for use in loop.late if use.is_changed]
    assert changed
    assert all(use.kept_in is not None and len(use.kept_in.array) == 64 for use in changed)


def test_values_are_unpacked_where_egress_writes_what_ingress_left_them_in() -> None:
    plan, main = pool()
    [values] = {use.kept_in for loop in main.loops.values() for use in loop.late if use.kept_in}
    for body in (RegisterWrite(values, Const(0), Const(1)), RegisterRead(LOCAL, values, Const(0))):
        egress = (Loop(99, 64, (body,)), *plan.program.egress)
        other = make_plan(replace(plan.program, egress=egress)).main
        assert other is not None
        assert bool(other.late_arrays) == isinstance(body, RegisterRead)


def test_a_loop_that_touches_two_elements_has_no_pointer_to_one() -> None:
    group = RegisterGroup(0, 4, (("a", "b"),))
    first, second = (FieldRef("meta", name, 8) for name in ("i", "j"))
    value = LOCAL

    def element(*body: Stmt) -> Element | None:
        return plan_loops(pool()[0].program, [Loop(1, 2, body)], (group,), {})[1].element

    a = RegisterRef("a", ("a", "b"))
    read, write = RegisterRead(value, a, first), RegisterWrite(a, first, value)
    assert element(read, write) == Element(group, first)
    assert element(read, RegisterWrite(a, second, value)) is None
    assert element(Assign(first, Const(1)), read) is None
    assert element(Assign(value, Const(1))) is None


def test_the_pool_s_tables_are_looked_up_as_little_as_they_can_be() -> None:
    plan, _ = pool()
    fixed = [table.table.name for table in plan.tables if table.is_fixed]
    assert fixed == [names.ECN_THRESHOLD]
    jobs, members = plan.tables_by_name[names.JOBS], plan.tables_by_name[names.MEMBERS]
    assert jobs.remembers_last
    assert not members.remembers_last
    assert members.lookup is Lookup.EXACT
    assert len(members.main_runs) < len(members.parts)  # neighbours in the packet, at once
    assert plan.tables_by_name[names.IPV4_LPM].lookup is Lookup.LPM


def test_every_register_is_in_one_group_and_every_table_has_a_plan() -> None:
    for source in SOURCES:
        plan = make_plan(load_program(source))
        placed = [name for group in plan.groups for run in group.runs for name in run]
        assert sorted(placed) == sorted(register.name for register in plan.program.registers)
        assert [table.table for table in plan.tables] == list(plan.program.tables)


def test_without_a_main_path_all_packets_take_the_general_code() -> None:
    program = load_program(compiled(64).bmv2_json)
    general, (plan, _) = make_plan(program, main_path=False), pool()
    assert general.main is None
    for name in ("program", "types", "metadata", "uses", "groups", "states", "loops"):
        assert getattr(general, name) == getattr(plan, name)


def test_a_frame_goes_on_elsewhere_with_its_last_array_alone() -> None:
    """The one before it would be looked for where the frame has ended."""
    fields = [(f"v{number}", 16) for number in range(8)]
    headers = dict.fromkeys(("a", "b", "c"), fields)
    parser = [state("start", ["a"], "a.v3", {2: "more"}), state("more", ["b", "c"])]
    main = make_plan(load_program(Builder(headers, parser, ingress=[]).json())).main
    assert main is not None
    assert set(main.late_arrays) == {"b", "c"}
    assert main.tail_header is None
