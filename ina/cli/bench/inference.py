"""``ina bench inference``: a plan's nodes, beside the same kernels conducted over Gloo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import inference as bench
from ina.bench.inference_plans import PLANS
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.bench.testbeds import open_testbed
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms
from ina.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True)
class InferenceOptions(ComparedOptions):
    """Of ``ina bench inference``."""

    plan: Annotated[str, typer.Option(help=f"What is asked: {', '.join(PLANS)}.")] = "layers"
    nodes: Annotated[int, typer.Option(min=2, max=16, help="That the plan is spread over.")] = 4
    block: Annotated[int, typer.Option(min=1, max=1024, help="ina: samples of a block.")] = 8
    sizes: Annotated[str, typer.Option(help="Samples of a request, comma separated.")] = "8,64"
    repeats: Annotated[int, typer.Option(min=3, help="Requests one by one, a turn.")] = 200
    burst: Annotated[int, typer.Option(min=1, help="Requests of a round.")] = 300
    window: Annotated[int, typer.Option(min=1, max=64, help="At a time, in a round.")] = 16
    rounds: Annotated[int, typer.Option(min=1, help="Of a turn.")] = 3
    turns: Annotated[int, typer.Option(min=1, help="ina and Gloo, so often in turns.")] = 3


BENCH = Bench(
    "inference",
    InferenceOptions,
    (
        *(Column("n", "nodes"), Column("samples", "size"), Column("way", "way")),
        ms("p50 ms", "time_s", 3),
        ms("±", ("time_low_s", "time_high_s"), 3),
        ms("p99 ms", "worst_s", 2),
        Column("requests/s", "rate", 0),
        Column("±/s", ("rate_low", "rate_high"), 0),
        Column("samples/s", "samples_per_s", 0),
        Column("limit/s", "limit_per_s", 0),
        *(Column("p50 gloo/this", "speed", 2), Column("rate/gloo", "gain", 2)),
        Column("#wrong", "wrong"),
    ),
    spare=("±/s", "±", "limit/s"),
    notes=(
        "p50, p99: a request alone; requests/s: --window at a time. Median, and quartiles (±)",
        "limit: samples a second that this machine's cores could compute, if nothing were sent;"
        " one hop: a block that one node sends back as it came, the floor of a round trip",
        "gloo: the same kernels on the same parts, conducted by a process a node: send, recv and"
        " all_reduce over torch.distributed, a request a message",
    ),
)


@BENCH.command
def inference(asked: InferenceOptions) -> Found:
    """Ask a plan's nodes, and processes that conduct the same kernels over Gloo, in turns."""
    if asked.plan not in PLANS:
        raise InvalidInputError(f"--plan {asked.plan!r}: want {', '.join(PLANS)}")
    try:
        sizes = tuple(int(size) for size in asked.sizes.split(","))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1 or max(sizes) > 65536:
        raise InvalidInputError(f"--sizes {asked.sizes!r}: want numbers from 1 to 65536")
    torchrun.require("torch")
    order = bench.InferenceOrder(
        sizes=sizes,
        **asked.named("plan", "block", "repeats", "burst", "window", "rounds", "turns"),
    )
    with (
        steps("inference", 1) as bar,
        open_testbed(asked.nodes + 1, LOOPBACK, values=0, multicast=False, progress=bar.say) as on,
    ):
        rows = bench.measure(on, order)
        bar.done(", ".join(f"{row.way} {row.size}: {row.time_s * 1e3:.2f} ms" for row in rows))
    return Found(
        title=f"plan {asked.plan} over {asked.nodes} nodes, blocks of {asked.block}, loopback",
        settings=asked.named(
            "plan", "nodes", "block", "sizes", "repeats", "burst", "window", "rounds", "turns"
        ),
        rows=rows_of(rows),
        ratios=bench.ratios(rows),
        notes=[],
    )
