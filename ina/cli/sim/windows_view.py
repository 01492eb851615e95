"""What ``ina sim compare windows`` prints for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.output import table
from ina.congestion import Congestion
from ina.sim.windows.cell import Family
from ina.sim.windows.measure import Mean
from ina.sim.windows.outcome import Outcome


def outcomes_view(outcomes: Sequence[Outcome], families: Sequence[Family]) -> RenderableType:
    """A table for each family, then what of the promises does not hold."""
    parts: list[RenderableType] = []
    for family in families:
        rows = [it for it in outcomes if it.family == family.name]
        if rows:
            parts.append(_table(family, rows))
    default = [it for it in outcomes if it.algorithm == Congestion.algorithm]
    parts += [Text(line) for it in outcomes for line in _errors(it)]
    parts += [Text(line) for line in broken_lines(default)]
    return Group(*parts)


def broken_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """Of promises: how many hold, and a line for each that does not."""
    verdicts = [(it, verdict) for it in outcomes for verdict in it.verdicts]
    if not verdicts:
        return []
    kept = sum(verdict.holds is True for _, verdict in verdicts)
    judged = sum(verdict.holds is not None for _, verdict in verdicts)
    lines = [f"promises of {outcomes[0].algorithm}: {kept} of {judged} hold"]
    lines += [
        f"broken: {it.family}: {it.cell}: {verdict.promise}: it is {number_text(verdict.value)}"
        for it, verdict in verdicts
        if verdict.holds is False
    ]
    if judged < len(verdicts):
        missing = sorted(
            {v.promise.rpartition("times ")[2] for _, v in verdicts if v.holds is None}
        )
        lines.append(f"not judged, for want of runs: {', '.join(missing)}")
    return lines


def mean_text(mean: Mean | None) -> str:
    """As ``0.974 ±0.003``; the second number is left out where there is one seed, or no spread."""
    if mean is None or math.isnan(mean.mean):
        return "-"
    text = number_text(mean.mean)
    if math.isnan(mean.half_width) or mean.half_width < 5e-4 * abs(mean.mean):
        return text
    return f"{text} ±{mean.half_width:.2g}"


def number_text(value: float) -> str:
    """Three digits, and no exponent where the number is of a size that people read."""
    if math.isinf(value):
        return "never"
    if value == 0 or 0.01 <= abs(value) < 1:
        return f"{value:.3f}".rstrip("0").rstrip(".") if value else "0"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _table(family: Family, rows: Sequence[Outcome]) -> RenderableType:
    title = f"{family.name}: {family.what}"
    return table(columns(family), [cells(family, it) for it in rows], title=title)


def columns(family: Family) -> list[str]:
    """Of its table."""
    return ["cell", "limit", "algorithm", *family.columns, "promises"]


def cells(family: Family, it: Outcome) -> list[str]:
    """Of a row, by :func:`columns`."""
    return [
        it.cell,
        f"{number_text(it.limit_gbit)} ({it.limit_by})",
        it.algorithm,
        *(mean_text(it.metrics.get(name)) for name in family.columns),
        promises_text(it),
    ]


def promises_text(outcome: Outcome) -> str:
    """As "3/3"; empty where nothing could be judged."""
    if outcome.errors:
        return "failed"
    judged = [verdict.holds for verdict in outcome.verdicts if verdict.holds is not None]
    return f"{sum(judged)}/{len(judged)}" if judged else ""


def _errors(outcome: Outcome) -> list[str]:
    where = f"{outcome.family}: {outcome.cell}: {outcome.algorithm}"
    return [f"failed: {where}: {error}" for error in outcome.errors]
