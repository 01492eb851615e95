"""``ina bench fsdp``: steps of FSDP2 by ina, overlapped and not, and by Gloo, beside the bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import fsdp as bench
from ina.bench import parse
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import ValuesOption, check_samples
from ina.cli.bench.output import PlottedOptions, steps
from ina.cli.bench.testbeds import LINK_HELP, check_link, counted_in, open_testbed, values_for
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms, percent
from ina.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True)
class FsdpOptions(PlottedOptions):
    """Of ``ina bench fsdp``."""

    ways: Annotated[str, typer.Option(help=f"{', '.join(bench.WAYS)}; comma separated.")] = (
        ",".join(bench.WAYS)
    )
    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "4"
    layers: Annotated[int, typer.Option(min=1, max=1000, help="Blocks of the model.")] = 6
    width: Annotated[
        int, typer.Option(min=1, max=65536, help="Of the model; a block has 12 width² parameters.")
    ] = 512
    heads: Annotated[int, typer.Option(min=1, max=65536, help="Of attention.")] = 8
    link: Annotated[str, typer.Option(help=LINK_HELP)] = LOOPBACK
    values: ValuesOption = 0
    steps: Annotated[int, typer.Option(min=1, max=1_000_000, help="Of each training.")] = 5
    repeats: Annotated[int, typer.Option(help="Steps of each way that compute nothing.")] = 10
    seconds: Annotated[float, typer.Option(help="Upper bound of all of those.")] = 120.0


BENCH = Bench(
    "fsdp",
    FsdpOptions,
    (
        *(Column("n", "workers"), Column("way")),
        Column("parameters MB", "parameter_bytes", 1, 1e-6),
        *(ms("comm ms", "comm_s", 1), ms("±", ("comm_low_s", "comm_high_s"), 1)),
        *(ms("limit ms", "limit_s", 1), percent("% of limit", "limit_share", 1)),
        *(Column("Gloo/this", "gain", 2), Column("bound", "bound", 2)),
        percent("% of bound", "bound_share", 1),
        *(ms("step ms", "step_s", 1), Column("Gloo's step/this", "step_gain", 2)),
        *(
            Column("sent MB", "sent_bytes", 2, 1e-6),
            Column("received MB", "received_bytes", 2, 1e-6),
        ),
        Column("last loss", lambda row: row["losses"][-1], 5),
        *(Column("off", lambda row: _power(row["off"])), Column("#wrong", "wrong")),
    ),
    spare=(
        *("sent MB", "received MB", "parameters MB", "±", "limit ms", "Gloo's step/this"),
        *("% of limit", "last loss", "step ms"),
    ),
    notes=(
        "comm: a step of FSDP2 that computes nothing, what it brings checked; limit: of its"
        " all_gathers and reduce_scatters on a link; bound: Gloo's limit / this one's",
        "step: forward, backward, optimizer of a model of GPT-2's shape; off: the farthest of its"
        f" losses from Gloo's, as a share (more than {bench.LOSS_SPREAD:g} is wrong)",
    ),
    panels=bench.panels,
)


def _power(off: float | None) -> str | None:
    return None if off is None else f"{off:.0e}"


@BENCH.command
def fsdp(asked: FsdpOptions) -> Found:
    """Shard a model of GPT-2's shape by FSDP2, and train it by ina and by Gloo, in turns.

    First with steps that compute nothing: so what is sent is measured apart, also where a machine
    computes slowly.
    """
    ways = parse.names("--ways", asked.ways, bench.WAYS)
    counts = parse.workers("--workers", asked.workers)
    values = values_for(asked.values, asked.link)
    check_samples(asked.repeats, asked.seconds)
    if asked.width % asked.heads:
        raise InvalidInputError(f"--width {asked.width} --heads {asked.heads}: want a multiple")
    check_link(asked.link)
    torchrun.require("torch")
    rows: list[bench.FsdpRow] = []
    with steps("fsdp", len(counts)) as bar:
        for n in counts:
            # Results go to each worker: of a reduce_scatter each wants another part.
            with open_testbed(n, asked.link, values=values, progress=bar.say) as where:
                bar.say(f"{n} workers")
                order = bench.FsdpOrder(
                    ways=ways,
                    net=counted_in(where),
                    **asked.named("layers", "width", "heads", "steps", "repeats", "seconds"),
                )
                found = bench.measure(where, order, values)
            rows += found
            times = ", ".join(f"{row.way} {1e3 * row.comm_s:.1f} ms" for row in found)
            bar.done(f"{n} workers: {times}")
    return Found(
        title=f"FSDP2, {asked.layers} layers, {asked.width} wide, {asked.link},"
        f" {values} values a packet",
        settings={
            **{"ways": ways, "workers": counts, "values": values},
            **asked.named("layers", "width", "heads", "steps", "link"),
        },
        rows=rows_of(rows),
        ratios=bench.ratios(rows, asked.link),
    )
