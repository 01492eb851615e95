"""The Tofino programs pass p4lang's compiler and assembler; a bug in a shared control gets in."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

import pytest

from ina.p4 import names
from ina.p4.programs import P4_DIR, build_defines
from ina.p4.tofino import TARGETS, compile_tofino, tofino_source
from tests.conformance.mutants import MUTANTS, Mutant
from tests.tofino.builds import BUILD_DEADLINE_S, TofinoBuilds, binary_of

STAGES = {"tofino": 12, "tofino2": 20}
NO_STAGE_LEFT = "values-0-and-1-swapped"
"""Takes a stage of its own: with it, Tofino 1 has too few, and p4c searches for long."""
SHARED = [
    mutant
    for mutant in MUTANTS
    if mutant.source.startswith("shared/") and mutant.name != NO_STAGE_LEFT
]

pytestmark = pytest.mark.timeout(BUILD_DEADLINE_S)


@dataclass(frozen=True)
class Trace:
    """What a bug changes in the assembly: a line that comes, and one that goes.

    Both are regular expressions without containers (W5): those may be others in each build.
    """

    action: str  # that has both lines; empty: anywhere
    comes: str
    goes: str = ""  # empty: none that is sure to go


TRACES = {
    "no-tag-check": Trace(
        "slots_enter_round_alu", r"alu_a !cmplo, lo, phv_lo", r"geq\.uus hi, phv_lo, -lo"
    ),
    "bitmap-forgets-worker-1": Trace(
        "slots_enter_round_alu", r"and cmplo, hi, phv_hi, 4294967293", r"or cmplo, hi, hi, phv_hi"
    ),
    "never-complete": Trace(
        "PoolIngress.contribution.compare_full", r"and \w+, \w+, \w+", r"xor \w+, \w+, \w+"
    ),
    "least-exponent": Trace(
        "contribution_next_exponent_join_alu", r"lss\.u lo, phv_lo, -lo", r"grt\.u lo, phv_lo, -lo"
    ),
    "last-digest": Trace(
        "contribution_digest_join_alu", r"alu_a lo, phv_lo", r"add lo, lo, phv_lo"
    ),
    "last-check": Trace("contribution_check_join_alu", r"alu_a lo, phv_lo", r"add lo, lo, phv_lo"),
}
"""By the name of the mutant."""
TRACED = [mutant for mutant in SHARED if mutant.name in TRACES]

OWN = {
    (
        "distribute.p4",
        "hdr.ina.contributors = hdr.bridge.worker_bit;",
        "hdr.ina.contributors = 1;",
    ): (
        Trace(
            "PoolEgress.address.sign",
            r"set hdr\.ina\.contributors, 1",
            r"set hdr\.ina\.contributors, hdr\.bridge\.worker_bit",
        )
    ),
    (
        "distribute.p4",
        "hdr.ina.flags = meta.flags;\n        hdr.ina.worker = INA_PARENT;",
        "hdr.ina.flags = meta.flags;\n        hdr.ina.worker = 1;",
    ): Trace(
        "PoolIngress.distribute.to_parent", r"set hdr\.ina\.worker, 1", r"set hdr\.ina\.worker, 254"
    ),
    ("admission.p4", "hdr.ina.path & path_mask;", "hdr.ina.path | path_mask;"): Trace(
        "PoolIngress.admission.admit_inner_job",
        r"or \w+, path_mask\S*, \w+",
        r"and \w+, path_mask\S*, \w+",
    ),
}
"""Bugs of the twin's own, in what makes it a node of a tree: file, text, what stands there then."""


def lines_of(assembly: str, action: str) -> list[str]:
    """Instructions and attributes of an action, or of a stateful ALU's; all, if none is named."""
    if action:
        head = rf"^( +){re.escape(action)}(?:\(.*\))?:\n"
        found = re.findall(rf"{head}((?:\1- .*\n)+)", assembly, re.MULTILINE)
        assert len(found) == 1, f"{len(found)} actions {action} in the assembly"
        assembly = found[0][1]
    return [line.strip().removeprefix("- ") for line in assembly.splitlines()]


def has(assembly: str, action: str, pattern: str) -> bool:
    """Whether the action has a line of this kind."""
    return any(re.fullmatch(pattern, line) for line in lines_of(assembly, action))


@pytest.fixture(scope="module")
def right(tofino_builds: TofinoBuilds) -> str:
    """The assembly."""
    return tofino_builds.of("tofino").assembly.read_text()


@pytest.fixture(scope="module")
def wrong(right: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The assembly with all bugs in it. bfas refuses what p4c makes of the bitmap's."""
    folder = tmp_path_factory.mktemp("mutants")
    shutil.copytree(P4_DIR / "shared", folder / "ina" / "p4" / "shared")
    source = shutil.copytree(tofino_source().parent, folder / "tofino") / tofino_source().name
    for mutant in SHARED:
        path = folder / "ina" / "p4" / mutant.source
        text = path.read_text()
        assert text.count(mutant.before) == 1, f"{mutant.source} has changed: write the bug anew"
        path.write_text(text.replace(mutant.before, mutant.after))
    for file, before, after in OWN:
        text = (source.parent / file).read_text()
        assert text.count(before) == 1, f"{file} has changed: write the bug anew"
        (source.parent / file).write_text(text.replace(before, after))
    chip = TARGETS["tofino"]
    defines = build_defines(chip.values)
    build = compile_tofino(source, chip, folder / "out", defines, assemble=False)
    return build.assembly.read_text()


@pytest.mark.parametrize("mode", names.MODES_ON_CHIPS)
@pytest.mark.parametrize("target", STAGES)
def test_it_compiles_within_the_chip(target: str, mode: str, tofino_builds: TofinoBuilds) -> None:
    build = tofino_builds.of(target, mode)
    assert binary_of(build).stat().st_size > 0
    stages = re.findall(r"^stage \d+ ingress:", build.assembly.read_text(), re.M)
    assert 0 < len(stages) <= STAGES[target]


@pytest.mark.parametrize("mutant", TRACED, ids=lambda mutant: mutant.name)
def test_a_bug_in_a_shared_control_is_in_the_assembly(
    mutant: Mutant, right: str, wrong: str
) -> None:
    leaves(TRACES[mutant.name], right, wrong)


@pytest.mark.parametrize("bug", OWN, ids=lambda bug: bug[2])
def test_a_bug_in_a_control_of_its_own_is_in_the_assembly(
    bug: tuple[str, str, str], right: str, wrong: str
) -> None:
    leaves(OWN[bug], right, wrong)


def leaves(trace: Trace, right: str, wrong: str) -> None:
    """Asserts that the bug is in the wrong assembly, and not in the right one."""
    assert has(wrong, trace.action, trace.comes)
    assert not has(right, trace.action, trace.comes)
    if trace.goes:
        assert has(right, trace.action, trace.goes)
        assert not has(wrong, trace.action, trace.goes)
