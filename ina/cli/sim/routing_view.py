"""What ``ina sim compare routing`` prints for people, and writes into a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.output import table
from ina.cli.sim.page import row, write_between
from ina.sim.routing.compare import FAMILIES, SHIPPED, WHAT_SHIPPED
from ina.sim.routing.outcome import Outcome
from ina.units import time_text

_COLUMNS = (
    "case",
    "policy",
    "step",
    "bound",
    "mean of jobs",
    "bytes · links",
    "trees",
    "planned in",
)


def outcomes_view(outcomes: Sequence[Outcome]) -> RenderableType:
    """A table for each family."""
    parts: list[RenderableType] = []
    for family in _families(outcomes):
        rows = [it for it in outcomes if it.family == family]
        parts.append(Text(f"{family}: {what(family)}"))
        columns = [*_COLUMNS, "model"] if family == SHIPPED else list(_COLUMNS)
        parts.append(table(columns, [_cells(it) for it in rows]))
        parts += [Text(f"{it.case}: {it.policy}: {it.refused}") for it in rows if it.refused]
    return Group(*parts)


def what(family: str) -> str:
    """Its cases, for people."""
    return FAMILIES[family].what if family in FAMILIES else WHAT_SHIPPED


def _families(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(it.family for it in outcomes))


def _cells(it: Outcome) -> list[str]:
    if it.refused:
        return [it.case, it.policy, "no plan", f"{it.bound:.2f}", "", "", "", ""]
    cells = [
        it.case,
        it.policy,
        f"{it.step:.2f}",
        f"{it.bound:.2f}",
        f"{it.job_step:.2f}",
        f"{it.traffic:.2f}",
        f"{it.trees:.1f}",
        time_text(it.plan_s),
    ]
    return [*cells, f"{it.modelled:.2f}"] if it.family == SHIPPED else cells


def write_page(page: Path, outcomes: Sequence[Outcome], plots: Sequence[Path], said: str) -> None:
    """Replaces what is between the page's marks; ``said``: one line, how this was made.

    Raises OSError, :class:`InvalidInputError`.
    """
    names = {path.stem: path.relative_to(page.parent).as_posix() for path in plots}
    parts = [said]
    for family in _families(outcomes):
        rows = [it for it in outcomes if it.family == family]
        columns = [*_COLUMNS, "model"] if family == SHIPPED else list(_COLUMNS)
        text = what(family)
        lines = [
            f"### {family}",
            "",
            f"{text[0].upper()}{text[1:]}.",
            "",
            row(columns),
            row(["---"] * len(columns)),
            *(row([it if number != 1 else f"`{it}`" for number, it in enumerate(_cells(of))])
              for of in rows),
        ]  # fmt: skip
        if family in names:
            lines += ["", f"![{family}]({names[family]})"]
        parts.append("\n".join(lines))
    write_between(page, "\n\n".join(parts))
