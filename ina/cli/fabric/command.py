"""``ina fabric``: how a controller's switches are joined, and which job is summed where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.given import is_given
from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, check_output, check_picture, emit
from ina.cli.common.rpc_client import ControllerOption, ask, job_names, plain
from ina.cli.fabric.make import tables
from ina.cli.fabric.view import view
from ina.controller.config import DEFAULT_LISTEN, load_config
from ina.controller.config.topology import fabric_of
from ina.errors import InvalidInputError
from ina.fabric.lldp import differences, read_neighbours
from ina.fabric.shapes import Rates, fat_tree, leaf_spine
from ina.rpc import controller_pb2 as pb2


class Shape(str, Enum):
    """Of a fabric that can be made."""

    leaf_spine = "leaf-spine"
    fat_tree = "fat-tree"


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
    job: Annotated[
        str,
        typer.Option(help="Whose trees are drawn; default: all.", autocompletion=job_names),
    ] = "",
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Draw the fabric, its jobs' trees in colour, and how many sums each switch has completed.

    Of a large one: links by their load, and one job's trees.
    """
    check_picture("", file)
    shown = _ask(controller)
    from ina.cli.fabric.dense_plot import MOST_SWITCHES, draw_dense
    from ina.cli.fabric.plot import draw

    if job and all(it.name != job for it in shown.jobs):
        raise InvalidInputError(f"--job {job}: the controller has no job of this name")
    if len(shown.switches) > MOST_SWITCHES:
        draw_dense(shown, file, job)
    else:
        for other in [it for it in shown.jobs if job and it.name != job]:
            shown.jobs.remove(other)
        draw(shown, file)
    emit(
        {"file": file, "switches": len(shown.switches), "jobs": len(shown.jobs)},
        json,
        f"{file}: {len(shown.switches)} switches, {len(shown.hosts)} hosts, {len(shown.jobs)} jobs",
    )


@dataclass(frozen=True, kw_only=True)
class MakeOptions:
    """Of ``ina fabric make``."""

    ctx: typer.Context
    shape: Annotated[Shape, typer.Argument(help="Of the fabric.")]
    k: Annotated[
        int, typer.Option(min=2, max=128, help="Of a fat-tree: ports of a switch, even.")
    ] = 4
    spines: Annotated[int, typer.Option(min=1, max=1024, help="Of a leaf-spine.")] = 2
    leaves: Annotated[int, typer.Option(min=1, max=1024, help="Of a leaf-spine.")] = 3
    hosts: Annotated[int, typer.Option(min=1, max=1024, help="Of each leaf.")] = 3
    host_gbit: Annotated[float, typer.Option(min=0.001, max=1e6, help="Of a host's cable.")] = 100.0
    up_gbit: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="Of a link between switches.")
    ] = 100.0
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")
    ] = None
    json: JsonOption = False


@app.command()
@command(MakeOptions)
def make(asked: MakeOptions) -> None:
    """Write a fabric of a known shape as tables of the controller's file.

    Ports and addresses are given out in turn; where the switches are reached is for you to change.
    """
    others = ("spines", "leaves", "hosts") if asked.shape is Shape.fat_tree else ("k",)
    for name in others:
        if is_given(asked.ctx, name):
            raise InvalidInputError(f"--{name}: a {asked.shape.value} has none")
    rates = Rates(asked.host_gbit * 1e9, asked.up_gbit * 1e9)
    if asked.shape is Shape.fat_tree:
        fabric, said = fat_tree(asked.k, rates), f"A fat-tree of {asked.k}-port switches."
    else:
        fabric = leaf_spine(asked.spines, asked.leaves, asked.hosts, rates)
        said = f"{asked.leaves} leaves with {asked.hosts} hosts each, below {asked.spines} spines."
    text = "\n".join(tables(fabric, said)) + "\n"
    counts = {"switches": len(fabric.switches), "links": len(fabric.links)}
    if asked.output is None:
        emit({**counts, "toml": text}, asked.json, text.rstrip("\n"))
        return
    check_output("--output", asked.output, (".toml",))
    asked.output.write_text(text, "utf-8")
    emit({**counts, "file": asked.output}, asked.json, f"wrote {asked.output}")


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The controller's file.")],
    lldp: Annotated[
        list[str],
        typer.Option(
            metavar="SWITCH=FILE",
            help="What `lldpcli show neighbors -f json` prints on a switch; may be repeated.",
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Compare the file's links with what switches hear of each other by LLDP.

    Exits with 1 if they differ.
    """
    fabric = fabric_of(load_config(file))
    heard = {}
    for text in lldp:
        switch, is_pair, path = text.partition("=")
        if not is_pair or switch not in fabric:
            raise InvalidInputError(f"--lldp {text}: want SWITCH=FILE, of a switch of {file}")
        heard[switch] = read_neighbours(Path(path))
    found = list(differences(fabric, heard))
    same = f"{file}: as {len(heard)} switch{'es' * (len(heard) > 1)} hear{'s' * (len(heard) == 1)}"
    emit({"differences": found}, json, "\n".join(found) or same)
    if found:
        raise typer.Exit(1)


@app.command()
def down(
    name: Annotated[str, typer.Argument(help="A switch, or a link as leaf1-spine1.")],
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Say that a link or a switch is down: jobs are moved off it, and none is summed over it.

    The controller's store keeps it, until `ina fabric up` takes it back.
    """
    _set_down(controller, name, json, is_down=True)


@app.command()
def up(
    name: Annotated[str, typer.Argument(help="A switch, or a link as leaf1-spine1.")],
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Say that a link or a switch can be used again."""
    _set_down(controller, name, json, is_down=False)


def _set_down(controller: str, name: str, json: bool, *, is_down: bool) -> None:
    request = pb2.SetDownRequest(name=name, down=is_down)
    reply = ask(controller, lambda operator: operator.SetDown, request)
    state = "down" if is_down else "up"
    said = f"{name} is {state}" if reply.changed else f"{name} was {state} already"
    left = f"; down: {', '.join(reply.down)}" if reply.down else ""
    emit(plain(reply), json, said + left)


def _ask(controller: str) -> pb2.ShowFabricReply:
    return ask(controller, lambda operator: operator.ShowFabric, pb2.ShowFabricRequest())
