"""Compile P4_16 programs for v1model with p4c, reproducibly: same sources, same bytes.

p4c writes the paths it was called with into the JSON. It is run in `root` with relative paths, and
the JSON is written anew with those paths tidied, so that no machine's directories are in it.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ina.p4 import names, origin
from ina.p4.builds import all_builds
from ina.p4.errors import P4cMissingError, P4CompileError
from ina.p4.programs import (
    P4_DIR,
    build_defines,
    build_name,
    program_source,
    write_compiled,
)

P4C = "p4c-bm2-ss"
COMPILE_DEADLINE_S = 900.0
"""1024 values take minutes where cores are shared."""
_VERSION_DEADLINE_S = 30.0
# The preprocessor's, p4c's own and its parser's: the last has no colon behind "error".
_ERROR = re.compile(r"\berror:|\):\s*syntax error\b|Compiler Bug")
_COUNT = re.compile(r"error: \d+ errors encountered")
_PACKAGE_ROOT = P4_DIR.parent.parent


def find_p4c() -> Path:
    """Return the compiler: what INA_P4C names, else p4c-bm2-ss on PATH.

    Raises:
        P4cMissingError: there is none.
    """
    named = os.environ.get("INA_P4C")
    found = shutil.which(named or P4C)
    if found is not None:
        return Path(found)
    if named:
        raise P4cMissingError(f"INA_P4C={named} is not an executable file")
    raise P4cMissingError(
        f"{P4C} is not on PATH and INA_P4C is not set; install p4c (docs/own_p4.md says how) "
        "or use the programs that ship with ina (ina p4 info)"
    )


def p4c_version() -> str:
    """Return the compiler's version, as "1.2.5.16".

    Raises:
        P4cMissingError: there is none, or it does not say.
    """
    p4c = find_p4c()
    try:
        done = subprocess.run(
            [str(p4c), "--version"], capture_output=True, text=True, timeout=_VERSION_DEADLINE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise P4cMissingError(f"cannot run {p4c}: {error}") from error
    found = re.search(r"Version (\S+)", done.stdout + done.stderr)
    if found is None:
        raise P4cMissingError(f"{p4c} does not say its version: is it p4c?")
    return found[1]


def compile_program(
    source: Path,
    out_dir: Path,
    name: str,
    defines: Mapping[str, str] | None = None,
    *,
    root: Path | None = None,
    on_warnings: Callable[[str], None] = lambda said: None,
) -> tuple[Path, Path]:
    """Compile `source` to ``out_dir/name.json`` and ``out_dir/name.p4info.txtpb``; return both.

    Source paths in the JSON are relative to `root` (default: the source's directory): p4c runs
    there. `on_warnings` gets the lines that p4c writes about a program that it takes. Without a
    `root`, the JSON tells what it was made from (:mod:`ina.p4.origin`).

    Raises:
        P4cMissingError: no compiler.
        P4CompileError: the source cannot be read, p4c refuses it, does not end in 900 s or writes
            where this machine does not see it, or the results cannot be written.
    """
    p4c = find_p4c()
    if not source.is_file():
        raise P4CompileError(f"{source}: no such P4 program")
    has_manifest, root = root is not None, (root or source.parent).resolve()
    with tempfile.TemporaryDirectory(prefix="ina-p4-") as scratch:
        json_file, p4info_file = Path(scratch, "program.json"), Path(scratch, "p4info.txtpb")
        command = [
            *(str(p4c), "--std", "p4-16", "--Wdisable=unused"),
            *(f"-D{key}={value}" for key, value in sorted((defines or {}).items())),
            *("-o", str(json_file), "--p4runtime-files", str(p4info_file)),
            os.path.relpath(source.resolve(), root),
        ]
        if said := _run(command, root, source):
            on_warnings(said)
        if not (json_file.is_file() and p4info_file.is_file()):
            raise P4CompileError(
                f"{source}: {p4c} wrote nothing into {scratch}; does it see that folder"
                " (docs/own_p4.md, of containers)?"
            )
        program = _tidy_paths(json.loads(json_file.read_text()))
        if not has_manifest:
            program.setdefault(origin.META, {})[origin.KEY] = origin.record(source, out_dir)
        p4info = p4info_file.read_text()
    outputs = out_dir / f"{name}.json", out_dir / f"{name}.p4info.txtpb"
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        outputs[0].write_text(_dump(program))
        outputs[1].write_text(p4info)
    except OSError as error:
        raise P4CompileError(f"cannot write {out_dir}: {error.strerror}") from error
    return outputs


def compile_build(values: int, out_dir: Path, mode: str = names.DEFAULT_MODE) -> tuple[Path, Path]:
    """Compile a mode's program with `values` values a packet into `out_dir`; return both files.

    Raises: as compile_program.
    """
    name, defines = build_name(values, mode), build_defines(values)
    return compile_program(program_source(mode), out_dir, name, defines, root=_PACKAGE_ROOT)


def compile_all(on_build: Callable[[str, int], None] = lambda mode, values: None) -> None:
    """Compile every checked-in build again, and record the hashes of their sources.

    `on_build`: called before each, with its mode and values a packet.
    Raises: as compile_program.
    """
    with tempfile.TemporaryDirectory(prefix="ina-p4-") as folder:
        for mode, values in all_builds():
            on_build(mode, values)
            compile_build(values, Path(folder), mode)
        try:
            write_compiled(Path(folder), p4c_version())
        except OSError as error:
            raise P4CompileError(f"cannot write {error.filename}: {error.strerror}") from error


def _run(command: list[str], root: Path, source: Path) -> str:
    """Return what p4c said of a program that it took."""
    try:
        done = subprocess.run(
            command,
            cwd=root,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # it quotes the source, whatever that is
            timeout=COMPILE_DEADLINE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise P4CompileError(f"{source}: p4c took more than {COMPILE_DEADLINE_S:g} s") from error
    except OSError as error:
        raise P4cMissingError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr + done.stdout
        first = first_error(said) or f"{source}: p4c exited with {done.returncode}"
        raise P4CompileError(first, said)
    return done.stderr


def first_error(said: str) -> str:
    """Return the first line of p4c's output that is an error, else the first that says anything.

    A syntax error is ``FILE(LINE):syntax error, ...``; the line that only counts errors comes last.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line) and not _COUNT.search(line)]
    return (errors or lines or [""])[0]


def _tidy_paths(node: Any) -> Any:
    """Return the JSON with ``a/b/../c.p4`` in its file names made ``a/c.p4``."""
    if isinstance(node, dict):
        return {
            key: posixpath.normpath(value)
            if key in ("filename", "program") and isinstance(value, str) and value
            else _tidy_paths(value)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [_tidy_paths(item) for item in node]
    return node


def _dump(program: dict[str, Any]) -> str:
    """Return the JSON, one line a member of each top-level list: small, yet a diff can be read."""
    members = []
    for key, value in program.items():
        if isinstance(value, list) and value:
            items = ",\n".join(_compact(item) for item in value)
            members.append(f"{json.dumps(key)}:[\n{items}\n]")
        else:
            members.append(f"{json.dumps(key)}:{_compact(value)}")
    return "{\n" + ",\n".join(members) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
