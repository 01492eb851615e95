"""An extension that was built of other sources than there are now is refused, in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ina import _native, extension
from ina.extension import StaleExtensionError, check
from ina.native_sources import sources_sha256
from tests.layers import NATIVE_OWNERS, imported, modules
from tests.lines import ROOT

PARTS = ("ina._native.", *(f"ina.extension.{name}" for name in NATIVE_OWNERS))
IMPORTERS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in modules()
    if any(name.startswith(PARTS) for name in imported(path))
)

# What stands in for an extension that a pull left behind.
STALE = """\
import importlib, sys, types
import ina
old = types.ModuleType("ina._native")
old.__file__ = "/somewhere/_native.so"
for name in ("host", "switch"):
    part = types.ModuleType(f"ina._native.{name}")
    setattr(old, name, part)
    sys.modules[part.__name__] = part
sys.modules[old.__name__] = ina._native = old
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small one, of which the extension is."""
    for name in ("CMakeLists.txt", "native/a.cpp", "native/b/c.hpp"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    runtime = tmp_path / "ina" / "switch" / "r.h"
    runtime.parent.mkdir(parents=True)
    runtime.write_text("r")
    monkeypatch.setattr(_native, "SOURCES_SHA256", sources_sha256(tmp_path), raising=False)
    return tmp_path


def test_the_extension_of_these_tests_is_of_these_sources() -> None:
    assert sources_sha256(ROOT) == _native.SOURCES_SHA256
    assert extension.check() == _native.__file__


@pytest.mark.parametrize(
    "name", ["CMakeLists.txt", "native/a.cpp", "native/b/c.hpp", "ina/switch/r.h"]
)
def test_any_other_source_is_noticed(name: str, checkout: Path) -> None:
    assert check(checkout) == _native.__file__
    text = (checkout / name).read_text()
    (checkout / name).write_text(text + " ")
    wanted = f"^{_native.__file__} was built from other sources than {checkout} has now: make venv"
    with pytest.raises(StaleExtensionError, match=wanted):
        check(checkout)
    (checkout / name).write_text(text)
    assert check(checkout) == _native.__file__


def test_a_source_that_came_went_or_moved_is_noticed(checkout: Path) -> None:
    (checkout / "native" / "new.h").touch()
    with pytest.raises(StaleExtensionError):
        check(checkout)
    (checkout / "native" / "new.h").rename(checkout / "native" / "notes.txt")
    assert check(checkout) == _native.__file__
    (checkout / "native" / "a.cpp").rename(checkout / "native" / "b" / "a.cpp")
    with pytest.raises(StaleExtensionError):
        check(checkout)


def test_one_that_knows_of_no_sources_is_old_where_there_are_some(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(_native, "SOURCES_SHA256")
    with pytest.raises(StaleExtensionError, match="was built from other sources"):
        check(checkout)
    shutil.rmtree(checkout / "native")  # as beside a wheel's package
    assert check(checkout) == _native.__file__


def test_none_at_all_is_said(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "__file__", None)
    with pytest.raises(StaleExtensionError, match="ina's native extension is not built: make venv"):
        check(checkout)


def test_cmake_is_told_the_same() -> None:
    command = [sys.executable, "-I", str(ROOT / "ina" / "native_sources.py"), str(ROOT)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == sources_sha256(ROOT) + "\n"


def test_no_module_gets_past_it() -> None:
    """Whichever is imported first: torchrun's worker ends there, and not minutes later."""
    code = f"{STALE}from ina.errors import MissingToolError\n" + "".join(
        f"try: importlib.import_module({name!r})\n"
        f"except MissingToolError as error: print({name!r}, error)\n"
        f"else: print({name!r}, 'was imported')\n"
        for name in IMPORTERS
    )
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(IMPORTERS) > 10
    assert [line.partition(" was built from other")[0] for line in said] == [
        f"{name} /somewhere/_native.so" for name in IMPORTERS
    ]


def test_the_command_line_says_it_in_one_line() -> None:
    code = f"{STALE}from ina.cli.main import run\nsys.exit(run(sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", code, "switch", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: /somewhere/_native.so was built from other sources than")
    assert ran.stderr.count("\n") == 1


def test_doctor_says_what_to_run() -> None:
    code = f"{STALE}from ina.doctor.machine import _core\nprint([f for f in _core()][1])"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "found=''" in ran.stdout
    assert "make venv in" in ran.stdout
