"""docs/tofino*_resources.md say what the programs as they are use of their chips."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ina.p4.programs import P4_DIR, tree_sha256
from ina.p4.tofino import TARGETS, TOFINO_SOURCE, compile_tofino
from ina.p4.tofino_page import page
from ina.p4.tofino_report import read_report

DOCS = P4_DIR.parent.parent / "docs"


def checked_in(target: str) -> str:
    return (DOCS / f"{target}_resources.md").read_text()


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_page_is_of_these_sources(target: str) -> None:
    sources = tree_sha256(TOFINO_SOURCE.parent)
    assert sources in checked_in(target), (
        f"P4 changed: ina p4 compile --target {target} --report docs/{target}_resources.md"
    )


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.timeout(1800)
def test_page_is_what_the_compiler_says(target: str, tmp_path: Path) -> None:
    for tool in ("p4c-barefoot", "bfas"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on PATH: build p4c with its Tofino option")
    chip = TARGETS[target]
    defines = {"VALUES_PER_PACKET": str(chip.values)}
    build = compile_tofino(TOFINO_SOURCE, chip, tmp_path, defines)
    assert build.binary is not None
    report = read_report(build.logs, target)
    assert report.exceeded() == []
    assert page([report], tree_sha256(TOFINO_SOURCE.parent)) == checked_in(target)
