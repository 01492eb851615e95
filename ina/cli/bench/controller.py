"""``ina bench controller``: joins a second, and how long admission takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import Ratio, rows_of
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.common.columns import Column, ms
from ina.protocol.spec import MAX_WORKERS


@dataclass(frozen=True, kw_only=True)
class AdmissionOptions(ComparedOptions):
    """Of ``ina bench controller``."""

    jobs: Annotated[
        str, typer.Option(help="Other jobs on the switch meanwhile, comma separated.")
    ] = "1,10,100"
    workers: Annotated[int, typer.Option(help="Workers of each job, 1 to 32.")] = 2
    admissions: Annotated[int, typer.Option(min=1, help="Jobs admitted, a row.")] = 100
    store: Annotated[
        bool, typer.Option("--store", help="The controller keeps its jobs in SQLite.")
    ] = False


BENCH = Bench(
    "controller",
    AdmissionOptions,
    (
        *(Column("jobs"), Column("n", "workers"), Column("admissions")),
        *(ms("p50 ms", "p50_s", 2), ms("p99 ms", "p99_s", 2)),
        *(ms("leave p50 ms", "leave_p50_s", 2), Column("joins/s", "joins_per_second", 0)),
        Column("#wrong", "wrong"),
    ),
    notes=("joins/s: 8 jobs at once, each joining and leaving; one client process",),
)


@BENCH.command
def controller(asked: AdmissionOptions) -> Found:
    """Admit jobs at a controller with a soft switch, while others have their entries there.

    Admission is from a job's first CreateJob to the answer to its last Join: then the switch has
    its entries and the workers may send.
    """
    from ina.bench.controller import MAX_JOBS, AdmissionRow, measure

    counts = sorted(set(parse.numbers("--jobs", asked.jobs, 0, MAX_JOBS)))
    parse.numbers("--workers", str(asked.workers), 1, MAX_WORKERS)
    rows: list[AdmissionRow] = []
    with steps("controller", len(counts)) as bar:

        def on_row(row: AdmissionRow) -> None:
            rows.append(row)
            bar.done(f"{row.jobs} jobs: p50 {1e3 * row.p50_s:.1f} ms")

        measure(counts, asked.workers, asked.admissions, store=asked.store, on_row=on_row)
    return Found(
        title="admission of jobs",
        settings={"jobs": counts, **asked.named("workers", "admissions", "store")},
        rows=rows_of(rows),
        ratios=[
            Ratio(f"{row.jobs} jobs: p50 of {rows[0].jobs} / p50", rows[0].p50_s / row.p50_s)
            for row in rows[1:]
        ],
    )
