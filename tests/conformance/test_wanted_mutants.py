"""Bugs in how a slot tells its owner that others want it: the conformance cases must notice each.

They are put into the checked-in program of mode shared.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ina.p4 import compiled, names
from ina.testing.case import run_case
from ina.testing.cases import all_cases
from ina.testing.soft_device import SoftDevice
from tests.conformance.mutants import Built, action, nodes

VALUES = 64
Program = dict[str, Any]


def instead(name: str, other: str) -> Callable[[Program], None]:
    """An action on the slot's flags does what another one of them does."""

    def change(program: Program) -> None:
        does = action(program, f"contribution.{other}")["primitives"]
        action(program, f"contribution.{name}")["primitives"] = copy.deepcopy(does)

    return change


def tells_nobody(program: Program) -> None:
    """Who finds a slot taken leaves no word."""
    action(program, "contribution.flags_want")["primitives"] = []


def tells_slot_0(program: Program) -> None:
    """Word is left in another slot than the packet's."""
    for node in nodes(action(program, "contribution.flags_want")["primitives"]):
        if node.get("op") in ("register_read", "register_write"):
            at = {"register_read": 2, "register_write": 1}[node["op"]]
            node["parameters"][at] = {"type": "hexstr", "value": "0x00000000"}


def says_another_flag(program: Program) -> None:
    """COLLISION is taken for WANTED."""
    for node in nodes(action(program, "contribution.flags_want")):
        if node.get("type") == "hexstr" and int(node["value"], 16) == 0x80:
            node["value"] = "0x02"


BUGS: dict[str, tuple[Callable[[Program], None], str]] = {
    "told for ever": (instead("flags_take", "flags_join"), "wanted/new-round-forgets"),
    "leaks to who comes": (instead("flags_want", "flags_join"), "wanted/told-with-the-sum"),
    "the slot forgets the rest": (instead("flags_want", "flags_take"), "wanted/told-with-the-sum"),
    "nobody is told": (tells_nobody, "wanted/told-with-the-sum"),
    "another slot's owner is told": (tells_slot_0, "wanted/told-with-the-sum"),
    "another flag": (says_another_flag, "wanted/told-with-the-sum"),
    "lost further up": (instead("flags_join", "flags_read"), "wanted/in-the-result"),
    "stays with the newcomer": (instead("touch_flags_swap", "flags_join"), "wanted/put-out"),
}
"""What is wrong, and the case that must notice."""


@pytest.mark.parametrize(("change", "noticed_by"), BUGS.values(), ids=BUGS)
def test_conformance_fails(
    change: Callable[[Program], None], noticed_by: str, tmp_path: Path
) -> None:
    good = compiled(VALUES, names.SHARED)
    program = json.loads(good.bmv2_json.read_text())
    before = json.dumps(program)
    change(program)
    assert json.dumps(program) != before, "the JSON has changed: write the bug anew"
    path = tmp_path / "mutant.json"
    path.write_text(json.dumps(program))
    built = Built(good.p4info, path)
    cases = [case for case in all_cases(VALUES, names.SHARED) if case.name.startswith("wanted/")]
    with SoftDevice(names.SHARED, program_of=lambda _values: built) as wrong:
        verdicts = [run_case(case, wrong) for case in cases]
    assert noticed_by in {verdict.case.name for verdict in verdicts if verdict.differences}
