"""``ina sim compare windows``: window algorithms beside one another, on the same networks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.bounds import MAX_PROCESSES, MAX_SEED
from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, check_matplotlib, emit
from ina.cli.sim.progress import windows_progress
from ina.cli.sim.saved_rows import check_folder, save_windows
from ina.cli.sim.windows_plots import draw_all
from ina.cli.sim.windows_view import outcomes_view
from ina.congestion import ALGORITHMS, Congestion
from ina.errors import InvalidInputError
from ina.sim.windows.families import FAMILIES
from ina.sim.windows.runner import chosen_algorithms, chosen_families, compare


@dataclass(frozen=True, kw_only=True)
class WindowsOptions:
    """Of ``ina sim compare windows``."""

    scenarios: Annotated[
        str, typer.Option(help=f"Which, with commas: {', '.join(FAMILIES)}. Default: all.")
    ] = ""
    algorithms: Annotated[
        str, typer.Option(help=f"Which, with commas: {', '.join(ALGORITHMS)}. Default: all.")
    ] = ""
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Of the one algorithm; may be repeated."),
    ] = None
    cell: Annotated[str, typer.Option(help="Only cells whose names hold this.")] = ""
    seeds: Annotated[
        int, typer.Option(min=0, help="Runs of each cell; 0: 3, or 1 with --quick.")
    ] = 0
    first: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The first one's seed.")] = 1
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A cell or two of each scenario: some ten seconds an algorithm."
        ),
    ] = False
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit code 1 if the default algorithm breaks a promise."),
    ] = False
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write an SVG for each that is drawn.")
    ] = None
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write rows as CSV, a file a scenario."),
    ] = None
    processes: Annotated[
        int, typer.Option(min=0, max=MAX_PROCESSES, help="0: one for each core; 1: this one.")
    ] = 0
    json: JsonOption = False


@command(WindowsOptions)
def windows(asked: WindowsOptions) -> None:
    """Run window algorithms on the same networks, and hold them to what is promised of them.

    The host's core, the P4 program and the controller are those that ship, in virtual time. All
    scenarios with all algorithms take an hour or so of two cores.
    """
    seeds = asked.seeds
    seeds = seeds or (1 if asked.quick else 3)
    families = chosen_families(_words(asked.scenarios))
    names = chosen_algorithms(_words(asked.algorithms))
    tables = {name: {"algorithm": name, **_options(names, asked.option)} for name in names}
    if asked.save is not None:
        check_folder(asked.save)
    if asked.plots is not None:
        check_matplotlib("--plots")
    with windows_progress() as told:
        found = compare(
            families,
            tables,
            range(asked.first, asked.first + seeds),
            quick=asked.quick,
            cell=asked.cell,
            processes=asked.processes,
            told=told,
        )
    if asked.plots is not None:
        draw_all(families, found.runs, asked.plots)
    if asked.save is not None:
        save_windows(asked.save, found.outcomes, families)
    emit(found.outcomes, asked.json, outcomes_view(found.outcomes, families))
    default = [it for it in found.outcomes if it.algorithm == Congestion.algorithm]
    if asked.strict and any(it.is_broken for it in default):
        raise typer.Exit(1)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _options(names: list[str], options: list[str] | None) -> dict[str, object]:
    """Raises :class:`InvalidInputError`."""
    found: dict[str, object] = {}
    for text in options or []:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidInputError(f"--option {text}: want NAME=NUMBER") from None
    if found and len(names) > 1:
        raise InvalidInputError("--option: want one algorithm, with --algorithms")
    return found
