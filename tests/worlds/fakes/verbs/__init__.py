"""An RDMA device that is UDP sockets: ``library.cpp`` says what, and what a test may want of it.

It is a library of libibverbs' name, so a process has it from its beginning: what uses it runs in
one of its own.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.lines import ROOT

_SOURCES = (Path(__file__).with_name("library.cpp"), ROOT / "native/host/channel/verbs_abi.hpp")
_TIMEOUT_S = 60


def folder() -> Path:
    """Where the library is, compiled where it is not yet."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:16]
    there = ROOT / "build" / "fake_verbs" / digest
    if not there.exists():
        there.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=there.parent) as made:
            out = Path(made) / "it" / "libibverbs.so.1"
            out.parent.mkdir()
            _compile(_SOURCES[0], out)
            if not there.exists():
                out.parent.rename(there)
    return there


def _compile(source: Path, out: Path) -> None:
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", f"-Wl,-soname,{out.name}"]
    command = [os.environ.get("CXX", "c++"), *flags, f"-I{ROOT / 'native'}"]
    subprocess.run([*command, "-o", str(out), str(source)], check=True, timeout=_TIMEOUT_S)


def environment(**wants: str) -> Mapping[str, str]:
    """Of a process that has the device; ``wants`` by the names of ``FAKE_VERBS_...``."""
    named = {f"FAKE_VERBS_{name.upper()}": value for name, value in wants.items()}
    return {**os.environ, "LD_LIBRARY_PATH": str(folder()), **named}


def run_there(function: Callable[[], None], **wants: str) -> None:
    """Runs a module's function in a process that has the device; raises what it raises, as text."""
    code = f"from {function.__module__} import {function.__name__} as run\nrun()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        env=environment(**wants),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
