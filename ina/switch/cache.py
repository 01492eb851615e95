"""Generated C to a shared object, once for each (program, generator, compiler, flags, processor).

Two files a program in the cache directory: ``<digest>.c`` to read, ``<digest>.so`` to run. Both are
written beside their place and renamed, so that several processes may compile a program at once.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from ina.switch.errors import CompilationError, CompilerMissingError

RUNTIME = Path(__file__).parent / "emit_c" / "runtime"
GENERATOR_FOLDERS = ("ir", "passes", "emit_c")
"""Beside this file: what makes C of a program, all of it part of the digest."""
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fno-semantic-interposition",
)
# The packet path is one large function: registers are best given out over all of it at once,
# but for loops that are short of them, packing a few scalars into vectors costs more than it saves
# (measured: 15 % together), and so does keeping values to compute nothing twice (-ftree-pre: up to
# 10 %). Branches are well predicted; conditional moves instead wait for both values (up to 10 %).
GCC_FLAGS = (
    "-fno-tree-slp-vectorize",
    "-fira-region=mixed",
    "-fno-tree-pre",
    "-fno-if-conversion",
)
# With movbe, GCC swaps a value that is in a register by way of memory (measured: 6 %). What GCC
# knows of server processors makes it hold back from vectors of 64 bytes, and load unaligned ones by
# way of the stack (measured with AVX-512: 7 % at 64 values a packet, 23 % at 256).
X86_FLAGS = ("-mno-movbe", "-mtune=generic")
COMPILE_TIMEOUT_S = 300.0


def default_cache_dir() -> Path:
    """``$XDG_CACHE_HOME/ina`` or ``~/.cache/ina``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ina"


def find_compiler(cc: str | None) -> str:
    """``cc``, else $INA_CC, else the system's ``cc``; raises CompilerMissingError."""
    wanted = cc or os.environ.get("INA_CC") or "cc"
    found = shutil.which(wanted)
    if found is None:
        raise CompilerMissingError(
            f"no C compiler {wanted!r}: apt install gcc, or set INA_CC to a compiler"
        )
    return found


def _run(command: list[str], what: str) -> str:
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise CompilerMissingError(f"cannot run {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise CompilationError(f"{what} took more than {COMPILE_TIMEOUT_S:.0f} s") from error
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "error" in line] or [
            result.stderr.strip().splitlines()[0] if result.stderr.strip() else "no message"
        ]
        raise CompilationError(f"{what} failed: {lines[0]}")
    return result.stdout


def _version_of(compiler: str) -> str:
    """What ``--version`` says; asked once of a compiler, and again when its file has changed."""
    try:
        status = os.stat(compiler)
    except OSError as error:
        raise CompilerMissingError(f"cannot run {compiler}: {error.strerror}") from error
    return _ask_version(compiler, status.st_ino, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _ask_version(compiler: str, inode: int, size_bytes: int, modified_ns: int) -> str:
    return _run([compiler, "--version"], f"{compiler} --version")


@functools.cache
def _cpu_flags() -> str:
    """What ``-march=native`` depends on."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    except OSError:
        pass
    return " ".join(os.uname())


def flags_for(compiler_version: str) -> tuple[str, ...]:
    """FLAGS, and those that only GCC knows."""
    if "Free Software Foundation" not in compiler_version:
        return FLAGS
    return FLAGS + GCC_FLAGS + (X86_FLAGS if platform.machine() == "x86_64" else ())


def digest_of(program: bytes, generator: str, compiler_version: str) -> str:
    """Names a shared object by everything that it depends on."""
    digest = hashlib.sha256()
    for part in (program, generator.encode(), compiler_version.encode(), _cpu_flags().encode()):
        digest.update(hashlib.sha256(part).digest())
    for flag in flags_for(compiler_version):
        digest.update(flag.encode() + b"\0")
    digest.update(_generator_digest())
    return digest.hexdigest()[:32]


def generator_sources() -> list[Path]:
    """All that decides which C comes of a program."""
    folders = [Path(__file__).parent / name for name in GENERATOR_FOLDERS]
    return sorted(
        path for folder in folders for end in ("*.py", "*.h") for path in folder.rglob(end)
    )


@functools.cache
def _generator_digest() -> bytes:
    """Of the sources as this process loaded them: they are read once."""
    digest = hashlib.sha256()
    for source in generator_sources():
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.digest()


def load_library(
    program: bytes,
    generator: str,
    emit: Callable[[str], str],
    cache_dir: Path | None,
    cc: str | None,
) -> tuple[ctypes.CDLL, Path]:
    """The program's shared object, compiled if the cache lacks it, and the path of its C source.

    ``emit(digest)`` returns the C source. A cached object that does not load, or reports another
    digest, is compiled anew.
    """
    compiler = find_compiler(cc)
    version = _version_of(compiler)
    digest = digest_of(program, generator, version)
    directory = cache_dir or default_cache_dir()
    source, library = directory / f"{digest}.c", directory / f"{digest}.so"
    if library.exists():
        loaded = _load(library, digest)
        if loaded is not None:
            return loaded, source
        library.unlink(missing_ok=True)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as scratch:
            made_source, made_library = Path(scratch, "pipeline.c"), Path(scratch, "pipeline.so")
            made_source.write_text(emit(digest))
            command = [
                compiler,
                *flags_for(version),
                "-I",
                str(RUNTIME),
                "-o",
                str(made_library),
                str(made_source),
            ]
            _run(command, f"{compiler} on the generated C")
            made_source.replace(source)
            made_library.replace(library)
    except OSError as error:
        raise CompilationError(f"cannot write the cache {directory}: {error.strerror}") from error
    loaded = _load(library, digest)
    if loaded is None:
        raise CompilationError(f"{library} was compiled but does not load")
    return loaded, source


def _load(library: Path, digest: str) -> ctypes.CDLL | None:
    """The library if it is whole and says that it is this program."""
    data = library.read_bytes()
    if not data.startswith(b"\x7fELF") or digest.encode() not in data or _is_truncated(data):
        return None
    try:
        return ctypes.CDLL(str(library))
    except OSError:
        return None


def _is_truncated(elf: bytes) -> bool:
    """Whether the section headers, which stand at the end of the file, are cut off.

    Mapping a truncated object can kill the process, so this is looked at first.
    """
    if len(elf) < 64 or elf[4] != 2:
        return True
    table = int.from_bytes(elf[40:48], "little")
    entry, count = int.from_bytes(elf[58:60], "little"), int.from_bytes(elf[60:62], "little")
    return table + entry * count > len(elf)
