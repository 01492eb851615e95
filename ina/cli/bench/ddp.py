"""``ina bench ddp``: training steps of DDP, the gradients summed by ina and by Gloo in turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import ddp as bench
from ina.bench import parse
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import UnicastOption, ValuesOption, check_samples
from ina.cli.bench.output import PlottedOptions, steps
from ina.cli.bench.testbeds import (
    LINK_HELP,
    check_link,
    open_testbed,
    values_for,
)
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms, percent


@dataclass(frozen=True, kw_only=True)
class DdpOptions(PlottedOptions):
    """Of ``ina bench ddp``."""

    model: Annotated[str, typer.Option(help=f"{', '.join(bench.MODELS)}; comma separated.")] = (
        "digits"
    )
    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "4"
    link: Annotated[str, typer.Option(help=LINK_HELP)] = LOOPBACK
    values: ValuesOption = 0
    unicast: UnicastOption = False
    repeats: Annotated[int, typer.Option(help="Steps of each, at most.")] = 10
    seconds: Annotated[float, typer.Option(help="Upper bound of a model, in seconds.")] = 60.0
    compute_ms: Annotated[
        float,
        typer.Option(min=0, help="What resnet50's and gpt2's backward waits, as if it computed."),
    ] = 0.0


BENCH = Bench(
    "ddp",
    DdpOptions,
    (
        *(Column("model"), Column("n", "workers"), Column("backend")),
        *(Column("gradients MB", "gradient_bytes", 1, 1e-6), Column("buckets")),
        *(ms("step ms", "step_s", 1), ms("±", ("step_low_s", "step_high_s"), 1)),
        *(ms("compute ms", "compute_s", 1), Column("items/s", "items_per_second", 0)),
        *(Column("", lambda row: f"{row['unit']}/s"), Column("CPU s/step", "cpu_s", 3)),
        *(ms("limit ms", "limit_s", 1), percent("% of limit", "limit_share", 1)),
        *(Column("Gloo/this", "gain", 2), Column("#wrong", "wrong")),
    ),
    spare=("buckets", "gradients MB", "±", "limit ms", "CPU s/step", "compute ms", "% of limit"),
    notes=(
        "step: forward, backward with DDP's reduction, optimizer (digits); compute: a step without"
        " reduction; limit: the gradients alone on a worker's link",
    ),
    panels=bench.panels,
)


@BENCH.command
def ddp(asked: DdpOptions) -> Found:
    """Steps of DistributedDataParallel: its own buckets and overlap, a hook sends them.

    digits trains the demo's CNN. resnet50 and gpt2 (small) have these models' gradients, layer by
    layer, but compute nothing: 32 images and 8 x 1024 tokens a worker and step are assumed. tiny is
    of the same kind, for tests.
    """
    names = parse.names("--model", asked.model, bench.MODELS)
    counts = parse.workers("--workers", asked.workers)
    values = values_for(asked.values, asked.link)
    check_samples(asked.repeats, asked.seconds)
    check_link(asked.link)
    torchrun.require("torch")
    rows: list[bench.StepRow] = []
    with steps("ddp", len(names) * len(counts)) as bar:
        for n in counts:
            with open_testbed(
                n, asked.link, values=values, multicast=not asked.unicast, progress=bar.say
            ) as where:
                for name in names:
                    bar.say(f"{name}, {n} workers")
                    order = bench.StepOrder(name, asked.repeats, asked.seconds, asked.compute_ms)
                    found = bench.measure(where, order, values)
                    rows += found
                    ours, gloo = (1e3 * row.step_s for row in found)
                    bar.done(f"{name}, {n} workers: ina {ours:.1f} ms, Gloo {gloo:.1f} ms")
    notes = []
    if asked.link != LOOPBACK and not asked.unicast:  # one host's workers share memory
        notes.append("ina's results go to all workers at once (IP multicast); --unicast: to each")
    return Found(
        title=f"DDP, {asked.link}, {values} values a packet",
        settings={
            **{"models": names, "workers": counts, "values": values},
            **asked.named("link", "compute_ms", "unicast"),
        },
        rows=rows_of(rows),
        ratios=bench.ratios(rows, asked.link),
        notes=notes,
    )
