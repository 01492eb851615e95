"""What a compiled program was made from, and whether that has changed since.

``ina p4 compile`` writes the hashes of a program's own files into its JSON (``__meta__``, of which
P4 targets read the version alone). What another p4c made has no hashes: there the times tell.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from ina.p4.packed import is_unpacked

_log = logging.getLogger(__name__)

_ONE_CHECKOUT_NS = 5_000_000_000
"""Files of one checkout or archive are written within so long, in any order."""
META, KEY = "__meta__", "ina"
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def record(source: Path, out_dir: Path) -> dict[str, Any]:
    """Return what to write into the JSON of `source` in `out_dir`: files and their hashes.

    The folder is said from `out_dir`; files of p4c's own (``#include <...>``) are left out.
    """
    folder = source.resolve().parent
    files = {os.path.relpath(path, folder): _sha256(path) for path in _own_files(source.resolve())}
    return {
        "folder": os.path.relpath(folder, out_dir.resolve()),
        "program": source.name,
        "files": files,
    }


def what_has_changed(bmv2_json: Path) -> str:
    """Return which source of a compiled program is newer, and what to do; empty: none is known.

    A source that is not there any more, or a file that is no BMv2 JSON, is no news here.
    """
    try:
        document = json.loads(bmv2_json.read_bytes())
        made_from = document.get(META, {}).get(KEY)
        if isinstance(made_from, dict):
            changed, program = _by_hash(bmv2_json, made_from)
        else:
            changed, program = _by_time(bmv2_json, str(document.get("program") or ""))
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return ""
    if not changed:
        return ""
    return (
        f"{bmv2_json} is older than its source: {', '.join(changed)} changed after it was compiled;"
        f" what runs is the old program; ina p4 compile {program} --out {bmv2_json.parent}"
    )


def warn_if_changed(bmv2_json: Path) -> None:
    """Log what :func:`what_has_changed` finds, as a warning: for whoever is about to run it."""
    if said := what_has_changed(bmv2_json):
        _log.warning("%s", said)


def _own_files(source: Path) -> list[Path]:
    """The program and what it includes by name, and what that does; those that are there."""
    found: list[Path] = []
    left = [source]
    while left:
        path = left.pop()
        if path in found or not path.is_file():
            continue
        found.append(path)
        for name in _INCLUDE.findall(path.read_bytes()):
            text = os.fsdecode(name)
            # As the preprocessor looks: beside the file, then where p4c runs.
            left += [(folder / text).resolve() for folder in {path.parent, source.parent}]
    return sorted(found)


def _by_hash(bmv2_json: Path, made_from: dict[str, Any]) -> tuple[list[str], Path]:
    folder = (bmv2_json.resolve().parent / made_from["folder"]).resolve()
    files = {_near(folder / name): sha256 for name, sha256 in made_from["files"].items()}
    changed = [str(path) for path, was in files.items() if path.is_file() and _sha256(path) != was]
    return changed, _near(folder / made_from["program"])


def _by_time(bmv2_json: Path, program: str) -> tuple[list[str], Path]:
    """`program`: the path that p4c was called with, from a folder that nobody wrote down."""
    parent = bmv2_json.resolve().parent
    if is_unpacked(bmv2_json):  # their manifest has hashes, which ina.p4.compiled looks at
        return [], Path(program)
    newest_ns = bmv2_json.stat().st_mtime_ns + _ONE_CHECKOUT_NS
    for folder in (Path(), parent, parent.parent):
        source = folder / program
        if program and source.is_file():
            found = (_near(path) for path in _own_files(source.resolve()))
            newer = [str(path) for path in found if path.stat().st_mtime_ns > newest_ns]
            return newer, _near(source)
    return [], Path(program)


def _near(path: Path) -> Path:
    """From the current folder where it is below that."""
    path = Path(os.path.normpath(path.absolute()))
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
