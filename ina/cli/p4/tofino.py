"""``ina p4 compile --target tofino|tofino2``: compile, and say what of the chip it uses."""

from __future__ import annotations

import enum
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ina.cli.common.output import emit, table
from ina.cli.common.progress import progress
from ina.errors import InvalidInputError
from ina.p4.errors import P4CompileError
from ina.p4.programs import build_defines, tree_sha256
from ina.p4.tofino import TARGETS, TofinoBuild, compile_tofino, tofino_source
from ina.p4.tofino_page import page
from ina.p4.tofino_report import KINDS, TofinoReport, read_report


class Target(str, enum.Enum):
    """What to compile for."""

    BMV2 = "bmv2"
    TOFINO = "tofino"
    TOFINO2 = "tofino2"


def compile_for_tofino(
    source: Path | None,
    mode: str,
    target_name: str,
    values: int | None,
    out_dir: Path,
    report_file: Path | None,
    json: bool,
) -> None:
    """Compiles a mode's program, or another, and reports; raises P4CompileError: too large."""
    target = TARGETS[target_name]
    program = source or tofino_source(mode)
    if source is None and values is None:
        values = target.values
    defines = build_defines(values) if values is not None else {}
    began_s = time.monotonic()
    with progress(f"compiling {program} for {target.name} (may take minutes)"):
        build = compile_tofino(program, target, out_dir, defines)
    report = read_report(build.logs, target.name)
    took_s = time.monotonic() - began_s
    if report_file is not None:
        try:
            report_file.write_text(page([report], tree_sha256(program.parent)))
        except OSError as error:
            raise InvalidInputError(f"--report {report_file}: {error.strerror}") from None
    emit(_document(build, report, took_s), json, _view(build, report, took_s))
    if exceeded := report.exceeded():
        raise P4CompileError(f"{program}: {target.name} has too few {', '.join(exceeded)}")


def _document(build: TofinoBuild, report: TofinoReport, took_s: float) -> dict[str, Any]:
    return {
        "target": report.target,
        "seconds": round(took_s, 1),
        "assembled": build.binary is not None,
        "files": [str(path) for path in (build.p4info, build.bfrt_schema, build.assembly)],
        "totals": {name: asdict(budget) for name, budget in report.totals.items()},
        "controls": {
            name: {"stages": sorted(use.stages), **use.blocks}
            for name, use in report.controls.items()
        },
    }


def _view(build: TofinoBuild, report: TofinoReport, took_s: float) -> Any:
    from rich.console import Group

    assembled = "assembled" if build.binary else "no bfas: whether it fits is not shown"
    totals = table(
        ["resource", "used", "of"],
        [[name, budget.used, budget.of] for name, budget in report.totals.items()],
        title=f"{build.assembly} for {report.target} ({took_s:.0f} s, {assembled})",
    )
    controls = table(
        ["control", "stages", *KINDS],
        [
            [name, ", ".join(map(str, sorted(use.stages))), *(use.blocks[kind] for kind in KINDS)]
            for name, use in report.controls.items()
        ],
    )
    return Group(totals, controls)
