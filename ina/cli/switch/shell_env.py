"""The environment of p4runtime-shell: its pins (protobuf < 3.21) clash with ours, so it has one.

Made once, with pip, under the cache directory; processes that want it at once wait for the first.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from ina.cache_dir import default_cache_dir
from ina.cli.common.progress import progress
from ina.errors import DeadlineError, MissingToolError

REQUIREMENTS = (
    "p4runtime-shell==0.0.6",
    "setuptools<81",  # the shell reads its version with pkg_resources
)
INSTALL_DEADLINE_S = 300.0
_CHECK = "import p4runtime_sh.shell"


class ShellEnvironmentError(MissingToolError):
    """p4runtime-shell is not there and cannot be installed; the message says why."""


def shell_python(cache_dir: Path | None = None, also: tuple[str, ...] = ()) -> Path:
    """Returns a Python that has p4runtime-shell, made now if there is none.

    ``also``: other distributions that it shall have, as pip names them. Raises
    ShellEnvironmentError (no network, no pip, no room), DeadlineError.
    """
    wanted = (*REQUIREMENTS, *also)
    names = "-".join(name.replace("==", "-") for name in (REQUIREMENTS[0], *also))
    version = f"py{sys.version_info[0]}.{sys.version_info[1]}"
    home = (cache_dir or default_cache_dir()) / f"{names}-{version}"
    python, done = home / "bin" / "python", home / "installed"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with (home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel frees it if its holder dies
            if not done.exists() or not python.exists():
                with progress(f"installing {REQUIREMENTS[0]} in {home} (once)"):
                    _install(home, python, wanted)
                done.touch()
    except OSError as error:
        raise ShellEnvironmentError(
            f"{home}: {error.strerror}: set XDG_CACHE_HOME to a folder that this user may write"
        ) from None
    return python


def _install(home: Path, python: Path, wanted: tuple[str, ...]) -> None:
    venv, pip = [sys.executable, "-m", "venv"], [str(python), "-m", "pip"]
    if _pip_can_install_elsewhere():  # else it costs seconds to put one there
        venv, pip = [*venv, "--without-pip"], [sys.executable, "-m", "pip", "--python", str(python)]
    _run([*venv, str(home)], "python -m venv")
    pip += ["install", "-q", "--disable-pip-version-check"]
    _run([*pip, *wanted], f"pip install {' '.join(wanted)}")
    _run([str(python), "-c", _CHECK], f"{REQUIREMENTS[0]} with Python {sys.version.split()[0]}")


def _pip_can_install_elsewhere() -> bool:
    """Whether this Python has a pip that knows ``--python``, as all since 23 do."""
    try:
        version = metadata.version("pip")
    except metadata.PackageNotFoundError:
        return False
    return int(version.partition(".")[0]) >= 23  # what follows may be "1b1"


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"{what}: not done within {INSTALL_DEADLINE_S:g} s") from None
    if done.returncode == 0:
        return
    said = (done.stderr or done.stdout).strip().splitlines() or ["it failed"]
    errors = [line for line in said if line.startswith("ERROR")]
    raise ShellEnvironmentError(f"{what}: {(errors or said)[-1]}")
