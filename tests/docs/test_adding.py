"""The rows of "Where do I add ...": what they name is there, and no seam is left out."""

from __future__ import annotations

import re

import pytest

from tests.docs.runner import ROOT

PAGE = ROOT / "docs" / "architecture.md"
SEAMS = {
    *("mode", "collective", "codec", "framing", "transport", "sender", "target"),
    *("window algorithm", "placement policy", "memory policy", "scenario", "benchmark"),
    *("door", "noun", "framing of the cases", "optimizer", "kernel"),
}
_PATH = re.compile(r"`((?:[\w.]+/)+[\w.]*)`")
_SYMBOLS = re.compile(r"((?:`\w+`,? )+)\(`([\w./]+)`\)")
"""As "`Cell`, `Family` (`ina/sim/windows/cell.py`)"."""


def rows(page: str) -> dict[str, list[str]]:
    """By its first cell, a row's other cells: folder, interface, test."""
    section = page.partition("## Where do I add ...\n")[2].partition("\n## ")[0]
    cells = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {row[0].strip(): row[1:] for row in cells[2:]}


def faults(page: str) -> list[str]:
    """What a row names that is not there, and seams that have no row."""
    found = []
    table = rows(page)
    for what, row in table.items():
        if len(row) != 3:
            found.append(f"{what}: {len(row)} cells")
            continue
        paths = [path for cell in row for path in _PATH.findall(cell)]
        found += [f"{what}: no {path}" for path in paths if not (ROOT / path).exists()]
        if not any(path.startswith("tests/") for path in _PATH.findall(row[2])):
            found.append(f"{what}: no test")
        symbols = _SYMBOLS.findall(row[1])
        found += [] if symbols else [f"{what}: no interface"]
        for names, path in symbols:
            for name in re.findall(r"`(\w+)`", names):
                if (ROOT / path).exists() and not _is_defined(name, (ROOT / path).read_text()):
                    found.append(f"{what}: {path} has no {name}")
    heads = "\n".join(table)
    found += [f"no row for a {it}" for it in sorted(SEAMS) if not re.search(rf"\b{it}\b", heads)]
    return found


def _is_defined(name: str, text: str) -> bool:
    kinds = rf"^(?:class|struct|def|(?:inline )?constexpr .*?) {name}\b|^{name}(?::.*)? = "
    return re.search(kinds, text, re.MULTILINE) is not None


def test_what_the_rows_name_is_there() -> None:
    page = PAGE.read_text()
    assert len(rows(page)) >= len(SEAMS)
    assert faults(page) == []


@pytest.mark.parametrize(
    ("said", "other", "fault"),
    [
        ("`ina/modes/`: a file", "`ina/manners/`: a file", "a mode: no ina/manners/"),
        ("`Mode` (", "`Manner` (", "a mode: ina/modes/mode.py has no Manner"),
        ("| a mode |", "| a manner |", "no row for a mode"),
        ("| `tests/controller/routing/` |", "| |", "a placement policy: no test"),
    ],
)
def test_a_row_that_is_not_so_is_found(said: str, other: str, fault: str) -> None:
    page = PAGE.read_text()
    assert said in page
    found = faults(page.replace(said, other))
    assert fault in found
