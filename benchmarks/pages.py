"""Tables and plots of the documentation, of what is in ``benchmarks/results``.

A page of docs/ has a short table between two marks: ``python -m benchmarks.pages`` writes it,
``--check`` fails when there is another one. All rows and the plots are on pages that only the site
has; ``make docs`` makes them (tools/docs_site.py).
Exit codes: 0, 1 another table (``--check``), 2 results that cannot be read.
"""

from __future__ import annotations

import csv
import functools
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import comparisons, measured, trainings
from benchmarks.tables import markdown, with_table
from ina.bench import allreduce
from ina.bench.figure import figure_of
from ina.bench.report import Report
from ina.errors import InvalidInputError

ROOT = Path(__file__).resolve().parent.parent
FULL = {
    "benchmarks/results": "results/benchmarks.md",
    "benchmarks/results/windows": "results/windows.md",
    "benchmarks/results/routing": "results/routing.md",
    "benchmarks/results/training": "results/training.md",
}
"""By the folder of the results: the site's page of all rows."""
TABLES = {"hosts.csv": "Hosts of several ranks", "windows-on-links.csv": "Windows on one link"}
"""What was written down by hand of runs, and its title."""


def _csv_table(name: str) -> str:
    with (measured.RESULTS / name).open(newline="", encoding="utf-8") as file:
        titles, *rows = csv.reader(file)
    return markdown(titles, rows)


def short() -> dict[str, str]:
    """By the name of a page of docs/, what is between its marks. Raises InvalidInputError."""
    of = measured.reports()
    lines = measured.short(measured.lines(of))
    return {
        "benchmarks.md": f"{measured.head(of)}\n\n{markdown(measured.TITLES, lines)}",
        "windows.md": markdown(*comparisons.promises_kept()),
        "routing.md": markdown(*comparisons.over_bound()),
        "fewer_bytes.md": markdown(*trainings.short()),
    }


def full() -> dict[str, str]:
    """By the name of a page of the site alone, its text. Raises InvalidInputError."""
    of = measured.reports()
    return {
        "results/benchmarks.md": "\n\n".join(
            [
                "# All benchmarks",
                f"{measured.head(of)} [What they are](../benchmarks.md).",
                markdown(measured.TITLES, measured.lines(of)),
                "![All-reduce over a star of 1 Gbit/s](benchmarks.svg)",
                *(f"## {title}\n\n{_csv_table(name)}" for name, title in TABLES.items()),
            ]
        ),
        "results/windows.md": _compared("All windows", "windows", comparisons.windows_sections()),
        "results/routing.md": _compared(
            "All placements", "routing", comparisons.routing_sections()
        ),
        "results/training.md": _compared(
            "All trainings", "training", trainings.sections(), of="fewer_bytes"
        ),
    }


def _compared(title: str, page: str, sections: Iterable[comparisons.Section], of: str = "") -> str:
    """``of``: the page that it belongs to, if that has another name."""
    parts = [f"# {title}", f"[What the words mean](../{of or page}.md)."]
    drawn = plots()
    for section in sections:
        parts += [f"## {section.name}", section.text]
        if f"results/{page}-{section.name}.svg" in drawn:
            parts.append(f"![{section.name}]({page}-{section.name}.svg)")
        parts.append(markdown(section.titles, section.rows))
    return "\n\n".join(parts)


@functools.cache
def plots() -> dict[str, str]:
    """By the name of a file of the site, an SVG. Raises InvalidInputError."""
    of = {"benchmarks": _star(measured.reports())}
    of |= {f"windows-{name}": one for name, one in comparisons.windows_figures()}
    of |= {f"routing-{name}": one for name, one in comparisons.routing_figures()}
    of |= {f"training-{name}": one for name, one in trainings.figures()}
    return {f"results/{name}.svg": comparisons.svg(figure) for name, figure in of.items()}


def _star(of: Mapping[str, Report]) -> Figure:
    return figure_of(allreduce.panels(of["star"].rows), "all-reduce, star of 1 Gbit/s, float32 sum")


def write(*, only_check: bool = False) -> list[str]:
    """The pages that had another table, which they have still if it is only checked.

    Raises InvalidInputError.
    """
    changed = []
    for page, table in short().items():
        path = ROOT / "docs" / page
        before = path.read_text("utf-8")
        after = with_table(page, before, table)
        if after != before:
            changed.append(f"docs/{page}")
            if not only_check:
                path.write_text(after, "utf-8")
    return changed


def main() -> int:
    """Write or check."""
    is_check = "--check" in sys.argv[1:]
    try:
        changed = write(only_check=is_check)
    except InvalidInputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for page in changed if is_check else []:
        print(f"{page}: not of benchmarks/results: run python -m benchmarks.pages", file=sys.stderr)
    return int(is_check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
