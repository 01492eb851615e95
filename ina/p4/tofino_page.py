"""The pages benchmarks/results/tofino/*.md: what the builds for Tofino use of their chips."""

from __future__ import annotations

from collections.abc import Iterable

from ina.p4.tofino_report import KINDS, TofinoReport

HEAD = """\
# What the Tofino builds use

Made by `ina p4 compile --target ... --report FILE`. "Of" is what the chip has in all its stages;
ingress and egress share each stage.
"""

_TITLES = {
    "stateful_alus": "stateful ALUs",
    "sram_blocks": "SRAM blocks",
    "tcam_blocks": "TCAM blocks",
    "map_rams": "map RAMs",
    "gateways": "gateways",
    "logical_tables": "logical tables",
}


def page(reports: Iterable[TofinoReport], source_sha256: str) -> str:
    """Markdown. `source_sha256` ties it to the sources that were compiled."""
    parts = [HEAD, f"Sources: `{source_sha256}` (SHA-256 of all P4 files).\n"]
    for report in reports:
        parts.append(f"## {report.target}\n")
        parts.append(_table(["resource", "used", "of", "share"], _totals(report)))
        parts.append("By control (blocks; a table's blocks count for its control):\n")
        parts.append(
            _table(["control", "stages", *map(_TITLES.__getitem__, KINDS)], _controls(report))
        )
    return "\n".join(parts)


def _totals(report: TofinoReport) -> Iterable[list[str]]:
    for name, budget in report.totals.items():
        title = _TITLES.get(name, name.replace("_", " "))
        share = f"{100 * budget.used / budget.of:.0f} %" if budget.of else "-"
        yield [title, str(budget.used), str(budget.of), share]


def _controls(report: TofinoReport) -> Iterable[list[str]]:
    for name, use in report.controls.items():
        stages = sorted(use.stages)
        span = f"{stages[0]}-{stages[-1]}" if len(stages) > 1 else ", ".join(map(str, stages))
        yield [name, span, *(str(use.blocks[kind]) for kind in KINDS)]


def _table(columns: list[str], rows: Iterable[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
