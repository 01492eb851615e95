"""Writes a plan as the files that read_plan() reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ina.infer.errors import PlanError
from ina.infer.plan import InferencePlan, read_plan


def write_plan(path: Path, plan: InferencePlan) -> InferencePlan:
    """The plan at `path`, .toml, and its arrays beside it, .npz; returns what is read from there.

    Raises PlanError.
    """
    if path.suffix != ".toml":
        raise PlanError(f"{path}: want a name that ends in .toml")
    try:
        path.write_text(plan_text(plan), "utf-8")
        np.savez(path.with_suffix(".npz"), **plan.arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise PlanError(f"{error.filename or path}: {error.strerror}") from None
    return read_plan(path)


def plan_text(plan: InferencePlan) -> str:
    """TOML, without what is as usual. Its arrays are in a file of the plan's own name."""
    top: dict[str, Any] = msgspec.structs.asdict(plan.spec)
    given, stages = top.pop("input"), top.pop("stage")
    top["arrays"] = ""
    lines = _lines(top)
    lines += ["", "[input]", *_lines(msgspec.structs.asdict(given))]
    for stage in stages:
        lines += ["", "[[stage]]", *_lines(msgspec.structs.asdict(stage))]
    return "\n".join(lines) + "\n"


def _lines(values: dict[str, Any]) -> list[str]:
    """Nothing of what is empty: no name, no list, None, False, or a number that is 0 by default."""
    kept = {key: value for key, value in values.items() if _is_said(key, value)}
    return [f"{key} = {_text(value)}" for key, value in kept.items()]


def _is_said(key: str, value: Any) -> bool:
    if key in ("low", "high"):
        return True
    return value not in ("", (), None, False, 0)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)
