"""The conformance cases on the Tofino twin's controls: they do what v1model's do."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

from ina.p4.compile import P4C
from ina.p4.tofino import find_tool
from ina.testing.case import run_case
from ina.testing.cases import all_cases
from tests.tofino.emulated import CHIPS, EmulatedTofino, compile_emulated

VALUES = 64
NOT_ON_TOFINO = "malformed/*-bytes-behind"
"""Its ingress does not know a frame's length."""
LONGER = "counters/everything"
"""On Tofino 1 a sum comes to its second pass with the bridge header in front: v1model's counters,
which count what came, have those bytes too."""
BUGS = {
    "levels/sum-goes-up": (
        "distribute.p4",
        "hdr.ina.contributors = hdr.bridge.worker_bit;",
        "hdr.ina.contributors = 1;",
    ),
    "levels/replay-to-one-2-0-31": (
        "admission.p4",
        "meta.way = hdr.ina.path & path_mask;",
        "meta.way = hdr.ina.path;",
    ),
    "address/of-another-switch": (
        "pool.p4",
        "if (own_addresses.apply().hit) {",
        "own_addresses.apply(); meta.is_ours = 1; {",
    ),
    "completion/order-012": (
        "distribute.p4",
        "hdr.bridge.pass = PASS_HARVEST_ALL;",
        "hdr.bridge.pass = PASS_HARVEST_ONE;",
    ),
}
"""By the case that notices it: file, what is right, what is wrong."""

pytestmark = pytest.mark.p4c


def wrong_cases(
    target: str, folder: Path, topic: str = "*", bug: tuple[str, str, str] | None = None
) -> set[str]:
    """Names and first differences of the topic's cases that fail; `bug`: see compile_emulated."""
    if find_tool(P4C, "INA_P4C") is None:
        pytest.skip(f"{P4C} is not on PATH")
    left_out = (NOT_ON_TOFINO, *([LONGER] if target == "tofino" else []))
    cases = [
        case
        for case in all_cases(VALUES)
        if fnmatch(case.name, topic)
        and not any(fnmatch(case.name, pattern) for pattern in left_out)
    ]
    assert len(cases) > (290 if topic == "*" else 0)
    program = compile_emulated(target, VALUES, folder, bug)
    with EmulatedTofino(lambda _values: program) as device:
        verdicts = [run_case(case, device) for case in cases]
    return {f"{v.case.name}: {v.differences[0]}" for v in verdicts if v.differences}


@pytest.mark.parametrize("target", sorted(CHIPS))
def test_the_twin_does_what_the_cases_say(target: str, tmp_path: Path) -> None:
    assert wrong_cases(target, tmp_path) == set()


@pytest.mark.parametrize(("noticed_by", "bug"), BUGS.items())
def test_a_bug_of_the_twins_own_is_noticed(
    noticed_by: str, bug: tuple[str, str, str], tmp_path: Path
) -> None:
    topic = noticed_by.partition("/")[0] + "/*"
    failed = {line.partition(":")[0] for line in wrong_cases("tofino", tmp_path, topic, bug)}
    assert noticed_by in failed
