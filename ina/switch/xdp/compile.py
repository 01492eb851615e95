"""Generated C to a file of BPF, once for each program, generator and compiler."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ina.cache_dir import default_cache_dir
from ina.switch.errors import CompilationError, CompilerMissingError

_SWITCH = Path(__file__).parent.parent
_RUNTIMES = (_SWITCH / "emit_ebpf" / "runtime", _SWITCH / "emit" / "runtime")
_GENERATOR_FOLDERS = ("ir", "passes", "emit", "emit_ebpf")
_LAYOUT_FILES = ("attached.py", "pipeline.py", "registers.py", "tables.py")
"""What else knows how maps are filled."""
_FLAGS = (
    *("-target", "bpf", "-mcpu=v3", "-O2", "-g", "-ffreestanding", "-Wall", "-Werror"),
    *(
        "-Wno-unknown-pragmas",
        "-Wno-unused-but-set-variable",
        "-Wno-unused-variable",
        "-Wno-unused-function",
        # P4's constants may be cut where they are stored.
        "-Wno-shift-overflow",
        "-Wno-constant-conversion",
        "-Wno-integer-overflow",
        "-Wno-tautological-compare",
    ),
)
_TIMEOUT_S = 300.0
_UNFIT = re.compile(
    r"(\S+):(\d+):\d+: error: (?:Looks like )?"
    r"(the BPF stack limit[^.]*|A call to built-in function[^.]*)"
)


class UnfitError(CompilationError):
    """C that the kernel's machine cannot run: it has not enough room for variables, or nothing to
    calculate with so many bits. The message says where, as the kernel's verifier does."""


def find_clang() -> str:
    """$INA_CLANG, or the system's. Raises CompilerMissingError."""
    wanted = os.environ.get("INA_CLANG") or "clang"
    found = shutil.which(wanted)
    if found is None:
        raise CompilerMissingError(
            f"no compiler for BPF {wanted!r}: apt install clang, or set INA_CLANG"
        )
    return found


def built(source: Path, macros: Mapping[str, int], cache_dir: Path | None = None) -> Path:
    """The object file of a program that somebody wrote, with these macros.

    Raises CompilerMissingError, CompilationError, OSError.
    """
    defined = [f"-D{name}={value}" for name, value in macros.items()]
    text = source.read_text()
    return compiled("\n".join([*defined, text]).encode(), lambda: text, cache_dir, defined)


def compiled(
    program: bytes, emit: Callable[[], str], cache_dir: Path | None, flags: Sequence[str] = ()
) -> Path:
    """The object file of a program; its C is beside it. ``emit`` is called if the cache lacks it.

    Raises CompilerMissingError, CompilationError.
    """
    clang = find_clang()
    folder = (cache_dir or default_cache_dir()) / "xdp"
    digest = hashlib.sha256(_generator_digest() + _version(clang).encode())
    digest.update(program)
    path = folder / f"{digest.hexdigest()[:32]}.o"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        source, made = Path(scratch, "program.c"), Path(scratch, "program.o")
        source.write_text(emit())
        includes = [word for runtime in _RUNTIMES for word in ("-I", str(runtime))]
        _run([clang, *_FLAGS, *flags, *includes, "-c", str(source), "-o", str(made)])
        os.replace(source, path.with_suffix(".c"))
        os.replace(made, path)
    return path


@functools.cache
def layout_digest() -> bytes:
    """Whoever has the same one understands the maps of the same program."""
    digest = hashlib.sha256(_generator_digest())
    for name in _LAYOUT_FILES:
        digest.update(hashlib.sha256((_SWITCH / "xdp" / name).read_bytes()).digest())
    return digest.digest()


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise CompilerMissingError(f"cannot run {command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CompilationError(f"{command[0]} took more than {_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        unfit = _UNFIT.search(done.stderr)
        if unfit:
            raise UnfitError(f"; @ {unfit[1]}:{unfit[2]}\n{unfit[3]}")
        lines = [line for line in done.stderr.splitlines() if "error" in line] or ["no message"]
        raise CompilationError(f"{command[0]} failed: {lines[0]}")
    return done.stdout


@functools.cache
def _version(clang: str) -> str:
    return _run([clang, "--version"])


@functools.cache
def _generator_digest() -> bytes:
    digest = hashlib.sha256()
    for name in _GENERATOR_FOLDERS:
        for end in ("*.py", "*.h"):
            for source in sorted((_SWITCH / name).rglob(end)):
                digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.digest()
