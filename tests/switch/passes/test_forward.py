"""Hashes are over what their arguments were copied from, and only while that is the same."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ina.switch.ir import load_program
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Assign, Hash
from ina.switch.ir.walk import walk
from ina.switch.passes.forward import forward_program
from ina.switch.targets import default_target
from tests.switch.bmv2 import Builder, Json, assign, const, if_, op, primitive, ref, send, state
from tests.switch.emit_c.conftest import PROGRAMS

VALUES = 300


def crc(target: str = "a.sum", calculation: str = "calc") -> Json:
    calc = {"type": "calculation", "value": calculation}
    size = const(1 << 32)
    return primitive("modify_field_with_hash_based_offset", ref(target), const(0), calc, size)


def over(*fields: str) -> list[Json]:
    return [{"name": "calc", "id": 0, "algo": "crc32", "input": [ref(name) for name in fields]}]


def program(*ingress: Any, inputs: Sequence[str] = ("meta.t",)) -> Builder:
    fields = [("sum", 32), ("x", 32), ("y", 32), *((f"v{it}", 32) for it in range(VALUES))]
    return Builder(
        headers={"a": fields},
        parser=[state("start", ["a"])],
        ingress=[send(2), *ingress],
        metadata=[("t", 32), ("u", 32), *((f"t{it}", 32) for it in range(VALUES))],
        calculations=over(*inputs),
    )


def hashed(built: Builder) -> tuple[list[str], set[str]]:
    """What is hashed, and what is assigned to."""
    found = forward_program(load_program(built.json()))
    nodes = list(walk(found.ingress))
    [it] = (node for node in nodes if isinstance(node, Hash))
    targets = {node.target for node in nodes if isinstance(node, Assign)}
    named = {f"{t.header}.{t.field}" for t in targets if isinstance(t, FieldRef)}
    refs = [one.value for one in it.inputs if isinstance(one.value, FieldRef)]
    return [f"{one.header}.{one.field}" for one in refs], named


COPY = assign("meta.t", "a.x")


@pytest.mark.parametrize(
    ("block", "is_forwarded"),
    [
        ((COPY, crc()), True),
        ((COPY, assign("meta.u", "a.y"), crc()), True),
        ((assign("meta.u", "a.x"), assign("meta.t", "meta.u"), crc()), True),
        ((COPY, assign("a.x", 5), crc()), False),
        ((COPY, if_(op("==", "a.y", 0), [assign("a.x", 5)]), crc()), False),
        ((if_(op("==", "a.y", 0), [COPY]), crc()), False),
        ((assign("meta.t", op("+", "a.x", 1)), crc()), False),
    ],
)
def test_while_it_is_the_same(block: Sequence[Any], is_forwarded: bool) -> None:
    inputs, targets = hashed(program(*block))
    assert inputs == (["a.x"] if is_forwarded else ["meta.t"])
    assert ("meta.t" in targets) != is_forwarded


def test_in_a_branch_what_was_known_before_it_is_known() -> None:
    block = if_(op("==", "a.y", 0), [crc()], [assign("a.x", 5)])
    assert hashed(program(COPY, block))[0] == ["a.x"]


def test_a_variable_that_somebody_else_reads_stays() -> None:
    inputs, targets = hashed(program(COPY, crc(), assign("a.y", "meta.t")))
    assert inputs == ["a.x"]
    assert "meta.t" in targets


def test_p4cs_variables_are_gone() -> None:
    before = load_program(PROGRAMS / "hashes.json")
    found = forward_program(before)
    assert variables(before)
    assert not variables(found)


def variables(of: Program) -> set[str]:
    refs = (node for node in walk(of.ingress) if isinstance(node, FieldRef))
    return {node.field for node in refs if node.header == "scalars"}


@pytest.mark.parametrize("first", [0, 3])
def test_values_of_an_array_are_hashed_at_once(cache_dir: Path, first: int) -> None:
    """From any of them on, behind other fields, as p4c has it: by variables."""
    names = range(first, VALUES)
    copies = [assign(f"meta.t{it}", f"a.v{it}") for it in names]
    inputs = ["a.y", *(f"meta.t{it}" for it in names)]
    built = program(*copies, crc(), inputs=inputs)
    data = bytes(7 * it % 251 for it in range(12 + 4 * VALUES))
    with default_target(cache_dir).load(built.json()) as pipeline:
        [(_, sent)] = pipeline.process(1, data)
        assert pipeline.generated is not None
        puts = pipeline.generated.read_text().count("ina_bits_put_array_32(bits, ")
    covered = data[8:12] + data[12 + 4 * first :]
    assert sent == zlib.crc32(covered).to_bytes(4, "big") + data[4:]
    assert puts >= 1
