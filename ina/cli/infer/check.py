"""``ina infer check``: what a plan makes, and that it can."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, emit, table
from ina.infer.placing import Placed, place, ways
from ina.infer.plan import InferencePlan, read_plan
from ina.infer.shapes import LIMIT

app = typer.Typer()

PlanArgument = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan, TOML.")]


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Of ``ina infer check``."""

    plan: PlanArgument
    json: JsonOption = False


@app.command()
@command(CheckOptions)
def check(asked: CheckOptions) -> None:
    """Say what each stage makes, where, and how near its sums come to the end of int32.

    A plan whose sums might leave int32, for any input in its range, is refused: exit code 2.
    """
    plan = read_plan(asked.plan)
    placed = place(plan)
    rows = [_row(plan, placed, k) for k in range(len(placed))]
    document = {
        "plan": plan.spec.name,
        "digest": f"{plan.digest:08x}",
        "nodes": list(plan.spec.nodes),
        "entry": plan.spec.nodes[plan.entry],
        "block": plan.spec.block,
        "stages": rows,
    }
    names = ["stage", "kernel", "values", "low", "high", "sums reach", "at", "made", "packets"]
    view = table(names, ([row[name.replace(" ", "_")] for name in names] for row in rows))
    note = (
        f"plan {plan.spec.name} {plan.digest:08x}: values of a sample; sums reach: the largest that"
        f" any order of addition can make, of {LIMIT - 1}; packets: between nodes, of a block of"
        f" {plan.spec.block}"
    )
    emit(document, asked.json, Group(view, note))


def _row(plan: InferencePlan, placed: list[Placed], k: int) -> dict[str, object]:
    one = placed[k]
    names = plan.spec.nodes
    made = "whole" if one.layout.is_whole else "parts"
    return {
        "stage": one.name,
        "kernel": one.spec.kernel if one.spec else "input",
        "values": f"{one.shape.rows} x {one.shape.width}",
        "low": int(one.shape.low.min()),
        "high": int(one.shape.high.max()),
        "sums_reach": one.shape.largest or "-",
        "at": " ".join(names[node] for node in one.needs),
        "made": "summed in the switch" if one.is_summed else made,
        "packets": _packets(plan, placed, k),
    }


def _packets(plan: InferencePlan, placed: list[Placed], k: int) -> int:
    """From other nodes, for a block."""
    if k == 0:
        return 0
    rows, most = plan.spec.block * placed[k].before.rows, plan.spec.packet_values
    return sum(
        -(-rows * (high - low) // most)
        for source, to, (low, high) in ways(placed, k)
        if source != to
    )
