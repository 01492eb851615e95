"""Writes every other definition of the wire format from :mod:`ina.protocol.spec`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ina.protocol.emit import cpp, markdown, p4, python, scapy_layer, wireshark

ROOT = Path(__file__).resolve().parents[3]
"""The checkout: generated files are part of the source tree, not of an installed package."""

TARGETS: dict[str, Callable[[], str]] = {
    "ina/p4/shared/ina_header.p4": p4.render,
    "native/common/ina_wire.hpp": cpp.render,
    "ina/protocol/generated/header_fields.py": python.render,
    "ina/protocol/generated/scapy_layer.py": scapy_layer.render,
    "tools/wireshark/ina.lua": wireshark.render,
}
"""Path within the checkout -> what the whole file must be."""

PAGE = "docs/protocol.md"
"""Written by hand, but for the tables between its markers."""


def stale_files(root: Path = ROOT) -> dict[str, str]:
    """Returns the files that are missing or not what the source says: path -> wanted text.

    Raises ValueError when docs/protocol.md has lost its markers.
    """
    wanted = {path: render() for path, render in TARGETS.items()}
    wanted[PAGE] = markdown.replace_block(_read(root / PAGE))
    return {path: text for path, text in wanted.items() if _read(root / path) != text}


def write_files(root: Path = ROOT) -> list[str]:
    """Rewrites the stale files and returns their paths."""
    stale = stale_files(root)
    for path, text in stale.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return list(stale)


def _read(path: Path) -> str:
    """Returns the file's text; a missing file is an empty one."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""
