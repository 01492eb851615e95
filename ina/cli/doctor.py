"""``ina doctor``: what this machine has of what ina uses, and what needs the missing parts."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from ina.cli.output import emit, table


@dataclass(frozen=True)
class Finding:
    """One thing ina uses. ``found`` says which one, or is empty."""

    name: str
    found: str
    used_for: str
    required: bool = False

    @property
    def verdict(self) -> str:
        """ok, MISSING (required) or absent (optional)."""
        return "ok" if self.found else "MISSING" if self.required else "absent"


def _package(module: str, distribution: str) -> str:
    if importlib.util.find_spec(module) is None:
        return ""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "present"


def _tool(*names: str) -> str:
    return next(filter(None, map(shutil.which, names)), "")


def examine() -> list[Finding]:
    """Look, without running anything or importing torch."""
    spec = importlib.util.find_spec("ina._native")
    native = (spec and spec.origin) or ""
    return [
        Finding("python", platform.python_version(), "everything", required=True),
        Finding("native extension", native, "hosts, ports", required=True),
        Finding(
            "C compiler", _tool(os.environ.get("INA_CC") or "cc"), "the soft switch", required=True
        ),
        Finding("C++ compiler", _tool(os.environ.get("CXX") or "c++"), "building ina from source"),
        Finding("torch", _package("torch", "torch"), "import ina.torch; pip install 'ina[torch]'"),
        Finding(
            "scikit-learn", _package("sklearn", "scikit-learn"), "ina demo; pip install 'ina[demo]'"
        ),
        Finding("p4c", _tool(os.environ.get("INA_P4C", "p4c-bm2-ss")), "ina p4 compile"),
        Finding("tshark", _tool("tshark"), "the Wireshark dissector's test"),
        Finding("root", "yes" if os.geteuid() == 0 else "", "AF_PACKET ports"),
    ]


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say what this machine has of what ina uses; exit code 1 when a required part is missing."""
    findings = examine()
    rows = [(f.name, f.verdict, f.found, f.used_for) for f in findings]
    emit(findings, as_json, table(["what", "", "found", "used for"], rows))
    if any(finding.required and not finding.found for finding in findings):
        raise typer.Exit(1)
