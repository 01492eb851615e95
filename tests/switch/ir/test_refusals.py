"""What the soft switch lacks is refused when the program is loaded, by construct and P4 line."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir import load_program

PROGRAMS = Path(__file__).parent.parent / "programs"
REFUSED = PROGRAMS / "refused"


def line_of(name: str, text: str) -> int:
    lines = (REFUSED / f"{name}.p4").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("name", "construct", "text"),
    [
        ("meter", "meters", "meter(4"),
        ("clone", "clone_ingress_pkt_to_egress", "clone("),
        ("resubmit", "resubmit", "resubmit_"),
        ("digest", "digest", "digest<"),
        ("random", "modify_field_rng_uniform", "random("),
        ("selector", "action profiles", "action_profile(16)"),
        ("varbit", "varbit", "hdr.h.x = 1"),
        ("wide", "136 bits", "+ 1"),
    ],
)
def test_unsupported_constructs_are_named(name: str, construct: str, text: str) -> None:
    with pytest.raises(UnsupportedProgramError) as caught:
        load_program(REFUSED / f"{name}.json")
    message = str(caught.value)
    assert construct in message
    assert message.endswith(f"{name}.p4:{line_of(name, text)}")
    assert "\n" not in message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        '{"pipelines": [], "header_types": []}',
        '{"pipelines": 3}',
    ],
    ids=str.__len__,
)
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(InvalidProgramError):
        load_program(text.encode())


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProgramError, match="No such file"):
        load_program(tmp_path / "none.json")


def test_every_key_of_the_json_may_be_missing() -> None:
    """A damaged program is a typed error or still a program, never another exception."""
    whole = json.loads((PROGRAMS / "tables.json").read_text())
    for key in list(whole):
        damaged = {name: value for name, value in whole.items() if name != key}
        with contextlib.suppress(InvalidProgramError, UnsupportedProgramError):
            load_program(json.dumps(damaged))


def test_a_number_that_is_none_is_refused() -> None:
    program = json.loads((PROGRAMS / "tables.json").read_text())
    program["errors"] = [["PacketTooShort", "x"]]
    with pytest.raises(InvalidProgramError):
        load_program(json.dumps(program))


def test_unknown_names_are_refused() -> None:
    text = (PROGRAMS / "registers.json").read_text()
    for name in ("MyIngress.rounds", "MyIngress.ops", "values"):
        damaged = text.replace(f'"{name}"', '"gone"', 1)
        with pytest.raises(InvalidProgramError):
            load_program(damaged)
