"""docs/p4_guide.md has what a controller writes and reads, as the P4Info of a build says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ina.p4 import compiled
from ina.p4.info import ProgramInfo, read_p4info
from ina.protocol.spec import DropReason

PAGE = Path(__file__).parents[2] / "docs" / "p4_guide.md"
DEFAULT_ONLY = {
    ("jobs", "unknown_job"),
    ("members", "unknown_member"),
    ("children", "drop"),
    ("own_addresses", "NoAction"),
    ("receivers", "unaddressed"),
}
"""What no entry may have, so that a controller never writes it."""


@pytest.fixture(scope="module")
def info() -> ProgramInfo:
    return read_p4info(compiled(64).p4info)


def rows(heading: str) -> list[list[str]]:
    """The cells of the last table that begins so: one of mode shared alone comes before."""
    _, found_at, behind = PAGE.read_text().rpartition(f"\n{heading}\n")
    assert found_at, f"{PAGE.name} has no table {heading}"
    lines = behind.splitlines()
    found = []
    for line in lines[1:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def test_tables_keys_and_actions(info: ProgramInfo) -> None:
    told = {
        name.strip("`"): (key, actions)
        for name, key, actions in rows("| table | key | action and parameters |")
    }
    assert told.keys() == {table.name for table in info.tables}
    parameters = {it.name: [one.name for one in it.parameters] for it in info.actions}
    for table in info.tables:
        key, actions = told[table.name]
        named = re.sub(r"\([^)]*\)", "", key).split(", ")
        if table.keys:
            assert [it.strip() for it in named] == [it.name for it in table.keys], table.name
        for action in table.actions:
            short = action.rpartition(".")[2]
            if (table.name.rpartition(".")[2], short) in DEFAULT_ONLY:
                continue
            assert f"`{short}" in actions, f"{table.name}: {short}"
            missing = [it for it in parameters[action] if not re.search(rf"\b{it}\b", actions)]
            assert not missing, f"{table.name}: {short}: {missing}"


def test_counters(info: ProgramInfo) -> None:
    told = [row[0].strip("`") for row in rows("| counter | counts |")]
    assert sorted(told) == sorted(counter.name for counter in info.counters)


def test_drop_reasons() -> None:
    told = [(int(row[0]), row[1].upper()) for row in rows("| index | reason | when |")]
    assert told == [(reason.value, reason.name) for reason in DropReason]
