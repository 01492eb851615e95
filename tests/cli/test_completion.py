"""The TAB key, as the shells ask: by environment variables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest

from ina.cli import main
from tests.worlds.fakes.operator import FakeController, serving

Tab: TypeAlias = Callable[[str], list[str]]


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tab:
    """What bash is offered for a line, whose last word is not complete."""
    monkeypatch.setenv("_INA_COMPLETE", "complete_bash")
    monkeypatch.setenv("INA_CONTROLLER", "127.0.0.1:1")

    def press(line: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        with pytest.raises(SystemExit, match="0"):
            main.run([])
        captured = capfd.readouterr()
        assert captured.err == ""
        return captured.out.split()

    return press


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ina jo", ["job"]),
        ("ina job s", ["show"]),
        ("ina bench a", ["allreduce", "advise"]),
        ("ina job list --cont", ["--controller"]),
        ("ina p4 compile --target tof", ["tofino", "tofino2"]),
        ("ina job show x", []),  # no controller answers
    ],
)
def test_words_are_offered(tab: Tab, line: str, offered: list[str]) -> None:
    assert tab(line) == offered


def test_nouns_are_offered_without_loading_them() -> None:
    script = (
        "import os, sys\n"
        "os.environ.update(_INA_COMPLETE='complete_bash', COMP_WORDS='ina ', COMP_CWORD='1')\n"
        "from ina.cli.main import run\n"
        "try:\n    run([])\n"
        "except SystemExit:\n    pass\n"
        "print(*(name for name in sys.modules if name == 'grpc' or name == 'torch'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    *nouns, loaded = done.stdout.splitlines()
    assert {"job", "controller", "doctor"} <= set(nouns)
    assert loaded == ""


def test_jobs_of_a_controller_are_offered(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = FakeController()
    with serving(controller) as address:
        assert tab(f"ina job evict --controller {address} tr") == ["train"]
        monkeypatch.setenv("INA_CONTROLLER", address)
        assert tab("ina job show ") == ["train"]
        assert tab("ina switch show --job t") == ["train"]
        assert tab("ina job show x") == []
        monkeypatch.setenv("INA_OPERATOR_TOKEN", "a token on a wire without TLS")
        assert tab("ina job show ") == ["train"]
        controller.refuse = (grpc.StatusCode.UNAUTHENTICATED, "operator token missing")
        assert tab("ina job show ") == []


def test_bash_completes_after_the_installation(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    command = [sys.executable, "-m", "ina"]
    where = {"HOME": str(tmp_path)}
    script = f"cd; {' '.join(command)} --install-completion; echo done"
    installed = subprocess.run(
        ["bash", "-c", script], env={**where, "PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "bash completion installed" in installed.stdout, installed
    source = next(tmp_path.rglob("ina.sh"))
    assert str(source) in (tmp_path / ".bashrc").read_text()
    shim = tmp_path / "bin" / "ina"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    shim.chmod(0o755)
    ask = (
        f"source {source}; COMP_WORDS=(ina cont); COMP_CWORD=1;"
        " $(complete -p ina | sed 's/.*-F \\([^ ]*\\) .*/\\1/') ina; echo \"${COMPREPLY[@]}\""
    )
    asked = subprocess.run(
        ["bash", "--norc", "-c", ask], env={**where, "PATH": f"{shim.parent}:/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert asked.stdout.strip() == "controller", asked
