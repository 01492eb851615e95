"""docs/timeouts.md: of the deadlines in tests/docs/deadlines.md, those that a user can change.

``python -m tests.docs.timeouts`` writes its tables.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables import markdown, with_table
from tests.lines import ROOT

PAGE = ROOT / "docs" / "timeouts.md"
ROWS = Path(__file__).parent / "deadlines.md"
TITLES = ("who waits, for what", "how long", "changed by", "then")


def changeable(rows: str) -> str:
    """By section, a table of the rows whose third cell says what changes them."""
    parts = []
    for section in rows.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        cells = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith("| ")
        ]
        if cells and tuple(cells[0][:4]) == TITLES:
            found = [_whole(row, cells[:at]) for at, row in enumerate(cells) if _changes(row)]
            parts += [f"## {title}", markdown(TITLES, found)] if found else []
    return "\n\n".join(parts)


def _changes(row: list[str]) -> bool:
    """Whether a user can change it. What tests devices has no option for its deadlines."""
    is_of_tests = len(row) > 4 and row[4].startswith("`ina/testing/")
    return row[2] not in ("changed by", "---") and not row[2].startswith("—") and not is_of_tests


def _whole(row: list[str], before: list[list[str]]) -> list[str]:
    """A row that goes on with one that may not be shown (…) begins with that one's words."""
    who, number = row[0], len(before)
    while who.startswith("… ") and number:
        number -= 1
        first = before[number][0]
        if not first.startswith("… "):
            who = f"{first}: {who.removeprefix('… ')}"
    return [who, *row[1:4]]


if __name__ == "__main__":
    text = with_table(PAGE.name, PAGE.read_text("utf-8"), changeable(ROWS.read_text("utf-8")))
    PAGE.write_text(text, "utf-8")
