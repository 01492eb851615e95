"""``ina bench training``: losses of trainings whose gradients travel in fewer bits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench import training as bench
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK
from ina.bench.training_state import TrainingState
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.output import PlottedOptions, steps
from ina.cli.bench.testbeds import LINK_HELP, check_link, open_testbed, values_for
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms, percent
from ina.cli.common.output import check_output

_WAYS = ",".join(way for way in bench.WAYS if "gloo" not in way and "fsdp2" not in way)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(PlottedOptions):
    """Of ``ina bench training``."""

    model: Annotated[str, typer.Option(help=f"{', '.join(bench.MODELS)}; comma separated.")] = (
        "digits,gpt2"
    )
    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "4,8"
    ways: Annotated[
        str,
        typer.Option(help=f"In this order, comma separated: {', '.join(bench.WAYS)}."),
    ] = _WAYS
    steps: Annotated[int, typer.Option(min=1, max=1_000_000, help="Of each training.")] = 1000
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Trainings of each way.")] = 3
    link: Annotated[str, typer.Option(help=LINK_HELP)] = LOOPBACK
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE",
            help="Keep trainings that are over here, and do not repeat those that are.",
        ),
    ] = None


BENCH = Bench(
    "training",
    TrainingOptions,
    (
        *(Column("model"), Column("n", "workers"), Column("way"), Column("seeds")),
        *(Column("loss", "loss", 4), Column("test loss", "test_loss", 4)),
        *(Column("±", "test_spread", 4), percent("accuracy %", "test_accuracy", 2)),
        *(percent("off %", "off", 2), percent("from", "off_low", 2), percent("to", "off_high", 2)),
        *(Column("verdict"), Column("KB/step", "sent_bytes", 1, 1e-3)),
        *(ms("step ms", "step_s", 1), Column("#wrong", "wrong")),
    ),
    spare=("from", "to", "step ms", "KB/step", "loss", "accuracy %", "seeds"),
    notes=(
        "loss: mean of the last tenth of the steps; test loss: of what was held out, after the last"
        " step; ±: of the seeds, largest less smallest; off: more than float32's of the same seed",
        "verdict: seeds, no farther from float32's mean than its seeds from each other; near,"
        f" farther, but at most {bench.NEAR:.0%}; worse or better, more",
    ),
    panels=bench.panels,
)


@BENCH.command
def training(asked: TrainingOptions) -> Found:
    """Train in each way for gradients to travel, from the same seeds, and compare the losses.

    digits is the demo's CNN; gpt2 a model of two layers, 64 wide, on the bytes of Python's library.
    """
    models = parse.names("--model", asked.model, bench.MODELS)
    counts = parse.workers("--workers", asked.workers)
    ways = parse.names("--ways", asked.ways, bench.WAYS)
    values = values_for(0, asked.link)
    check_link(asked.link)
    if asked.state is not None:
        check_output("--state", asked.state, (".json", ""))
    state = TrainingState(asked.state)
    torchrun.require("torch", "sklearn")
    runs = [
        bench.TrainingRun(model, workers, asked.link, asked.steps, way, seed)
        for model in models
        for workers in counts
        for way in ways
        for seed in range(1, asked.seeds + 1)
    ]
    left = [run for run in runs if run not in state.done]
    with steps("training", len(left)) as bar:

        def on_record(record: bench.TrainingRecord) -> None:
            state.add(record)
            run = record.run
            bar.done(
                f"{run.model}, {run.workers} workers, {run.way}, seed {run.seed}:"
                f" test loss {record.test_loss:.4f}, {1e3 * record.step_s:.1f} ms a step"
            )

        for workers in counts:
            of = [run for run in left if run.workers == workers]
            if of:
                with open_testbed(
                    workers, asked.link, values=values, multicast=True, progress=bar.say
                ) as where:
                    bench.measure(where, of, values, on_record)
    rows = bench.summary(state.done[run] for run in runs)
    return Found(
        title=f"trainings of {asked.steps} steps, {asked.link}",
        settings={
            **{"models": models, "workers": counts, "ways": ways, "values": values},
            **asked.named("steps", "seeds", "link"),
        },
        rows=rows_of(rows),
        ratios=bench.ratios(rows),
    )
