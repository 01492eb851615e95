"""Writes every other definition of the wire format from :mod:`ina.protocol.spec`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ina.protocol.emit import cpp, p4

ROOT = Path(__file__).resolve().parents[3]
"""The checkout: generated files are part of the source tree, not of an installed package."""

TARGETS: dict[str, Callable[[], str]] = {
    "ina/p4/shared/ina_header.p4": p4.render,
    "native/common/ina_wire.hpp": cpp.render,
}
"""Path within the checkout -> what the whole file must be."""


def stale_files(root: Path = ROOT) -> list[str]:
    """Returns the paths of the generated files that are missing or not what the source says."""
    return [path for path, render in TARGETS.items() if _read(root / path) != render()]


def write_files(root: Path = ROOT) -> list[str]:
    """Rewrites the stale files and returns their paths."""
    stale = stale_files(root)
    for path in stale:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(TARGETS[path](), encoding="utf-8")
    return stale


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
