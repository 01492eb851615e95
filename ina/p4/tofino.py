"""Compile TNA programs with p4c's open Tofino back end and its assembler.

``p4c-barefoot`` writes assembly (.bfa), the schema of the tables and its logs; ``bfas`` turns the
assembly into the chip's binary and is the one that finds out that a program needs more stages than
the chip has. So a program has compiled only when the binary is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ina.files import root
from ina.p4 import names
from ina.p4.compile import first_error
from ina.p4.errors import P4cDefectError, P4cMissingError, P4CompileError

P4C_TOFINO = "p4c-barefoot"
BFAS = "bfas"
TOFINO_DEADLINE_S = 1800.0
"""Placing 64 values takes minutes where two cores are shared."""
_BFAS_DEADLINE_S = 300.0
# What bfas says of a parser state whose select has lost its values: all packets go one way.
_LOST_MATCH = "Can't match parser state due to previous match"
_LOGS = ("-g", "--verbose", "-Ttable_placement:1,table_summary:1")


@dataclass(frozen=True)
class TofinoTarget:
    """What the compiler must be told of a chip, and the build of ina for it."""

    name: str
    arch: str  # P4 architecture: tna, t2na
    values: int  # int32 a packet


TARGETS = {
    target.name: target
    for target in (
        TofinoTarget("tofino", "tna", 64),
        TofinoTarget("tofino2", "t2na", 64),  # 128 values do not pass PHV allocation
    )
}


@dataclass(frozen=True)
class TofinoBuild:
    """One compiled program. All paths exist, but for `binary` without the assembler."""

    target: TofinoTarget
    directory: Path
    p4info: Path  # text protobuf
    bfrt_schema: Path  # JSON, for BFRuntime
    assembly: Path
    binary: Path | None  # None: not assembled, so that it fits has not been shown
    logs: Path


def find_tool(name: str, variable: str) -> Path | None:
    """Return the program that the environment `variable` names, else `name` on PATH, else None."""
    found = shutil.which(os.environ.get(variable) or name)
    return Path(found) if found else None


def tofino_source(mode: str = names.DEFAULT_MODE) -> Path:
    """The program of a mode for Tofino. Raises as :func:`ina.files.root`."""
    return root() / "tofino" / f"{mode}.p4"


def compile_tofino(
    source: Path,
    target: TofinoTarget,
    out_dir: Path,
    defines: Mapping[str, str] | None = None,
    *,
    assemble: bool = True,
) -> TofinoBuild:
    """Compile `source` for `target` into `out_dir`, with logs.

    Without ``bfas`` (on PATH or INA_BFAS), or where it shall not `assemble`, the build has no
    binary.

    Raises:
        P4cMissingError: no ``p4c-barefoot`` (on PATH or INA_P4C_TOFINO).
        P4cDefectError: it is one that drops what parsers select by (p4lang/p4c issue 5752).
        P4CompileError: the source cannot be read; a tool refuses it, or does not end in time.
    """
    p4c = find_tool(P4C_TOFINO, "INA_P4C_TOFINO")
    if p4c is None:
        raise P4cMissingError(
            f"{P4C_TOFINO} is not on PATH and INA_P4C_TOFINO is not set; build p4c "
            "(https://github.com/p4lang/p4c) with its Tofino back end"
        )
    if not source.is_file():
        raise P4CompileError(f"{source}: no such P4 program")
    out_dir = out_dir.resolve()
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise P4CompileError(f"cannot write {out_dir}: {error.strerror}") from error
    stem = source.stem
    p4info, schema = out_dir / f"{stem}.p4info.txtpb", out_dir / "bf-rt.json"
    command = [
        *(str(p4c), "--target", target.name, "--arch", target.arch, "--std", "p4-16"),
        *("--Wdisable=unused", "--Wdisable=uninitialized-out-param", *_LOGS),
        *(f"-D{key}={value}" for key, value in sorted((defines or {}).items())),
        *("-o", str(out_dir), "--bf-rt-schema", str(schema), "--p4runtime-files", str(p4info)),
        str(source.resolve()),
    ]
    _run(command, source, TOFINO_DEADLINE_S)
    pipes = sorted(out_dir.glob(f"*/{stem}.bfa"))
    if len(pipes) != 1:
        raise P4CompileError(f"{source}: {P4C_TOFINO} wrote no assembly into {out_dir}")
    binary = _assemble(pipes[0], target, source) if assemble else None
    logs = pipes[0].parent / "logs"
    return TofinoBuild(target, out_dir, p4info, schema, pipes[0], binary, logs)


def _assemble(assembly: Path, target: TofinoTarget, source: Path) -> Path | None:
    bfas = find_tool(BFAS, "INA_BFAS")
    if bfas is None:
        return None
    binary = assembly.parent / f"{target.name}.bin"
    binary.unlink(missing_ok=True)
    command = [str(bfas), "--target", target.name, "-o", str(assembly.parent), str(assembly)]
    said = _run(command, source, _BFAS_DEADLINE_S)
    if _LOST_MATCH in said:
        raise P4cDefectError(
            f"{source}: {P4C_TOFINO} has dropped what the parsers select by, so the binary would"
            " take all packets for one kind: build p4c with its pull request 5753"
        )
    if not binary.is_file():
        raise P4CompileError(f"{source}: {BFAS} made no binary: it does not fit {target.name}")
    return binary


def _run(command: Sequence[str], source: Path, deadline_s: float) -> str:
    """What it said."""
    tool = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=deadline_s)
    except subprocess.TimeoutExpired:
        raise P4CompileError(f"{source}: {tool} took more than {deadline_s:g} s") from None
    except OSError as error:
        raise P4cMissingError(f"cannot run {command[0]}: {error.strerror}") from error
    said = done.stderr + done.stdout
    if done.returncode != 0:
        first = first_error(said) or f"exit status {done.returncode}"
        raise P4CompileError(f"{source}: {tool}: {first}", said)
    return said
