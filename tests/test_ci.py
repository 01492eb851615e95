"""What .ci/run_tests.py makes of failures: few are run again alone, and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Stands for `make test`.
_MAKE = """#!/bin/sh
FULL_RUN=1 {python} -m pytest -n {workers} -q || exit 2
"""
_TESTS = """
import os, pytest

def fails_until_alone(name):
    with open("runs.log", "a") as log:
        print(name, file=log)
    return "FULL_RUN" in os.environ

@pytest.mark.parametrize("number", range({flaky}))
def test_flaky(number):
    assert not fails_until_alone(f"flaky{{number}}")

@pytest.mark.parametrize("number", range({broken}))
def test_broken(number):
    fails_until_alone(f"broken{{number}}")
    assert False

def test_sound():
    fails_until_alone("sound")
"""


def run_ci(folder: Path, tests: str, workers: int = 0) -> tuple[int, str, str]:
    """Exit status, what it printed, and what it wrote as flaky."""
    programs = folder / "bin"
    programs.mkdir()
    make = programs / "make"
    make.write_text(_MAKE.format(python=sys.executable, workers=workers))
    make.chmod(0o755)
    (folder / "pytest.ini").write_text("[pytest]\n")
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "conftest.py")
    (folder / "test_it.py").write_text(tests)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    ran = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "run_tests.py"), "flaky.txt"],
        cwd=folder,
        env=kept | {"PATH": f"{programs}:{kept['PATH']}", "PYTHON_OF_TESTS": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
    )
    file = folder / "flaky.txt"
    return ran.returncode, ran.stdout, file.read_text() if file.exists() else ""


def runs(folder: Path) -> list[str]:
    return sorted((folder / "runs.log").read_text().split())


def test_a_run_without_failures_is_the_only_one(tmp_path: Path) -> None:
    status, said, flaky = run_ci(tmp_path, _TESTS.format(flaky=0, broken=0))
    assert (status, flaky) == (0, ""), said
    assert runs(tmp_path).count("sound") == 1


@pytest.mark.parametrize(("count", "workers"), [pytest.param(1, 0, marks=pytest.mark.long), (5, 2)])
def test_few_failures_that_pass_alone_are_named(tmp_path: Path, count: int, workers: int) -> None:
    status, said, flaky = run_ci(tmp_path, _TESTS.format(flaky=count, broken=0), workers)
    names = ", ".join(f"test_it.py::test_flaky[{number}]" for number in range(count))
    assert status == 0, said
    assert flaky == f"FLAKY: {names} failed in the full run and passed alone\n"
    assert flaky.strip() in said.splitlines()
    assert runs(tmp_path) == sorted([f"flaky{n}" for n in range(count)] * 2 + ["sound"])


def test_a_second_failure_fails(tmp_path: Path) -> None:
    status, said, flaky = run_ci(tmp_path, _TESTS.format(flaky=1, broken=1))
    assert (status, flaky) == (1, ""), said
    assert "FLAKY" not in said
    assert runs(tmp_path) == ["broken0", "broken0", "flaky0", "flaky0", "sound"]


def test_many_failures_fail_at_once(tmp_path: Path) -> None:
    status, said, flaky = run_ci(tmp_path, _TESTS.format(flaky=6, broken=0))
    assert (status, flaky) == (2, ""), said
    assert "not run again: 6 tests failed, more than 5" in said
    assert runs(tmp_path) == sorted([f"flaky{n}" for n in range(6)] + ["sound"])


def test_a_run_that_broke_off_fails(tmp_path: Path) -> None:
    stop = "\ndef test_stop():\n    pytest.exit('the machine goes down', 3)\n"
    status, said, flaky = run_ci(tmp_path, _TESTS.format(flaky=1, broken=0) + stop)
    assert (status, flaky) == (2, ""), said
    assert "not run again: the run did not come to its end" in said


def test_a_pytest_that_never_began_fails(tmp_path: Path) -> None:
    status, said, flaky = run_ci(tmp_path, "raise RuntimeError('no tests here')")
    assert (status, flaky) == (2, ""), said
    assert "not run again: the run did not come to its end" in said
