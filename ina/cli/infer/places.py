"""``ina infer places``: the file that tells nodes, and who asks, where the nodes are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, emit
from ina.cli.infer.check import PlanArgument
from ina.errors import InvalidInputError
from ina.infer.places import around, write_places
from ina.infer.plan import read_plan

app = typer.Typer()


@dataclass(frozen=True, kw_only=True)
class PlacesOptions:
    """Of ``ina infer places``."""

    plan: PlanArgument
    nodes: Annotated[
        list[str], typer.Argument(metavar="NODE=HOST:PORT...", help="Of each node of the plan.")
    ]
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")]
    json: JsonOption = False


@app.command()
@command(PlacesOptions)
def places(asked: PlacesOptions) -> None:
    """Draw the nodes' secret and write it, with where they are, for the owner alone to read.

    Copy the file to each node's host, and to whoever may ask. It is of this plan with these
    weights: a changed plan needs another.
    """
    plan = read_plan(asked.plan)
    found: dict[str, str] = {}
    for given in asked.nodes:
        name, equals, place = given.partition("=")
        if not equals or name in found:
            raise InvalidInputError(f"{given!r}: want NODE=HOST:PORT, each node once")
        found[name] = place
    write_places(asked.output, plan, around(plan, found))
    document = {"plan": plan.spec.name, "digest": f"{plan.digest:08x}", "places": asked.output}
    emit(document, asked.json, f"{asked.output}: places of plan {plan.spec.name}")
