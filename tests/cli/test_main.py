"""The command line itself: exit codes, one-line errors, JSON, and tables in pipes."""

from __future__ import annotations

import enum
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import ina
from ina.cli import doctor, main
from ina.cli.common.output import emit, table
from ina.errors import InvalidInputError, UnavailableError
from tests.cli.offered import leaves, offered


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"ina {ina.__version__}\n"


def test_without_arguments_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([]) == 0
    assert "doctor" in capsys.readouterr().out


@pytest.mark.parametrize(
    "args", [["nonsense"], ["--nonsense"], ["doctor", "--nonsense"], ["doctor", "extra"]]
)
def test_a_wrong_command_line_is_one_line(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "code", "shown"),
    [
        (InvalidInputError("x.toml: unknown key\n 'a'"), 2, "error: x.toml: unknown key 'a'\n"),
        (UnavailableError("port 9559 is in use"), 2, "error: port 9559 is in use\n"),
        (PermissionError(13, "Permission denied", "/x"), 2, "error: /x: Permission denied\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)  # fmt: skip
def test_errors_become_exit_codes(
    raised: BaseException,
    code: int,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(doctor, "examine", fail)
    assert main.run(["doctor"]) == code
    assert capfd.readouterr().err == shown


@pytest.mark.parametrize(
    "defect",
    [ZeroDivisionError(), OSError(9, "Bad file descriptor"), BrokenPipeError(32, "of a socket")],
)
def test_a_defect_is_not_dressed_up_as_wrong_input(
    defect: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise defect

    for name in ("stdout", "stderr"):  # typer replaces them where a pipe breaks
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(doctor, "examine", fail)
    with pytest.raises(type(defect)):
        main.run(["doctor"])


@pytest.mark.parametrize("name", offered())
def test_a_noun_loads_and_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([name, "--help"]) == 0
    assert f"Usage: ina {name}" in capsys.readouterr().out


# What these print is another program's: the command after `--`, p4runtime-shell.
OF_OTHERS = ["emulate exec", "switch shell"]


def test_every_command_offers_json() -> None:
    without = [" ".join(path) for path, command in leaves() if "--json" not in options(command)]
    assert sorted(without) == OF_OTHERS


def options(command: object) -> list[str]:
    return [option for parameter in command.params for option in parameter.opts]  # type: ignore[attr-defined]


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Row:
    name: str
    path: Path
    colour: Colour
    values: np.ndarray[tuple[int], np.dtype[np.int32]]


def test_json_of_dataclasses_paths_enums_and_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    emit([Row("a", Path("/x"), Colour.RED, np.array([1, 2], np.int32))], json=True)
    assert json.loads(capsys.readouterr().out) == [
        {"name": "a", "path": "/x", "colour": "red", "values": [1, 2]}
    ]


def test_a_table_in_a_pipe_is_not_folded_and_keeps_brackets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    emit(None, json=False, human=table(["slot[i]", "n"], [["x" * 120 + "[bold]", 1], ["y", 22]]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["slot[i]", "n"]
    assert lines[2].split() == ["x" * 120 + "[bold]", "1"]


def test_mappings_and_lists_of_them_are_shown_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"rate": 0.1234567891, "jobs": ["a"]}, json=False)
    emit([{"a": 1}, {"a": 2, "b": "x"}], json=False)
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown[:3] == [["rate", "0.123457"], ["jobs", '["a"]'], ["a", "b"]]
    assert shown[-1] == ["2", "x"]


def test_doctor_names_a_missing_compiler_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["doctor", "--json"]) == 0
    monkeypatch.setenv("INA_CC", "no-such-compiler")
    capsys.readouterr()
    assert main.run(["doctor", "--json"]) == 1
    machine = json.loads(capsys.readouterr().out)["machine"]
    findings = {row["name"]: row["found"] for row in machine}
    assert findings["C compiler"] == ""
    assert findings["native extension"].endswith(".so")
