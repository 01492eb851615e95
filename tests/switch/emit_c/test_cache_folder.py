"""Where the cache cannot be used, as in containers: it says why, and what to set.

As root each folder is what it says: mounted noexec or read-only, or full, in a mount namespace of
its own. The uid has no name, and reads all files, for the interpreter may be somebody's alone.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ina.cache_dir import CacheError, default_cache_dir
from ina.doctor.machine import examine
from ina.switch.c_target.target import CTarget
from ina.switch.errors import CompilerMissingError
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import PROGRAMS

PROGRAM = PROGRAMS / "parsing.json"
SCRIPT = f"""
from pathlib import Path
from ina.errors import InaError
from ina.switch.targets import default_target
try:
    with default_target().load(Path({str(PROGRAM)!r})) as pipeline:
        print("runs" if pipeline.process(0, bytes.fromhex("2111")) else "")
except InaError as error:
    print(error)
"""
NOBODYS_UID = 54321
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("setpriv")),
    reason="needs root, unshare and setpriv",
)


def load(*before: str, **environ: str) -> str:
    """What loading the program ends with, in a process; empty variables are not set."""
    kept = {name: value for name, value in {**os.environ, **environ}.items() if value}
    for name in ("HOME", "XDG_CACHE_HOME", "INA_CC"):
        if not environ.get(name):
            kept.pop(name, None)
    command = [*before, sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=kept)
    return done.stdout.strip() or done.stderr


def mounted(folder: Path, *mounts: str) -> list[str]:
    """A command that mounts there first, in a namespace of its own."""
    script = "\n".join(["set -e", *mounts, 'exec "$@"']).replace("DIR", str(folder))
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def has_no_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return True
    return False


def as_nobody_known() -> list[str]:
    assert has_no_name(NOBODYS_UID)
    reads = [
        word for which in ("inh", "ambient") for word in (f"--{which}-caps", "+dac_read_search")
    ]
    uid = str(NOBODYS_UID)
    return ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", *reads]


@as_root
def test_a_uid_without_a_name_and_home(tmp_path: Path) -> None:
    said = load(*as_nobody_known())
    assert said == (
        f"no folder for what ina caches: uid {NOBODYS_UID} has no name and no HOME: set"
        " XDG_CACHE_HOME to a folder that it may write"
    )


@as_root
@pytest.mark.parametrize("home", ["/", "/root"])
def test_a_home_that_is_another_s(home: str) -> None:
    """Containers set it to /, or leave root's."""
    said = load(*as_nobody_known(), HOME=home)
    assert "cannot write it: Permission denied: set XDG_CACHE_HOME to a folder" in said


@as_root
@pytest.mark.parametrize(
    ("mounts", "why"),
    [
        (["mount -t tmpfs -o noexec none DIR"], "its file system is mounted noexec"),
        (["mount -t tmpfs -o ro none DIR"], "cannot write it: Read-only file system"),
        # The compiler, the linker and the file that is written find no room at other sizes.
        (["mount -t tmpfs -o size=8k none DIR"], "No space left on device"),
        (["mount -t tmpfs -o size=28k none DIR"], "No space left on device"),
        (["mount -t tmpfs -o size=48k none DIR"], "No space left on device"),
    ],
)
def test_a_folder_that_no_program_can_be_kept_in(
    tmp_path: Path, mounts: list[str], why: str
) -> None:
    said = load(*mounted(tmp_path, *mounts), XDG_CACHE_HOME=str(tmp_path))
    assert said.startswith(f"the cache {tmp_path}/ina: ")
    assert why in said
    assert "set XDG_CACHE_HOME" in said
    assert "\n" not in said


@as_root
def test_what_was_compiled_runs_from_a_read_only_folder_without_a_compiler(tmp_path: Path) -> None:
    warm, empty = tmp_path / "warm", tmp_path / "empty"
    empty.mkdir()
    assert load(XDG_CACHE_HOME=str(warm)) == "runs"
    readonly = mounted(warm, "mount --bind DIR DIR", "mount -o remount,ro,bind DIR")
    asked = [*readonly, shutil.which("env") or "", f"PATH={empty}"]
    assert load(*asked, XDG_CACHE_HOME=str(warm)) == "runs"


def test_a_warm_cache_runs_without_a_compiler_and_a_cold_one_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INA_CC", raising=False)
    default_target(tmp_path).load(PROGRAM).close()
    before = sorted(tmp_path.iterdir())
    monkeypatch.setenv("PATH", str(tmp_path))
    with default_target(tmp_path).load(PROGRAM) as pipeline:
        assert pipeline.generated in before
        assert pipeline.process(0, bytes.fromhex("2111"))
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(CompilerMissingError, match="does not have the program, either"):
        default_target(tmp_path / "cold").load(PROGRAM)
    with pytest.raises(CompilerMissingError, match="no C compiler 'chosen'"):
        CTarget(tmp_path, "chosen").load(PROGRAM)  # another's would not be asked for


def test_of_two_compilers_the_last_one_s_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And, where that is damaged, the other's."""
    monkeypatch.delenv("INA_CC", raising=False)
    real, other = shutil.which("cc"), tmp_path / "other"
    other.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo other; exit 0; }}\nexec {real} "$@"\n'
    )
    other.chmod(other.stat().st_mode | stat.S_IXUSR)
    made = []
    for compiler in (real, str(other)):
        with CTarget(tmp_path / "cache", compiler).load(PROGRAM) as pipeline:
            assert pipeline.generated is not None
            made.append(pipeline.generated)
    for at, source in enumerate(made):
        os.utime(source.with_suffix(".so"), (at + 1, at + 1))
    monkeypatch.setenv("PATH", str(tmp_path))
    taken = []
    for _ in made:
        with default_target(tmp_path / "cache").load(PROGRAM) as pipeline:
            assert pipeline.generated is not None
            taken.append(pipeline.generated)
        library = taken[-1].with_suffix(".so")
        library.unlink()  # what is loaded stays as it was
        library.write_bytes(b"\x7fELF")
    assert taken == made[::-1]


def test_without_root_the_same_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {row.name: row for row in examine()}["program cache"]
    assert found.found == str(default_cache_dir())

    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(CacheError, match="set XDG_CACHE_HOME"):
        default_target().load(PROGRAM)
    found = {row.name: row for row in examine()}["program cache"]
    assert (found.verdict, found.found) == ("MISSING", "")
    assert "set XDG_CACHE_HOME" in found.get

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="Not a directory: set XDG_CACHE_HOME"):
        default_target().load(PROGRAM)
