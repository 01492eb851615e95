"""README's Status names what exists, all of it, and nothing else."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
import pytest

from ina.congestion import ALGORITHMS
from ina.controller.config import JobsConfig
from ina.controller.routing.policies import POLICIES
from ina.controller.windows.caps import CAPS
from ina.emulate.topology import SwitchKind
from ina.host.arrays import VALUE_TYPES
from ina.p4.names import MODES
from ina.p4.tofino import TARGETS
from ina.protocol.collective import REDUCTIONS
from ina.protocol.spec import (
    MAX_LEVELS,
    MAX_WORKERS,
    MAX_WORLD_SIZE,
    VALUES_PER_PACKET_BUILDS,
    VERSION,
)
from ina.protocol.verify import VERIFY_MODES
from tests.docs.runner import ROOT

_MEMORY = next(it.type for it in msgspec.structs.fields(JobsConfig) if it.name == "policy")
NAMES: dict[str, list[tuple[str, ...]]] = {
    "P4 programs": [MODES],
    "verified sums": [VERIFY_MODES],
    "switch memory among jobs": [tuple(name for name in get_args(_MEMORY) if name)],
    "routing": [tuple(POLICIES)],
    "congestion control": [tuple(ALGORITHMS), tuple(CAPS)],
}
"""By how a row begins: of which sets it has each name, and no other, in backticks."""
WORDS = {
    "wire format": [f"version {VERSION};"],
    "P4 programs": [f"{', '.join(map(str, VALUES_PER_PACKET_BUILDS[:-1]))} and 1024 values"],
    "Tofino": ["1 and 2", *{f"{it.values} values" for it in TARGETS.values()}],
    "host library": [
        *map(str, VALUE_TYPES), *(op.upper() for op in REDUCTIONS),
        f"1 to {MAX_WORLD_SIZE:,} workers, {MAX_WORKERS} at one switch",
    ],
    "controller": ["SQLite", "PostgreSQL"],
    "emulated networks": [
        {"soft": "soft switch", "bmv2": "BMv2", "xdp": "the kernel"}[it]
        for it in get_args(SwitchKind)
    ],
    "racks and hosts": [f"{MAX_WORLD_SIZE:,} workers", {4: "four levels"}[MAX_LEVELS]],
}  # fmt: skip
"""What else a row says of the code."""
EXISTS = ["ATP", "routing", "resize", "verified", "conformance", "emulate", "fuzz"]
"""What no row may call "not yet"."""


def rows(page: str) -> dict[str, str]:
    """Of the table: by the text of its first cell, without links, the whole row."""
    table = page.partition("\n## Status\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][2:]
    return {re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line.split(" | ")[0][2:]): line for line in lines}


def faults(page: str) -> list[str]:
    """What the table says that is not so, or leaves out."""
    found, table = [], rows(page)

    def row_of(begin: str) -> str:
        return next((line for part, line in table.items() if part.startswith(begin)), "")

    for begin, groups in NAMES.items():
        listed = re.findall(r"`([a-z0-9-]+)`", row_of(begin))
        known = [name for group in groups for name in group]
        found += [f"{begin}: no word of {name}" for name in known if name not in listed]
        found += [f"{begin}: there is no {name}" for name in listed if name not in known]
    for begin, words in WORDS.items():
        found += [f"{begin}: no word of {it}" for it in words if it not in row_of(begin)]
    for part, line in table.items():
        if "not yet" in line:
            found += [f"{part}: {it} is there" for it in EXISTS if it.lower() in line.lower()]
    return found


def test_the_status_is_what_exists() -> None:
    page = (ROOT / "README.md").read_text()
    assert len(rows(page)) > 15
    assert faults(page) == []


@pytest.mark.parametrize(
    ("was", "now", "fault"),
    [
        ("`swift`", "`bbr`", ["congestion control: no word of swift",
                              "congestion control: there is no bbr"]),
        ("`jct`, ", "", ["switch memory among jobs: no word of jct"]),
        ("version 5", "version 4", ["wire format: no word of version 5;"]),
        ("| partial sums", "| ATP, partial sums",
         ["ATP, partial sums: ATP is there"]),
        ("1 to 1,024 workers, ", "",
         ["host library: no word of 1 to 1,024 workers, 32 at one switch"]),
    ],
)  # fmt: skip
def test_a_row_that_is_out_of_date_is_found(was: str, now: str, fault: list[str]) -> None:
    page = (ROOT / "README.md").read_text()
    assert was in page
    assert sorted(faults(page.replace(was, now))) == sorted(fault)
