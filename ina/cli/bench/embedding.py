"""``ina bench embedding``: an embedding's gradients, sparse and dense, by ina and by Gloo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import embedding as bench
from ina.bench import parse
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK
from ina.cli.bench.cells import TIME
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import SpoilOption, UnicastOption, ValuesOption, check_samples
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.bench.testbeds import LINK_HELP, check_link, open_testbed, values_for
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms, percent
from ina.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(ComparedOptions):
    """Of ``ina bench embedding``."""

    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "4"
    rows: Annotated[int, typer.Option(min=1, help="Of the table.")] = 1_000_000
    columns: Annotated[int, typer.Option(min=1, help="Values of a row.")] = 64
    lookups: Annotated[int, typer.Option(min=1, help="Of rows, in a worker's batch.")] = 16384
    zipf: Annotated[
        float,
        typer.Option(
            help="The k-th most frequent row is looked up k^this times less often; 0: all alike."
        ),
    ] = 1.0
    link: Annotated[str, typer.Option(help=LINK_HELP)] = LOOPBACK
    values: ValuesOption = 0
    unicast: UnicastOption = False
    repeats: Annotated[int, typer.Option(help="Samples of each, at most.")] = 5
    seconds: Annotated[
        float,
        typer.Option(help="Upper bound of a number of workers; eight times, for three samples."),
    ] = 60.0
    spoil: SpoilOption = 0


BENCH = Bench(
    "embedding",
    EmbeddingOptions,
    (
        *(Column("n", "workers"), Column("tensor", "way"), percent("density", "density", 2)),
        *(percent("union", "union", 2), ms("time ms", "time_s", 1)),
        ms("±", ("time_low_s", "time_high_s"), 1),
        *(
            Column("sent MB", "sent_bytes", 2, 1e-6),
            Column("received MB", "received_bytes", 2, 1e-6),
        ),
        *(ms("limit ms", "limit_s", 1), percent("% of limit", "limit_share", 1)),
        *(Column("this/ina sparse", "gain", 2), Column("#wrong", "wrong")),
    ),
    spare=("±", "limit ms", "% of limit", "density"),
    notes=(
        TIME,
        "density: of the rows, those that rank 0 looks up; union: those that some rank does; sent,"
        " received: by a worker's link for one sum, with all headers; limit: of a way's values and"
        " counters on a worker's link",
    ),
)


@BENCH.command
def embedding(asked: EmbeddingOptions) -> Found:
    """Sum an embedding's gradient, of a batch by Zipf's law: as a sparse tensor and as a dense one.

    By ina, which sends the rows that some rank has, and by Gloo, which gathers all ranks' rows.
    """
    counts = parse.workers("--workers", asked.workers)
    values = values_for(asked.values, asked.link)
    check_samples(asked.repeats, asked.seconds)
    if not 0 <= asked.zipf <= 10:
        raise InvalidInputError(f"--zipf {asked.zipf:g}: want 0 to 10")
    check_link(asked.link)
    torchrun.require("torch")
    order = bench.EmbeddingOrder(
        **asked.named("rows", "columns", "lookups", "zipf", "repeats", "seconds", "spoil")
    )
    rows: list[bench.EmbeddingRow] = []
    with steps("embedding", len(counts)) as bar:
        for n in counts:
            with open_testbed(
                n, asked.link, values=values, multicast=not asked.unicast, progress=bar.say
            ) as where:
                bar.say(f"{n} workers")
                found = bench.measure(where, order, values)
                rows += found
                bar.done(f"{n} workers: " + ", ".join(f"{r.way} {r.time_s:.3f} s" for r in found))
    return Found(
        title=f"gradients of an embedding of {asked.rows} x {asked.columns}, {asked.link}",
        settings={
            **{"workers": counts, "values": values},
            **asked.named("rows", "columns", "lookups", "zipf", "link", "unicast"),
        },
        rows=rows_of(rows),
        ratios=bench.ratios(rows, asked.link),
        notes=bench.why_few(rows, asked.seconds),
    )
