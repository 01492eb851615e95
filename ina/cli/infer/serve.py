"""``ina infer serve``: a plan's nodes, all on this machine or one of them."""

from __future__ import annotations

import json as json_text
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ina.cli.common.options import command
from ina.cli.common.output import emit, error_line
from ina.cli.infer.check import PlanArgument
from ina.cli.log_options import log_as_a_service
from ina.errors import InvalidInputError
from ina.infer.local import READY, LocalNodes, LocalOptions
from ina.infer.node import PATIENCE_S, NodeOptions, NodeService, open_door
from ina.infer.places import read_places
from ina.infer.plan import InferencePlan, read_plan

app = typer.Typer()

_LOOK_S = 0.5
LINGER_S = 2.0
"""A node that has failed answers for so long that it has, and then ends."""
_MOMENTS = 200_000
_STDIN = 0


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Of ``ina infer serve``."""

    plan: PlanArgument
    places: Annotated[
        Path,
        typer.Option(help="Where the nodes are: written for all nodes here, read for one."),
    ]
    node: Annotated[str, typer.Option(help="Run this node; else all, on this machine.")] = ""
    controller: Annotated[
        str,
        typer.Option(
            envvar="INA_CONTROLLER",
            help="Of the jobs that sum. For all nodes here: by default one is started, with a"
            " soft switch.",
        ),
    ] = ""
    patience_s: Annotated[
        float, typer.Option(help="Without a word of a node that is asked; then it is lost.")
    ] = PATIENCE_S
    loss_rate: Annotated[
        float, typer.Option(help="Share of packets that nodes drop, to see what it does.")
    ] = 0.0
    trace: Annotated[
        Path | None,
        typer.Option(help="Write what happened when: a file of one node, a folder of all."),
    ] = None
    is_held: Annotated[
        bool, typer.Option("--is-held", hidden=True, help="End with the standard input.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="Print the ready line as JSON.")] = False


@app.command()
@command(ServeOptions)
def serve(asked: ServeOptions) -> None:
    """Serve a plan until Ctrl-C or SIGTERM.

    Without --node all nodes run here, a process each, with a soft switch and a controller where
    stages are summed. With --node that one runs, at its place in the file of places. Exits with 1
    when a node is lost, and says which.
    """
    if not 0.1 <= asked.patience_s <= 3600:
        raise InvalidInputError(f"--patience-s {asked.patience_s:g}: want 0.1 to 3600")
    if not 0 <= asked.loss_rate < 1:
        raise InvalidInputError(f"--loss-rate {asked.loss_rate:g}: want 0 to below 1")
    log_as_a_service()
    plan = read_plan(asked.plan)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    raise SystemExit((_serve_one if asked.node else _serve_all)(plan, asked, stopped))


def _serve_one(plan: InferencePlan, asked: ServeOptions, stopped: threading.Event) -> int:
    if asked.node not in plan.spec.nodes:
        known = ", ".join(plan.spec.nodes)
        raise InvalidInputError(f"--node {asked.node!r}: the plan has {known}")
    number = plan.spec.nodes.index(asked.node)
    where = read_places(asked.places, plan)
    door = open_door(where, number, is_held=asked.is_held)
    options = NodeOptions(
        controller=asked.controller,
        patience_s=asked.patience_s,
        loss_rate=asked.loss_rate,
        loss_seed=number,
        most_moments=0 if asked.trace is None else _MOMENTS,
    )
    with NodeService(plan, number, where, door, options) as node:
        place = where.peers[number]
        document = {"plan": plan.spec.name, "node": asked.node, "place": str(place)}
        _say_ready(document, f"node {asked.node} of plan {plan.spec.name} at {place}", asked)
        threading.Thread(target=_watch, args=(node, stopped), daemon=True).start()
        if asked.is_held:
            threading.Thread(target=_end_with_parent, args=(stopped,), daemon=True).start()
        stopped.wait()
        if asked.trace is not None:
            _write_trace(asked.trace, asked.node, node)
        error = node.error()
    if error is None:
        return 0
    typer.echo(error_line(error), err=True)
    return 1


def _watch(node: NodeService, stopped: threading.Event) -> None:
    """Sleeps in the kernel until the node fails: no request wakes it."""
    while not node.wait_failed(3600.0):
        pass
    if not stopped.wait(LINGER_S):
        stopped.set()


def _end_with_parent(stopped: threading.Event) -> None:
    """Who has started this process, for all nodes here, holds the other end and writes nothing."""
    while os.read(_STDIN, 1):  # no file object: its lock would be held when the interpreter ends
        pass
    stopped.set()


def _write_trace(path: Path, name: str, node: NodeService) -> None:
    moments = [
        {"at_ns": at_ns, "what": mark.name.lower(), "stage": stage, "request": request,
         "block": block}
        for at_ns, mark, stage, request, block in node.service.take_moments()
    ]  # fmt: skip
    path.write_text(json_text.dumps({"node": name, "moments": moments}))


def _say_ready(document: dict[str, Any], text: str, asked: ServeOptions) -> None:
    emit(document, asked.json, f"{READY}: {text}")


def _serve_all(plan: InferencePlan, asked: ServeOptions, stopped: threading.Event) -> int:
    options = LocalOptions(
        controller=asked.controller,
        patience_s=asked.patience_s,
        loss_rate=asked.loss_rate,
        trace=asked.trace,
    )
    with LocalNodes(asked.plan, plan, asked.places, options) as nodes:
        pids = {name: process.pid for name, process in nodes.processes.items()}
        document = {"plan": plan.spec.name, "places": str(asked.places), "pids": pids}
        count = len(plan.spec.nodes)
        _say_ready(document, f"{count} nodes of plan {plan.spec.name}; places in {asked.places}",
                   asked)  # fmt: skip
        while not stopped.wait(_LOOK_S):
            gone = nodes.ended()
            if gone:
                return _tell_ended(nodes, gone[0], stopped.wait)
    return 0


def _tell_ended(nodes: LocalNodes, name: str, wait: Callable[[float], bool]) -> int:
    """Others say who is lost, for as long as they answer who asks; then all end."""
    process = nodes.processes[name]
    how = f"by signal {-process.returncode}" if process.returncode < 0 else "by itself"
    typer.echo(error_line(f"node {name!r} has ended {how}: {nodes.said(name)}"), err=True)
    wait(LINGER_S + 1)
    return 1
