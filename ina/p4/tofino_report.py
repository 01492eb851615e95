"""What a Tofino build uses of the chip, from the compiler's logs: by control, and in all.

Source: ``resources.json`` (schema 2.4) and ``phv.json`` (schema 3.0) of p4c's Tofino back end. A
block that two tables share counts for each control that uses it, and once in the total.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ina.p4.errors import P4InfoError

KINDS = ("stateful_alus", "sram_blocks", "tcam_blocks", "map_rams", "gateways", "logical_tables")
"""What is counted a stage, in the order of the report."""

_BLOCKS = {
    # kind: (section, list, sizes that multiply to a stage's budget)
    "stateful_alus": ("meter_alus", "meters", ("nAlus",)),
    "sram_blocks": ("rams", "srams", ("nRows", "nColumns")),
    "tcam_blocks": ("tcams", "tcams", ("nRows", "nColumns")),
    "map_rams": ("map_rams", "maprams", ("nRows", "nUnits")),
    "gateways": ("gateways", "gateways", ("nRows", "nUnits")),
    "logical_tables": ("logical_tables", "ids", ("size",)),
}

COMPILER_MADE = "(made by the compiler)"


@dataclass
class ControlUse:
    """What one control uses."""

    stages: set[int] = field(default_factory=set)
    blocks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))


@dataclass(frozen=True)
class Budget:
    """So many of so many."""

    used: int
    of: int

    @property
    def exceeded(self) -> bool:
        """Whether the chip has less."""
        return self.used > self.of


@dataclass(frozen=True)
class TofinoReport:
    """One build's use of one chip."""

    target: str
    controls: dict[str, ControlUse]
    totals: dict[str, Budget]
    """By resource: stages, the kinds of KINDS, ``phv_<kind>_<width>_bit``,
    ``parser_states_<gress>``."""

    def exceeded(self) -> list[str]:
        """Names of the resources of which the chip has less than the build uses."""
        return [name for name, budget in self.totals.items() if budget.exceeded]


def read_report(logs: Path, target: str) -> TofinoReport:
    """Reads the logs of one build.

    Raises:
        P4InfoError: a log is missing, or is not what this version of ina can read.
    """
    resources = _load(logs / "resources.json")
    phv = _load(logs / "phv.json")
    try:
        mau, parsers = resources["resources"]["mau"], resources["resources"]["parser"]["parsers"]
        controls, totals = _stages(mau)
        totals |= _containers(resources["resources"], phv)
        for parser in parsers:
            totals[f"parser_states_{parser['gress']}"] = Budget(
                len(parser["states"]), parser["nStates"]
            )
    except (KeyError, TypeError, IndexError) as error:
        raise P4InfoError(f"{logs}: not the logs of a Tofino build: {error!r}") from None
    return TofinoReport(target, controls, totals)


def control_of(name: str) -> str:
    """``PoolIngress.admission.jobs`` is of ``admission``; the top program's own, of that."""
    if name.startswith(("tbl_", "cond-")) or "." not in name:
        return COMPILER_MADE
    parts = name.partition("-")[0].split(".")
    return parts[1] if len(parts) > 2 else parts[0]


def _load(path: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(path.read_text())
    except OSError as error:
        raise P4InfoError(f"{path}: {error.strerror}: compile with p4c's -g") from None
    except ValueError as error:
        raise P4InfoError(f"{path}: {error}") from None
    if not isinstance(loaded, dict):
        raise P4InfoError(f"{path}: not a JSON object")
    return loaded


def _stages(mau: dict[str, Any]) -> tuple[dict[str, ControlUse], dict[str, Budget]]:
    controls: dict[str, ControlUse] = defaultdict(ControlUse)
    used = dict.fromkeys(KINDS, 0)
    a_stage = dict.fromkeys(KINDS, 0)
    stages = [stage for stage in mau["mau_stages"] if stage["logical_tables"]["ids"]]
    for stage in stages:
        number = stage["stage_number"]
        for kind, (section, items, sizes) in _BLOCKS.items():
            part = stage[section]
            budget = 1
            for size in sizes:
                budget *= part[size]
            a_stage[kind] = budget
            for item in part[items]:
                owners = set(map(control_of, _users(item)))
                used[kind] += 1
                for owner in owners:
                    controls[owner].stages.add(number)
                    controls[owner].blocks[kind] += 1
    last = max((stage["stage_number"] for stage in stages), default=-1)
    totals = {"stages": Budget(last + 1, mau["nStages"])}
    totals |= {kind: Budget(used[kind], a_stage[kind] * mau["nStages"]) for kind in KINDS}
    return dict(sorted(controls.items())), totals


def _users(item: dict[str, Any]) -> Iterator[str]:
    if "table_name" in item:
        yield item["table_name"]
    for usage in item.get("usages", ()):
        yield usage["used_by"]


def _containers(resources: dict[str, Any], phv: dict[str, Any]) -> dict[str, Budget]:
    """Containers that match-action stages can use, by kind (Tofino 2 has three) and width."""
    used: dict[tuple[str, int], set[int]] = defaultdict(set)
    for container in phv["containers"]:
        if container["slices"]:
            key = container["container_type"], container["bit_width"]
            used[key].add(container["phv_number"])
    return {
        f"phv_{kind}_{group['width']}_bit": Budget(len(used[kind, group["width"]]), group["units"])
        for kind in ("normal", "mocha", "dark")
        for group in resources["phv_containers"].get(kind, ())
    }
