"""``ina sim compare routing``: routing policies beside one another, on the same networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.bounds import MAX_PROCESSES
from ina.cli.common.output import JsonOption, check_matplotlib, emit
from ina.cli.sim.progress import routing_progress
from ina.cli.sim.routing_plots import draw_all
from ina.cli.sim.routing_view import outcomes_view
from ina.cli.sim.saved_rows import check_folder, save_routing
from ina.controller.routing.policies import POLICIES
from ina.sim.routing.compare import BASELINES, FAMILIES, SHIPPED, compare


def routing(
    scenarios: Annotated[
        str,
        typer.Option(help=f"Which, with commas: {', '.join([*FAMILIES, SHIPPED])}. Default: all."),
    ] = "",
    policies: Annotated[
        str,
        typer.Option(
            help=f"Which, with commas: {', '.join([*POLICIES, *BASELINES])}. Default: those that"
            " fit the scenario."
        ),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="A case or two of each scenario: half a minute.")
    ] = False,
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write an SVG for each scenario.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write rows as CSV, a file a scenario."),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=0, max=MAX_PROCESSES, help="0: one for each core.")
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Run routing policies on the papers' settings and on fat-trees, beside the bound.

    A flow-level model says what a step takes; of small networks the virtual network says it, too,
    with the host's core, the P4 program and the controller that ship. All of it takes some minutes.
    """
    if save is not None:
        check_folder(save)
    if plots is not None:
        check_matplotlib("--plots")
    with routing_progress() as told:
        found = compare(
            _words(scenarios), _words(policies), quick=quick, processes=processes, told=told
        )
    if plots is not None:
        draw_all(found, plots)
    if save is not None:
        save_routing(save, found)
    emit(found, json, outcomes_view(found))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
