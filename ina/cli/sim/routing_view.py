"""What ``ina sim compare routing`` prints for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.output import table
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
        parts.append(table(columns(family), [cells(it) for it in rows]))
        parts += [Text(f"{it.case}: {it.policy}: {it.refused}") for it in rows if it.refused]
    return Group(*parts)


def what(family: str) -> str:
    """Its cases, for people."""
    return FAMILIES[family].what if family in FAMILIES else WHAT_SHIPPED


def columns(family: str) -> list[str]:
    """Of its table."""
    return [*_COLUMNS, "model"] if family == SHIPPED else list(_COLUMNS)


def _families(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(it.family for it in outcomes))


def cells(it: Outcome) -> list[str]:
    """Of a row, by :func:`columns`."""
    if it.refused:
        return [it.case, it.policy, "no plan", f"{it.bound:.2f}", "", "", "", ""]
    said = [
        it.case,
        it.policy,
        f"{it.step:.2f}",
        f"{it.bound:.2f}",
        f"{it.job_step:.2f}",
        f"{it.traffic:.2f}",
        f"{it.trees:.1f}",
        time_text(it.plan_s),
    ]
    return [*said, f"{it.modelled:.2f}"] if it.family == SHIPPED else said
