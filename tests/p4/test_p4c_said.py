"""What p4c says of a program reaches who compiles it: whole, with the lines that it shows."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ina.cli.main import run
from tests.p4 import fake_p4c

# As p4c 1.2.5 writes them; of its parser's the line has no colon behind "error".
SYNTAX = """\
counter.p4(18):syntax error, unexpected APPLY, expecting ;
    apply
    ^^^^^
[--Werror=overlimit] error: 1 errors encountered, aborting compilation"""
TYPE = """\
two.p4(20): [--Wwarn=uninitialized-use] warning: zz may be uninitialized
        s.egress_spec = zz;
                        ^^
two.p4(21): [--Werror=type-error] error: Field nope is not a member of structure struct s
        s.nope = 2;
          ^^^^"""
INCLUDE = """\
inc.p4:1:10: fatal error: none.p4: No such file or directory
    1 | #include "none.p4"
      |          ^~~~~~~~~
compilation terminated.
[--Werror=I/O error] error: Preprocessor returned exit code 256; aborting compilation
[--Werror=overlimit] error: 1 errors encountered, aborting compilation"""
WARNING = (
    "two.p4(20): [--Wwarn=uninitialized-use] warning: zz may be uninitialized\n    zz;\n    ^^"
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "counter.p4"
    path.write_text("// p4c is a fake here\n")
    return path


@pytest.mark.parametrize(
    ("said", "first"),
    [
        (SYNTAX, "counter.p4(18):syntax error, unexpected APPLY, expecting ;"),
        (
            f'a.p4:2:2: warning: #warning "old" [-Wcpp]\n{SYNTAX}',
            "counter.p4(18):syntax error, unexpected APPLY, expecting ;",
        ),
        (TYPE, TYPE.splitlines()[3]),
        (INCLUDE, INCLUDE.splitlines()[0]),
        ("Segmentation fault", "Segmentation fault"),
    ],
)
def test_errors_are_shown_whole_below_one_line(
    said: str, first: str, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    fake_p4c.install(source.parent, monkeypatch, said, code=1)
    assert run(["p4", "compile", str(source), "--out", str(source.parent)]) == 2
    assert capsys.readouterr().err == f"error: {first}\n{said}\n"


def test_a_p4c_that_dies_without_a_word_is_named(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    fake_p4c.install(source.parent, monkeypatch, code=9)
    assert run(["p4", "compile", str(source), "--out", str(source.parent)]) == 2
    assert capsys.readouterr().err == f"error: {source}: p4c exited with 9\n"


def test_a_p4c_that_writes_elsewhere_is_asked_about(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """As one in a container that does not have the folder."""
    monkeypatch.setenv("INA_P4C", "/bin/true")
    assert run(["p4", "compile", str(source), "--out", str(source.parent)]) == 2
    assert f"error: {source}: /bin/true wrote nothing into /" in capsys.readouterr().err


def test_warnings_of_a_program_that_compiles_are_shown(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    fake_p4c.install(source.parent, monkeypatch, WARNING)
    assert run(["p4", "compile", str(source), "--out", str(source.parent), "--json"]) == 0
    assert capsys.readouterr().err == WARNING + "\n"


@pytest.mark.p4c
def test_the_real_one_says_its_syntax_error(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "broken.p4"
    source.write_text("#include <core.p4>\nheader a_h {\n  bit<8> x\n}\n")
    assert run(["p4", "compile", str(source), "--out", str(tmp_path)]) == 2
    first, *detail = capsys.readouterr().err.splitlines()
    assert first.startswith("error: broken.p4(4):syntax error, unexpected }")
    assert detail[:3] == [first.removeprefix("error: "), "}", "^"]


def test_a_terminal_sees_that_it_is_at_work(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_p4c.install(source.parent, monkeypatch)
    ours, theirs = pty.openpty()
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "ina", "p4", "compile", source.name], cwd=source.parent,
            stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=True,
        )  # fmt: skip
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "p4c compiles counter.p4" in shown
    assert "0:00:0" in shown  # the time gone by
    assert b"compiles" not in ran.stdout
