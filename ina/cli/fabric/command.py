"""``ina fabric``: how a controller's switches are joined, and which job is summed where."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.output import emit
from ina.cli.common.rpc_client import ControllerOption, JsonOption, ask, plain
from ina.cli.fabric.view import view
from ina.controller.config import DEFAULT_LISTEN
from ina.errors import InvalidInputError, MissingToolError
from ina.rpc import controller_pb2 as pb2

SUFFIXES = (".png", ".svg", ".pdf")

app = typer.Typer(
    help="Show how a controller's switches are joined, and which job is summed where.",
    no_args_is_help=True,
)


@app.callback()
def _fabric() -> None:
    """Show how a controller's switches are joined, and which job is summed where."""


@app.command()
def show(controller: ControllerOption = DEFAULT_LISTEN, json: JsonOption = False) -> None:
    """Show switches, links and hosts, and the tree of each job with what its switches count."""
    shown = _ask(controller)
    emit(plain(shown), json, view(shown))


@app.command()
def plot(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="png, svg or pdf, by its name.")],
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Draw the fabric, its jobs' trees in colour, and how many sums each switch has completed."""
    _check(file)
    shown = _ask(controller)
    from ina.cli.fabric.plot import draw

    draw(shown, file)
    emit(
        {"file": file, "switches": len(shown.switches), "jobs": len(shown.jobs)},
        json,
        f"{file}: {len(shown.switches)} switches, {len(shown.hosts)} hosts, {len(shown.jobs)} jobs",
    )


def _ask(controller: str) -> pb2.ShowFabricReply:
    return ask(controller, lambda operator: operator.ShowFabric, pb2.ShowFabricRequest())


def _check(file: Path) -> None:
    """Before anybody is asked. Raises InvalidInputError, MissingToolError."""
    if file.suffix not in SUFFIXES:
        raise InvalidInputError(f"{file}: want a name that ends in {', '.join(SUFFIXES)}")
    if not file.parent.is_dir():
        raise InvalidInputError(f"{file}: there is no folder {file.parent}")
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingToolError("a picture needs matplotlib: pip install matplotlib")
