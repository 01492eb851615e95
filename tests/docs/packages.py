"""Reads the tables of packages in docs/architecture.md."""

from __future__ import annotations

import re

from tests.lines import ROOT

PAGE = ROOT / "docs" / "architecture.md"


def tables(text: str) -> dict[str, dict[str, int]]:
    """Of the section on packages: what a table is of ("ina.cli") to its names and their layers.

    The first table is of "ina", the last, which has no layers, of "".
    """
    section = text.partition("## The packages\n")[2].partition("\n## ")[0]
    found: dict[str, dict[str, int]] = {}
    rows: dict[str, int] = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or set(cells[0]) == {"-"}:
            continue
        if cells[-1] == "holds":
            of = re.search(r"`(.*)`", cells[-2])
            rows = found[of[1] if of else "ina" if cells[0] == "layer" else ""] = {}
            continue
        for name in re.findall(r"`([\w./]+)`", cells[-2]):
            assert name not in rows, f"{name} is there twice"
            rows[name] = int(cells[0]) if len(cells) > 2 else 0
    return found
