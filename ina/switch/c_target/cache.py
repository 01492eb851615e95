"""Generated C to a shared object, once for each (program, generator, processor, compiler, flags).

Two files a program in the cache directory: ``<digest>.c`` to read, ``<digest>.so`` to run. Both are
written beside their place and renamed, so that several processes may compile a program at once. The
first half of a digest is of the program, the second of the compiler: where there is none, whatever
one has made of the program before runs.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from ina.cache_dir import CacheError, default_cache_dir
from ina.switch.errors import CompilationError, CompilerMissingError

_log = logging.getLogger(__name__)

SWITCH = Path(__file__).parent.parent
INCLUDES = tuple(
    word
    for folder in (SWITCH / "emit_c" / "runtime", SWITCH / "emit" / "runtime", SWITCH)
    for word in ("-I", str(folder))
)
"""Options of the compiler: where the headers are that generated C includes."""
GENERATOR_FOLDERS = ("ir", "passes", "emit", "emit_c")
"""What makes C of a program, all of it part of the digest."""
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
_ROOM_BYTES = 1 << 20
"""More than any program takes: a cache with less left is full."""


def cache_trouble() -> str:
    """Why no compiled program can be kept in the default cache and run from there; empty: nothing
    speaks against it. Changes nothing."""
    try:
        directory = default_cache_dir()
        _check_mount(directory)
    except CacheError as error:
        return str(error)
    there = _first_that_is(directory)
    if os.access(there, os.W_OK | os.X_OK) or any(directory.glob("*.so")):
        return ""
    return str(_unusable(directory, f"this user may not write {there}"))


def _unusable(directory: Path, why: str | None) -> CacheError:
    return CacheError(
        f"the cache {directory}: {why}: set XDG_CACHE_HOME to a folder that this user may write,"
        " with room, not mounted noexec"
    )


def _first_that_is(directory: Path) -> Path:
    """The folder, or the nearest above it."""
    return next((it for it in (directory, *directory.parents) if os.path.isdir(it)), Path("/"))


def _check_mount(directory: Path) -> None:
    """Raises :class:`CacheError`: nothing can be run from there, whatever is compiled."""
    try:
        flags = os.statvfs(_first_that_is(directory)).f_flag
    except OSError as error:
        raise _unusable(directory, error.strerror) from None
    if flags & os.ST_NOEXEC:
        raise _unusable(directory, "its file system is mounted noexec, no compiled program loads")


def _check_room(directory: Path, scratch: Path) -> None:
    """After a failure: compilers and linkers do not always say that there was no room. Raises
    :class:`CacheError`."""
    try:
        with Path(scratch, "room").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _ROOM_BYTES)
    except OSError as error:
        raise _unusable(directory, error.strerror) from None


def find_compiler(cc: str | None) -> str:
    """``cc``, else $INA_CC, else the system's ``cc``; raises CompilerMissingError."""
    wanted = cc or os.environ.get("INA_CC") or "cc"
    found = shutil.which(wanted)
    if found is None:
        raise CompilerMissingError(
            f"no C compiler {wanted!r}: apt install gcc, or set INA_CC to a compiler"
        )
    return found


def _run(command: list[str], what: str, temporary: Path | None = None) -> str:
    """``temporary``: where it may write what it needs meanwhile; None: where the system says."""
    environ = None if temporary is None else {**os.environ, "TMPDIR": str(temporary)}
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=COMPILE_TIMEOUT_S,
            check=False,
            env=environ,
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


def key_of(program: bytes, generator: str) -> str:
    """Names a program by everything but the compiler that its shared object depends on."""
    digest = hashlib.sha256()
    for part in (program, generator.encode(), _cpu_flags().encode()):
        digest.update(hashlib.sha256(part).digest())
    digest.update(_generator_digest())
    return digest.hexdigest()[:32]


def digest_of(key: str, compiler_version: str) -> str:
    """Names a shared object by everything that it depends on."""
    digest = hashlib.sha256(compiler_version.encode())
    for flag in flags_for(compiler_version):
        digest.update(flag.encode() + b"\0")
    return f"{key}-{digest.hexdigest()[:16]}"


def generator_sources() -> list[Path]:
    """All that decides which C comes of a program."""
    folders = [SWITCH / name for name in GENERATOR_FOLDERS]
    found = (path for folder in folders for end in ("*.py", "*.h") for path in folder.rglob(end))
    return [SWITCH / "pipeline_abi.h", *sorted(found)]


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
    digest, is compiled anew. Without a compiler, unless one was asked for by name, the newest that
    any has made of this program is taken.

    Raises :class:`CompilerMissingError`, :class:`CompilationError`;
    :class:`CacheError`: the folder cannot be used.
    """
    directory = cache_dir or default_cache_dir()
    _check_mount(directory)
    key = key_of(program, generator)
    try:
        try:
            compiler = find_compiler(cc)
            version = _version_of(compiler)
        except CompilerMissingError as error:
            if cc or os.environ.get("INA_CC"):
                raise
            return _compiled_before(directory, key, str(error))
        digest = digest_of(key, version)
        library = directory / f"{digest}.so"
        if library.exists():
            try:
                return _load(library), library.with_suffix(".c")
            except _DamagedError:
                library.unlink(missing_ok=True)
        _compile(compiler, version, emit(digest), library)
        return _load(library), library.with_suffix(".c")
    except _DamagedError as error:
        raise CompilationError(f"{library} was compiled but does not load: {error}") from None
    except OSError as error:
        raise _unusable(directory, f"cannot write it: {error.strerror}") from error


def _compiled_before(directory: Path, key: str, why: str) -> tuple[ctypes.CDLL, Path]:
    """``why``: there is no compiler. Raises :class:`CompilerMissingError` with it."""
    found = {library.stat().st_mtime_ns: library for library in directory.glob(f"{key}-*.so")}
    for _, library in sorted(found.items(), reverse=True):
        try:
            loaded = _load(library)
        except _DamagedError:
            continue
        _log.info("%s: runs %s, which was compiled before", why, library)
        return loaded, library.with_suffix(".c")
    raise CompilerMissingError(f"{why}; the cache {directory} does not have the program, either")


def _compile(compiler: str, version: str, source: str, library: Path) -> None:
    """Makes ``library``, and the C beside it. Raises what :func:`load_library` does, OSError."""
    directory = library.parent
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".build-") as scratch:
        made_source, made_library = Path(scratch, "pipeline.c"), Path(scratch, "pipeline.so")
        made_source.write_text(source)
        paths = [*INCLUDES, "-o", str(made_library), str(made_source)]
        command = [compiler, *flags_for(version), *paths]
        try:
            # In the cache it may write; the system's folder may be read-only, in a container.
            _run(command, f"{compiler} on the generated C", Path(scratch))
        except CompilationError:
            _check_room(directory, Path(scratch))
            raise
        if _is_truncated(made_library.read_bytes()):
            _check_room(directory, Path(scratch))
        made_source.replace(library.with_suffix(".c"))
        made_library.replace(library)


class _DamagedError(Exception):
    """A library is not whole, or is not the program that its name says."""


def _load(library: Path) -> ctypes.CDLL:
    """Raises :class:`_DamagedError`, OSError: it cannot be read."""
    data = library.read_bytes()
    if not data.startswith(b"\x7fELF") or _is_truncated(data):
        raise _DamagedError("it is no whole shared object")
    if library.stem.encode() not in data:
        raise _DamagedError("it is another program's")
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise _DamagedError(str(error)) from None


def _is_truncated(elf: bytes) -> bool:
    """Whether the section headers, which stand at the end of the file, are cut off.

    Mapping a truncated object can kill the process, so this is looked at first.
    """
    if len(elf) < 64 or elf[4] != 2:
        return True
    table = int.from_bytes(elf[40:48], "little")
    entry, count = int.from_bytes(elf[58:60], "little"), int.from_bytes(elf[60:62], "little")
    return table + entry * count > len(elf)
