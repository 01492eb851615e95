"""The tables of packages in docs/architecture.md: what is there, in layers that imports go down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.packages import PAGE, tables
from tests.layers import BELOW, PACKAGE, ROOMS, modules, package_of, room_of
from tests.lines import ROOT

NOT_TOLD = {"", "__main__"}
"""The package ina itself, and ``python -m ina``."""


def faults(text: str, packages: set[str]) -> list[str]:
    """How the page differs from the tree, whose ``packages`` are given by their dotted names."""
    told = tables(text)
    wanted: dict[str, dict[str, set[str]]] = {
        "ina": {f"ina.{name}": {f"ina.{one}" for one in may} for name, may in BELOW.items()},
        **{f"ina.{package}": rooms for package, rooms in ROOMS.items()},
    }
    found = [f"no table of {name}" for name in wanted.keys() - told.keys()]
    for of, known in wanted.items():
        layers = told.get(of, {})
        names = {name for name in known if name.removeprefix("ina.") not in NOT_TOLD}
        found += [f"{of}: {name} is not in the table" for name in names - layers.keys()]
        found += [f"{of}: {name} is in the table alone" for name in layers.keys() - names]
        found += [
            f"{name} may import {below}, which is not below it"
            for name in names & layers.keys()
            for below in known[name] & layers.keys()
            if layers[below] >= layers[name]
        ]
    rooms = {f"ina.{package}.{room}" for package, names in ROOMS.items() for room in names}
    inner = {
        name for name in packages if name.count(".") > 1 and name not in rooms and not is_noun(name)
    }
    found += [f"{name} is in no table" for name in inner - told.get("", {}).keys()]
    found += [f"{name} is no package" for name in told.get("", {}).keys() - inner]
    return sorted(found)


def is_noun(name: str) -> bool:
    return name.startswith("ina.cli.") and name.count(".") == 2


def tree() -> set[str]:
    return {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in modules()
        if path.name == "__init__.py"
    }


def test_they_are_of_the_tree() -> None:
    assert faults(PAGE.read_text(), tree()) == []
    assert {package_of(path) for path in modules()} == set(BELOW)
    for package, rooms in ROOMS.items():
        files = [path for path in modules() if package_of(path) == package]
        assert {room_of(path) for path in files} == set(rooms)


@pytest.mark.parametrize(
    ("there", "instead", "fault"),
    [
        ("| 5 | `ina.host` |", "| 5 | `ina.hosts` |", "ina: ina.host is not in the table"),
        ("| 5 | `ina.host` |", "| 5 | `ina.host`, `ina.x` |", "ina: ina.x is in the table alone"),
        (
            "| 5 | `ina.controller` |",
            "| 3 | `ina.controller` |",
            "ina.controller may import ina.switch, which is not below it",
        ),
        ("| 7 | `watch` |", "| 7 | `look` |", "ina.controller: watch is not in the table"),
        (
            "| 2 | `passes` |",
            "| 4 | `passes` |",
            "emit_c may import passes, which is not below it",
        ),
        ("| `ina.testing.cases` |", "| `ina.testing.case` |", "ina.testing.cases is in no table"),
        ("room of `ina.cli`", "room of ina.cli", "no table of ina.cli"),
    ],
)
def test_a_difference_is_found(there: str, instead: str, fault: str) -> None:
    text = PAGE.read_text()
    assert there in text
    assert fault in faults(text.replace(there, instead), tree())


def test_a_new_package_must_be_told() -> None:
    new = {"ina.host.rooms"}
    assert faults(PAGE.read_text(), tree() | new) == ["ina.host.rooms is in no table"]
    assert not (Path(PACKAGE) / "host" / "rooms").exists()
