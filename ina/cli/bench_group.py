"""``ina bench``: the benchmarks, each in its owner's file."""

from __future__ import annotations

import typer

from ina.cli.lazy import Member, lazy_group

MEMBERS = {
    "pipeline": Member("ina.cli.bench", "Packets a second of the compiled P4 program, one core."),
    "allreduce": Member("ina.cli.bench_allreduce", "All-reduce through the switch beside Gloo."),
}

app = typer.Typer(
    cls=lazy_group(MEMBERS), help="Measure the pipeline and all-reduce.", no_args_is_help=True
)


@app.callback()
def _bench() -> None:
    """Measure the pipeline and all-reduce."""
