"""Writes what was found into a page of the documentation, between its two marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ina.cli.sim.page import row, write_between
from ina.cli.sim.windows_view import mean_text, number_text, promises_text
from ina.congestion import Congestion
from ina.sim.windows.cell import Family
from ina.sim.windows.outcome import Outcome


def write_page(
    page: Path,
    outcomes: Sequence[Outcome],
    families: Sequence[Family],
    plots: Sequence[Path],
    said: str,
) -> None:
    """Replaces what is between the marks. ``plots``: files at or below the page's folder;
    ``said``: one line, how this was made. Raises OSError, :class:`InvalidInputError`."""
    names = {path.stem: path.relative_to(page.parent).as_posix() for path in plots}
    parts = [said]
    for family in families:
        rows = [it for it in outcomes if it.family == family.name]
        if rows:
            parts.append(_section(family, rows, names))
    write_between(page, "\n\n".join(parts))


def _section(family: Family, rows: Sequence[Outcome], plots: Mapping[str, str]) -> str:
    what = family.what[0].upper() + family.what[1:]
    promised = "; ".join(promise.text for promise in family.promises)
    promises = f" `{Congestion.algorithm}` promises: {promised}." if promised else ""
    lines = [
        f"### {family.name}",
        "",
        f"{what}.{promises}",
        "",
        row(("cell", "limit", "algorithm", *family.columns, "promises")),
        row(["---"] * (len(family.columns) + 4)),
        *(row(_cells(family, it)) for it in rows),
    ]
    for cell in family.cells:
        for stem, what in ((cell.plot, "over time"), (f"{cell.plot}-completions", "completions")):
            if stem in plots:
                lines += ["", f"![{family.name}: {cell.name}, {what}]({plots[stem]})"]
    return "\n".join(lines)


def _cells(family: Family, it: Outcome) -> list[str]:
    return [
        it.cell,
        f"{number_text(it.limit_gbit)} ({it.limit_by})",
        f"`{it.algorithm}`",
        *(mean_text(it.metrics.get(name)) for name in family.columns),
        promises_text(it),
    ]
