"""What the main path reads late, from entries or from the packet, is what others have at hand."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ina.switch.ir import load_program
from ina.switch.ir.expr import FieldRef, InPacket
from ina.switch.ir.stmt import Assign, Block, If
from ina.switch.ir.walk import walk
from ina.switch.match import Exact
from ina.switch.passes.entry_fields import EntryField
from ina.switch.passes.plan import MainPath, make_plan
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import PROGRAMS

PROGRAM = PROGRAMS / "entries.json"
FLOWS = "MyIngress.flows"


@pytest.fixture(scope="module")
def main() -> MainPath:
    plan = make_plan(load_program(PROGRAM))
    assert plan.main is not None
    return plan.main


def test_fields_that_only_an_entry_decides_are_read_from_it(main: MainPath) -> None:
    """Not those that are read before, changed elsewhere, or computed, or in other words."""
    program = load_program(PROGRAM)
    [flagged] = [action.index for action in program.actions if action.name == "MyIngress.flagged"]
    told = {ref.field.removeprefix("meta_t."): said for ref, said in main.entry_fields.items()}
    assert told == {
        "left": EntryField(FLOWS, 0),
        "right": EntryField(FLOWS, 1),
        "flag": EntryField(FLOWS, actions=(flagged,), value=1),
    }


def test_behind_branches_a_field_is_unpacked_on_all_ways_or_none(main: MainPath) -> None:
    fields = {"first", "high", "low", "second", "shown", "third"}
    assert {ref.field for ref in main.unpacked} == fields
    for way in ways(main.ingress):
        for ref in main.unpacked:
            reads = [sum(node == in_packet(ref) for node in walk(each)) for each in way]
            stores = [isinstance(each, Assign) and each.target == ref for each in way]
            first = stores.index(True)  # there is one
            assert not any(reads[first + 1 :]), (ref, way)
            others = [node for each in way[:first] for node in walk(each)]
            assert ref not in others, (ref, way)


def in_packet(ref: FieldRef) -> InPacket:
    return InPacket(ref.header, ref.field, ref.width_bits)


def ways(block: Block) -> list[list[Any]]:
    """Every way through a block: the conditions asked and the statements done."""
    found: list[list[Any]] = [[]]
    for stmt in block:
        if isinstance(stmt, If):
            inner = [*ways(stmt.then), *ways(stmt.otherwise)]
            found = [[*way, stmt.condition, *more] for way in found for more in inner]
        else:
            found = [[*way, stmt] for way in found]
    return found


def test_packets_do_the_same_with_and_without_a_main_path(
    cache_dir: Path,
) -> None:
    fast = default_target(cache_dir).load(PROGRAM)
    plain = default_target(cache_dir).load(PROGRAM, main_path=False)
    entries = [("both", [201, 40000]), ("one", [17]), ("flagged", []), ("nothing", [])]
    rng = random.Random(7)
    try:
        for pipeline in (fast, plain):
            pipeline.set_multicast(1, [(2, 1), (3, 2)])
        handles = {}
        for flow in range(4):
            for pipeline in (fast, plain):
                action, params = entries[flow]
                key = [Exact(flow)]
                handle = pipeline.insert(FLOWS, key, f"MyIngress.{action}", params)
                handles[pipeline, flow] = handle
        for _ in range(200):
            frames = [(0, packet(rng)) for _ in range(20)]
            assert fast.process_batch(frames) == plain.process_batch(frames)
            # What an entry said before must not be read when its new action says less.
            flow, (action, params) = rng.randrange(4), rng.choice(entries)
            anew = rng.random() < 0.5
            for pipeline in (fast, plain):
                handle = handles[pipeline, flow]
                if anew:
                    pipeline.delete(FLOWS, handle)
                    key, name = [Exact(flow)], f"MyIngress.{action}"
                    handles[pipeline, flow] = pipeline.insert(FLOWS, key, name, params)
                else:
                    pipeline.modify(FLOWS, handle, f"MyIngress.{action}", params)
    finally:
        fast.close()
        plain.close()


def packet(rng: random.Random) -> bytes:
    """Of a flow with an entry in most cases."""
    first = rng.choice([7, 7, 99, 100, 101, 255])
    low = rng.choice([0x22, 0x20, rng.randrange(256)])
    head = [rng.randrange(5), rng.randrange(10), low, first]
    data = bytes(head) + rng.randbytes(rng.choice([5, 5, 5, 4, 9]))
    return data
