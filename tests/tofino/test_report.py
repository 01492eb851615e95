"""benchmarks/results/tofino/*.md say what the programs as they are use of their chips."""

from __future__ import annotations

import pytest

from ina.p4 import names
from ina.p4.programs import P4_DIR, tree_sha256
from ina.p4.tofino import TARGETS, tofino_source
from ina.p4.tofino_page import page
from ina.p4.tofino_report import read_report
from tests.tofino.builds import BUILD_DEADLINE_S, TofinoBuilds

PAGES = {names.POOL: "", names.SHARED: "_shared"}
"""What the page's name has behind the chip's."""
RESULTS = P4_DIR.parent.parent / "benchmarks" / "results" / "tofino"


def checked_in(mode: str, target: str) -> str:
    return (RESULTS / f"{target}{PAGES[mode]}.md").read_text()


@pytest.mark.parametrize("mode", PAGES)
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_page_is_of_these_sources(target: str, mode: str) -> None:
    sources = tree_sha256(tofino_source().parent)
    assert sources in checked_in(mode, target), (
        f"P4 changed: ina p4 compile --mode {mode} --target {target}"
        f" --report benchmarks/results/tofino/{target}{PAGES[mode]}.md; without the compiler, say"
        f" there that {sources} was not compiled"
    )


@pytest.mark.parametrize("mode", PAGES)
@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.timeout(BUILD_DEADLINE_S)
def test_page_is_what_the_compiler_says(
    target: str, mode: str, tofino_builds: TofinoBuilds
) -> None:
    build = tofino_builds.of(target, mode)
    report = read_report(build.logs, target)
    assert report.exceeded() == []
    assert page([report], tree_sha256(tofino_source().parent)) == checked_in(mode, target)
