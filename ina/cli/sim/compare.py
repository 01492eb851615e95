"""``ina sim compare``: policies beside one another on the same traces, algorithms on the same
networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import RenderableType

from ina.cli.common.bounds import MAX_PROCESSES, MAX_SEED
from ina.cli.common.columns import Column, view
from ina.cli.common.output import JsonOption, console, emit
from ina.cli.common.progress import progress
from ina.cli.sim.routing import routing
from ina.cli.sim.windows import windows
from ina.sim.memory.compare import POLICIES, compare
from ina.sim.memory.outcome import Outcome
from ina.units import time_text

_HELP = "Compare policies on the same traces, and algorithms on the same networks."
app = typer.Typer(help=_HELP, no_args_is_help=True)
app.command()(windows)
app.command()(routing)


@app.callback(help=_HELP)
def _compare() -> None:
    """As ``_HELP`` has it."""


@app.command()
def memory(
    policy: Annotated[
        list[str] | None,
        typer.Option(help=f"One of {', '.join(POLICIES)}; may be repeated. Default: all."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many traces.")] = 3,
    first: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The first one's seed.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Of a trace.")] = 600,
    offered: Annotated[
        float, typer.Option(min=0.01, help="Jobs at a time if each had all that is of use to it.")
    ] = 24.0,
    aggregator: Annotated[
        bool,
        typer.Option(
            help="Each job has a server that sums what finds no slot, as in ATP; without, it waits."
        ),
    ] = True,
    processes: Annotated[
        int, typer.Option(min=0, max=MAX_PROCESSES, help="0: one for each core.")
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Run traces of training jobs through the controller, under each memory policy.

    Jobs are fluids: they step as fast as their slots allow, and no packet is sent. The controller
    is the one that ships, in virtual time. Three traces of 600 jobs take some minutes.
    """
    chosen = list(dict.fromkeys(policy or POLICIES))

    def told(done: Outcome) -> None:
        if not json:
            slowdown = f"mean slowdown {done.mean_slowdown:.2f}"
            console(stderr=True).print(f"{done.policy}: {done.jobs} jobs, {slowdown}")

    with progress("running traces"):
        outcomes = compare(
            chosen,
            range(first, first + seeds),
            jobs=jobs,
            offered=offered,
            aggregator=aggregator,
            processes=processes,
            told=told,
        )
    emit(outcomes, json, outcomes_view(outcomes))


def outcomes_view(outcomes: Sequence[Outcome]) -> RenderableType:
    """A line a policy."""
    return view(_COLUMNS, outcomes)


_COLUMNS = (
    Column("policy"),
    Column("mean completion", lambda it: f"{it.mean_completion_s:.0f} s"),
    Column("mean slowdown", lambda it: f"{it.mean_slowdown:.2f}"),
    Column("99 %", lambda it: f"{it.p99_slowdown:.1f}"),
    Column("deadlines missed", lambda it: f"{it.missed_share:.1%}"),
    Column("resizes a job", lambda it: f"{it.mean_resizes:.1f}"),
    Column("most", "most_resizes"),
    Column("longest decision", lambda it: time_text(ms / 1e3) if (ms := it.decision_ms) else ""),
)
