"""``ina bench lookups``: the exchange of embeddings, by ina and by Gloo's all_to_all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import lookups as bench
from ina.bench import parse
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK
from ina.cli.bench.cells import TIME
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import SpoilOption, UnicastOption, ValuesOption, check_samples
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.bench.testbeds import LINK_HELP, check_link, open_testbed, values_for
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms
from ina.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True)
class LookupsOptions(ComparedOptions):
    """Of ``ina bench lookups``."""

    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "4"
    most_rows: Annotated[
        int, typer.Option(min=1, help="Of a table; longer ones of MLPerf's 26 are cut.")
    ] = 200_000
    dim: Annotated[int, typer.Option(min=1, help="Values of a row.")] = 64
    samples: Annotated[int, typer.Option(min=1, help="Of a worker, in a training step.")] = 2048
    queries: Annotated[int, typer.Option(min=1, help="Of a worker, in inference.")] = 64
    bags: Annotated[
        bool, typer.Option("--bags", help="As many rows a sample as MLPerf's, not one a table.")
    ] = False
    zipf: Annotated[
        float,
        typer.Option(help="The k-th most frequent row is asked for k^this times less often."),
    ] = 1.05
    link: Annotated[str, typer.Option(help=LINK_HELP)] = LOOPBACK
    values: ValuesOption = 0
    unicast: UnicastOption = False
    repeats: Annotated[
        int, typer.Option(help="Steps of training, at most; of inference 20 times as many.")
    ] = 10
    seconds: Annotated[float, typer.Option(help="Upper bound of each of them.")] = 60.0
    spoil: SpoilOption = 0


BENCH = Bench(
    "lookups",
    LookupsOptions,
    (
        *(Column("n", "workers"), Column("phase", "phase"), Column("way", "way")),
        ms("time ms", "time_s", 1),
        ms("±", ("time_low_s", "time_high_s"), 1),
        ms("p99 ms", "worst_s", 1),
        *(
            Column("sent MB", "sent_bytes", 2, 1e-6),
            Column("received MB", "received_bytes", 2, 1e-6),
        ),
        ms("limit ms", "limit_s", 1),
        *(Column("bytes/gloo", "share", 2), Column("this/ina", "gain", 2)),
        Column("#wrong", "wrong"),
    ),
    spare=("±", "limit ms", "sent MB"),
    notes=(
        TIME,
        "training: looked up, gradients sent back, rows updated; sent, received: by a worker's link"
        " for one step, with all headers; limit: of what it received on that link",
    ),
)


@BENCH.command
def lookups(asked: LookupsOptions) -> Found:
    """Look rows of 26 tables up, as a recommendation model does, and update them.

    By ina's services, and by all_to_all over Gloo, which brings a sum for each sample and table.
    """
    counts = parse.workers("--workers", asked.workers)
    values = values_for(asked.values, asked.link)
    check_samples(asked.repeats, asked.seconds)
    if not 0 <= asked.zipf <= 10:
        raise InvalidInputError(f"--zipf {asked.zipf:g}: want 0 to 10")
    check_link(asked.link)
    torchrun.require("torch")
    order = bench.LookupsOrder(
        **asked.named("most_rows", "dim", "samples", "queries", "bags", "zipf"),
        **asked.named("repeats", "seconds", "spoil"),
    )
    rows: list[bench.LookupsRow] = []
    with steps("lookups", len(counts)) as bar:
        for n in counts:
            with open_testbed(
                n, asked.link, values=values, multicast=not asked.unicast, progress=bar.say
            ) as where:
                bar.say(f"{n} workers")
                found = bench.measure(where, order, values)
                rows += found
                bar.done(f"{n} workers: " + ", ".join(f"{r.way} {r.time_s:.3f} s" for r in found))
    return Found(
        title=f"look-ups in 26 tables of at most {asked.most_rows} x {asked.dim}, {asked.link}",
        settings={
            **{"workers": counts, "values": values},
            **asked.named("most_rows", "dim", "samples", "queries", "bags", "zipf"),
            **asked.named("link", "unicast"),
        },
        rows=rows_of(rows),
        ratios=bench.ratios(rows, asked.link),
        notes=[],
    )
