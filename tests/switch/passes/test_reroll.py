"""Runs of alike statements become loops, and only where that changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from ina.protocol.spec import VALUES_PER_PACKET_BUILDS
from ina.switch.emit_c.emit import emit_c
from ina.switch.ir import Program, load_program
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.stmt import Loop
from ina.switch.ir.turns import Turns
from ina.switch.ir.walk import all_parts, walk
from ina.switch.passes.plan import make_plan
from ina.switch.passes.reroll import reroll_program
from tests.switch.bmv2 import Builder, assign, state
from tests.switch.foreign_like import FOR_MUTANTS, LIKE
from tests.switch.foreign_programs import CASES

PROGRAMS = Path(__file__).parent.parent / "programs"


def loops(program: Program) -> list[Loop]:
    return [node for node in walk(tuple(all_parts(program))) if isinstance(node, Loop)]


def test_sums_and_overwrites_become_loops() -> None:
    program = load_program(PROGRAMS / "registers.json")
    assert loops(program) == []
    rolled = loops(reroll_program(program))
    assert [loop.count for loop in rolled] == [16, 16, 16]
    assert len({loop.number for loop in rolled}) == 3


@pytest.mark.parametrize("name", ["arithmetic", "tables", "stack", "checksum", "parsing"])
def test_other_programs_stay_as_they_are(name: str) -> None:
    program = load_program(PROGRAMS / f"{name}.json")
    assert reroll_program(program) == program


@pytest.mark.parametrize("name", ["R5", "prefix sums", "carried on", "sent in a run"])
def test_iterations_that_depend_on_each_other_stay_unrolled(name: str) -> None:
    program = load_program((CASES | LIKE | FOR_MUTANTS)[name].program.json())
    assert loops(reroll_program(program)) == []


def test_only_what_else_iterations_change_keeps_one_of_them_unrolled() -> None:
    """The mutant that does not look at it makes a loop."""
    program = load_program(CASES["R5"].program.json())
    with mock.patch("ina.switch.passes.reroll._is_free", return_value=True):
        assert loops(reroll_program(program)) != []


def test_what_a_packet_keeps_on_its_next_turn_is_no_scratch() -> None:
    header = {"a": [("k", 8)]}
    built = Builder(
        header, [state("start", ["a"])], [[assign("meta.m", "a.k")] * 8], (), [("m", 8)]
    )
    program = load_program(built.json())
    assert loops(reroll_program(program)) != []
    turns = Turns(frozenset({"resubmit"}), {1: (FieldRef("meta", "m", 8),)})
    assert loops(reroll_program(replace(program, turns=turns))) == []


def test_registers_that_are_indexed_alike_are_fused() -> None:
    text = emit_c(make_plan(load_program(PROGRAMS / "registers.json")), "digest")
    assert "17 register(s) that are indexed alike" in text  # 16 values and the round
    assert "_Alignas(64) uint32_t MyIngress_value_0_array[16];" in text
    assert text.count("for (size_t k = 0; k < 16; k++)") >= 3


@pytest.mark.parametrize("values", VALUES_PER_PACKET_BUILDS)
def test_the_pool_program_sums_in_loops(values: int) -> None:
    from ina.p4 import compiled

    program = reroll_program(load_program(compiled(values).bmv2_json))
    assert {loop.count for loop in loops(program)} == {values}
    assert len(loops(program)) == 5  # take, join, read, clear; zeros, of what comes without values
