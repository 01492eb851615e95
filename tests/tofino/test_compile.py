"""The Tofino program passes p4lang's compiler and assembler; a bug in a shared control gets in."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ina.p4.programs import P4_DIR
from tests.conformance.mutants import MUTANTS

ROOT = P4_DIR.parent.parent
STAGES = {"tofino": 12, "tofino2": 20}
DEADLINE_S = 1200


def assemble(target: str, root: Path, out: Path, binary: bool = True) -> str:
    """The assembly of the program under `root`; fails unless `bfas` makes a `binary` of it."""
    for tool in ("p4c-barefoot", "bfas"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on PATH: build p4c with its Tofino option")
    arch, number = ("tna", 1) if target == "tofino" else ("t2na", 2)
    command = ["p4c-barefoot", "--target", target, "--arch", arch, "--std", "p4-16", "--no-clot"]
    command += [f"-D__TARGET_TOFINO__={number}", "-DVALUES_PER_PACKET=64", "-o", str(out)]
    subprocess.run([*command, "pool.p4"], cwd=root / "tofino", check=True, timeout=DEADLINE_S)
    source = out / "pipe" / "pool.bfa"
    if not binary:
        return source.read_text()
    command = ["bfas", "--no-warn", "--target", target, "-o", str(out), str(source)]
    subprocess.run(command, check=True, timeout=DEADLINE_S)
    assert (out / f"{target}.bin").stat().st_size > 0
    return source.read_text()


@pytest.mark.parametrize("target", STAGES)
def test_it_compiles_within_the_chip(target: str, tmp_path: Path) -> None:
    text = assemble(target, ROOT, tmp_path)
    assert len(re.findall(r"^stage \d+ ingress:", text, re.M)) <= STAGES[target]


def test_bugs_in_shared_controls_are_in_the_assembly(tmp_path: Path) -> None:
    shutil.copytree(P4_DIR / "shared", tmp_path / "ina" / "p4" / "shared")
    shutil.copytree(ROOT / "tofino", tmp_path / "tofino")
    for mutant in MUTANTS:
        if mutant.source.startswith("shared/"):
            path = tmp_path / "ina" / "p4" / mutant.source
            path.write_text(path.read_text().replace(mutant.before, mutant.after))
    wrong = assemble("tofino", tmp_path, tmp_path / "wrong", binary=False)
    right = assemble("tofino", ROOT, tmp_path / "right", binary=False)
    # The tag is compared as serial numbers; the exponent's maximum is a greater-than; no swap.
    for line in ("geq.uus hi, phv_lo, -lo", "grt.u lo, phv_lo, -lo"):
        assert line in right
        assert line not in wrong
    assert "lss.u lo, phv_lo, -lo" in wrong
    assert "accumulate_swapped" in wrong
    assert "accumulate_swapped" not in right
