"""Wrong values to every option and argument of every command: one line, exit code 2, no traceback.

The tree of commands is walked, so an option that is new is tried, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ina import log
from ina.cli import main
from ina.cli.common.bounds import MAX_SECONDS
from ina.cli.common.output import error_line
from ina.errors import InaError
from tests.cli.offered import leaves

COMMANDS: dict[str, Any] = {" ".join(words): it for words, it in sorted(leaves(), key=str)}
HUGE = "9" * 30
NEGATIVE_IS_FINE = {("job plan", "--priority")}
ZERO_IS_WRONG = [
    *("bench allreduce --seconds", "bench controller --admissions", "bench pipeline --repeats"),
    *("bench switch --seconds", "demo --epochs", "demo --timeout-s", "emulate run --timeout-s"),
    *("fabric make --hosts", "sim compare memory --seeds", "sim fuzz --seeds"),
    *("test diff --packets", "pcap decode --udp-port"),
]

READ = {
    "bench": ["--baseline"],
    "bench advise": ["--costs", "--gradients"],
    "controller check": ["file"],
    "controller run": ["config"],
    "emulate check": ["topology"],
    "emulate run": ["topology"],
    "emulate up": ["topology"],
    "embed plan": ["trace"],
    "fabric check": ["file", "--lldp"],
    "infer check": ["plan"],
    "infer places": ["plan"],
    "infer quantise": ["model", "--samples"],
    "infer send": ["plan", "--places", "--samples"],
    "infer serve": ["plan"],
    "job plan": ["file"],
    "p4 compile": ["source"],
    "p4 graph": ["--program"],
    "p4 info": ["file"],
    "pcap decode": ["files"],
    "pcap follow": ["files"],
    "sim replay": ["--file"],
    "sim run": ["file"],
    "test replay": ["file"],
}
"""By command, or by the first word of several: what it reads a file by."""
NEEDED = {"job": "1", "slot": "1", "seed": "1"}
"""What is wanted besides, by name; else a word."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files that nobody means, by what is wrong with them."""
    folder = tmp_path_factory.mktemp("wrong")
    contents = {
        "empty": b"",
        "binary": bytes(range(256)) * 64,
        "latin-1": 'name = "\u00e9"'.encode("latin-1"),
        "no TOML": b"a = [[[",
        "deep TOML": b"a = " + b"[" * 3000 + b"]" * 3000,
        "deep JSON": b"[" * 100_000,
        "deep-list.json": b"[" * 100_000 + b"]" * 100_000,
        "deep-object.json": b'{"a": ' * 100_000,
        "a list": b"[1, 2]",
        "huge number": b"a = " + b"9" * 5000,
        "NUL": b"\0" * 4096,
    }
    found = {"missing": folder / "missing", "a folder": folder, "below a file": folder / "empty/x"}
    for name, content in contents.items():
        found[name] = folder / name.replace(" ", "-")
        found[name].write_bytes(content)
    found["too long a name"] = folder / ("x" * 5000)
    found["a name with NUL"] = folder / "a\0b"
    if os.geteuid() != 0:
        found["unreadable"] = folder / "unreadable"
        found["unreadable"].touch(0)
    return found


def numbers() -> Iterator[tuple[str, Any, bool]]:
    """Of each command, each parameter that is a number, and whether it may have a fraction."""
    for words, command in COMMANDS.items():
        for parameter in command.params:
            if (kind := kind_of(parameter)) in ("int", "float") and parameter.name != "verbose":
                yield words, parameter, kind == "float"


def kind_of(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return "flag"
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None:  # older ones of typer have click's types
        name = str(parameter.type.name).split()[0]
        return "int" if name == "integer" else name
    text = str(descriptor.annotation)
    return next((it for it in ("int", "float", "Path") if it in text), "other")


def with_value(words: str, parameter: Any, value: str) -> list[str]:
    """The arguments of a command by which this parameter has that value."""
    given = []
    for other in COMMANDS[words].params:
        if other is not parameter and other.name != parameter.name and other.required:
            text = NEEDED.get(other.name, "x")
            given += [text] if other.param_type_name == "argument" else [other.opts[0], text]
    if parameter.param_type_name == "argument":
        return [*given, "--", value]
    return [*given, f"{parameter.opts[0]}={value}"]


def refused(words: str, given: list[str]) -> str:
    """Runs a command without the root, which takes most of the time; returns the complaint.

    Raises what ``ina`` does not turn into a line.
    """
    try:
        COMMANDS[words].main(args=given, prog_name=f"ina {words}", standalone_mode=False)
    except InaError as error:
        return error_line(error)
    except main._UsageError as error:
        return error_line(error.format_message())  # type: ignore[attr-defined]
    except OSError as error:
        if error.filename is None:
            raise
        return error_line(f"{error.filename}: {error.strerror}")
    finally:
        log.remove()
    raise AssertionError(f"{words} {given} was taken")


NUMBERS = list(numbers())


def test_there_are_many() -> None:
    assert len(NUMBERS) > 120


@pytest.mark.parametrize(
    ("words", "parameter", "is_float"),
    NUMBERS,
    ids=[f"{words} {it.opts[0]}" for words, it, _ in NUMBERS],
)
def test_a_number_that_cannot_be(words: str, parameter: Any, is_float: bool) -> None:
    wrong = [HUGE, "-" + HUGE, "x", "", "nan"]
    wrong += ["inf", "1e300", f"{10 * MAX_SECONDS:.0f}"] if is_float else ["1.5"]
    if (words, parameter.opts[0]) not in NEGATIVE_IS_FINE:
        wrong.append("-1")
    for value in wrong:
        line = refused(words, with_value(words, parameter, value))
        assert parameter.opts[0].lstrip("-") in line.lower(), (value, line)


@pytest.mark.parametrize("line", ZERO_IS_WRONG)
def test_none_of_what_must_be_some(line: str) -> None:
    words, _, option = line.rpartition(" ")
    parameter = next(it for it in COMMANDS[words].params if option in it.opts)
    assert option in refused(words, with_value(words, parameter, "0"))


def test_the_root_prints_the_line_and_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["sim", "replay", HUGE]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)


def reads() -> Iterator[tuple[str, Any]]:
    for words, command in COMMANDS.items():
        named = READ.get(words, []) + READ.get(words.split()[0], [])
        for parameter in command.params:
            if parameter.opts[0] in named or parameter.name in named:
                yield words, parameter


READS = list(reads())


@pytest.mark.parametrize(
    ("words", "parameter"), READS, ids=[f"{words} {it.opts[0]}" for words, it in READS]
)
def test_a_file_that_is_none(
    words: str,
    parameter: Any,
    files: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for what, file in files.items():
        if what == "empty" and words.split()[0] in ("controller", "sim"):
            continue  # all keys have defaults
        refused(words, with_value(words, parameter, str(file)))


def test_every_path_that_is_read_is_tried() -> None:
    """One that is written is checked before anything is done, or when it is done."""
    written = {
        *("--out", "--output", "--plot", "--plots", "--page", "--pcap", "--save", "--state"),
        *("--report", "directory", "out"),
    }
    paths = {
        (words, it.opts[0])
        for words, command in COMMANDS.items()
        for it in command.params
        if kind_of(it) == "Path" and it.opts[0] not in written
    }
    tried = {(words, it.opts[0]) for words, it in READS}
    assert paths - tried == {
        *(
            ("fabric plot", "file"),
            ("embed trace", "file"),
            ("embed serve", "path"),
            ("infer serve", "--places"),  # written, but for one node
            ("infer serve", "--trace"),
            ("bench sim", "--scenarios"),
        ),
    }
