"""The distribution's kernel: its image and its modules, in the build folder."""

from __future__ import annotations

import fcntl
import functools
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ina.errors import UnavailableError
from tests.lines import ROOT

_FOLDER = ROOT / "build" / "machines"
_TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "apt-get": "a Debian or Ubuntu",
    "dpkg-deb": "a Debian or Ubuntu",
    "busybox": "busybox-static",
}
_TIMEOUT_S = 300.0
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


class NoKernelError(UnavailableError):
    """There is none to be had here; the message says why."""


@dataclass(frozen=True)
class Kernel:
    """An unpacked package."""

    folder: Path

    @property
    def image(self) -> Path:
        """What QEMU boots."""
        return next((self.folder / "boot").glob("vmlinuz-*"))

    def modules(self, *names: str) -> list[Path]:
        """These, and before each what it needs; one that is no module is built in."""
        order: list[Path] = []
        for name in names:
            self._visit(name, order)
        return order

    def _visit(self, name: str, order: list[Path]) -> None:
        path = self._files.get(_plain(name))
        if path is None or path in order:
            return
        said = _DEPENDS.search(path.read_bytes())
        for needed in filter(None, said[1].decode().split(",") if said else []):
            self._visit(needed, order)
        order.append(path)

    @functools.cached_property
    def _files(self) -> dict[str, Path]:
        return {_plain(path.stem): path for path in self.folder.rglob("*.ko")}


def why_not() -> str:
    """Why no machine can be made here; empty: it can, if the package can be had."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "needs Linux on x86-64: machines run this one's programs"
    for tool, package in _TOOLS.items():
        if shutil.which(tool) is None:
            return f"needs {tool} ({package})"
    if b"interpreter" in _file_head(Path(str(shutil.which("busybox")))):
        return "needs a busybox that depends on nothing (busybox-static)"
    return ""


def kernel() -> Kernel:
    """The newest of the distribution's, downloaded once. Raises NoKernelError."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return Kernel(next(_unpacked(), None) or _fetch())


def _unpacked() -> Iterator[Path]:
    return (path for path in _FOLDER.glob("linux-image-*") if path.is_dir())


def _fetch() -> Path:
    """A folder of the package's name."""
    depends = _run("apt-cache", "depends", "--important", "linux-image-amd64")
    named = re.search(r"Depends: (linux-image-[\w.-]+)", depends) or re.search(
        r"Depends: (linux-image-[\w.-]+)", _run("apt-cache", "depends", "linux-image-generic")
    )
    if named is None:
        raise NoKernelError("apt knows no linux-image-amd64 (apt-get update?)")
    there = _FOLDER / named[1]
    part = _FOLDER / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    _run("apt-get", "download", named[1], folder=part)
    (package,) = part.glob("*.deb")
    _run("dpkg-deb", "-x", str(package), str(part / "it"))
    (part / "it").rename(there)
    shutil.rmtree(part)
    return there


def _run(*command: str, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernelError(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "it failed").splitlines()[-1]
        raise NoKernelError(f"{' '.join(command)}: {said}")
    return done.stdout


def _file_head(path: Path) -> bytes:
    """Whether a program names an interpreter (ELF's PT_INTERP) is in its first page."""
    head = path.read_bytes()[:4096]
    return b"interpreter" if b"/ld-linux" in head or b"/ld-musl" in head else b""


def _plain(name: str) -> str:
    return name.replace("-", "_")
