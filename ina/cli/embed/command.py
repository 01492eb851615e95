"""``ina embed``: embedding tables that are spread over hosts."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, check_output, check_picture, emit
from ina.cli.common.progress import progress
from ina.cli.common.told import told_to_stop
from ina.cli.embed.show import read, services_of
from ina.cli.embed.show import view as services_view
from ina.cli.embed.view import view
from ina.cli.log_options import log_as_a_service
from ina.cli.switch.options import MetricsOption, ReadyJsonOption
from ina.embed.errors import TraceError
from ina.embed.generated import generated, mlperf_tables
from ina.embed.metrics import ServiceCollector
from ina.embed.plan import PlanOrder, plan
from ina.embed.serving import Serving
from ina.embed.sharding import MAX_DIM, MAX_HOSTS, MAX_ROWS
from ina.embed.trace import load
from ina.errors import InvalidInputError
from ina.metrics import MetricsServer
from ina.units import size_text

_MOST_SAMPLES = 100_000_000
_MOST_CACHES = 32


class Shard(str, Enum):
    """As ``Table(shard=)``."""

    auto = "auto"
    table = "table"
    row = "row"


class Optimizer(str, Enum):
    """As ``EmbeddingBags.optimizer()``."""

    sgd = "sgd"
    adagrad = "adagrad"
    rowwise_adagrad = "rowwise_adagrad"


app = typer.Typer(
    help="Embedding tables that are spread over hosts: plan them, watch them.", no_args_is_help=True
)


@app.callback()
def _embed() -> None:
    """Embedding tables that are spread over hosts: plan them, watch them."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Of ``ina embed plan``."""

    trace: Annotated[
        Path,
        typer.Argument(metavar="TRACE", help="What is asked for: .npz, .jsonl, or Criteo's lines."),
    ]
    hosts: Annotated[int, typer.Option(min=1, max=MAX_HOSTS, help="That share the tables.")] = 8
    samples: Annotated[
        int, typer.Option(min=1, max=_MOST_SAMPLES, help="Of a host, in a step.")
    ] = 1024
    steps: Annotated[int, typer.Option(min=2, max=_MOST_SAMPLES, help="Of the trace, at most.")] = (
        100
    )
    dim: Annotated[int, typer.Option(min=1, max=MAX_DIM, help="Values of a row.")] = 64
    shard: Annotated[Shard, typer.Option(help="How tables are spread.")] = Shard.auto
    optimizer: Annotated[Optimizer, typer.Option(help="Whose numbers need memory, too.")] = (
        Optimizer.rowwise_adagrad
    )
    cache: Annotated[
        str, typer.Option(help="Of a cache for inference, percent of the rows, comma separated.")
    ] = "0,0.1,1,10"
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw bytes by cache: png, svg or pdf.")
    ] = None
    json: JsonOption = False


@app.command("plan")
@command(PlanOptions)
def plan_trace(asked: PlanOptions) -> None:
    """Say what sharding, a cache and hot rows would bring, by what a model has asked for.

    The trace is replayed by what decides in a service. Its first half warms caches and is counted
    for hot rows, its second half is measured.
    """
    shares = _shares(asked.cache)
    if asked.plot is not None:
        check_picture("--plot", asked.plot)
    with progress(f"reads {asked.trace.name}") as said:
        trace = load(asked.trace, asked.steps * asked.hosts * asked.samples)
        order = PlanOrder(
            hosts=asked.hosts,
            samples=asked.samples,
            dim=asked.dim,
            shard=asked.shard.value,
            cache_shares=shares,
            optimizer=asked.optimizer.value,
        )
        found = plan(trace, order, lambda n, of: said.update("replays steps", done=n, total=of))
    if asked.plot is not None:
        from ina.cli.embed.plot import draw

        draw(found, order, asked.plot)
    emit(found, asked.json, view(found, order))


def _shares(text: str) -> list[float]:
    wrong = InvalidInputError(f"--cache {text}: want percents, 0 to 100, as 0,0.1,1")
    try:
        percents = [float(one) for one in text.split(",")]
    except ValueError:
        raise wrong from None
    if not all(0 <= one <= 100 for one in percents) or len(percents) > _MOST_CACHES:
        raise wrong
    return sorted({one / 100 for one in percents})


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """Of ``ina embed trace``."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .npz to write.")]
    samples: Annotated[int, typer.Option(min=1, max=_MOST_SAMPLES, help="Of all hosts.")] = 163_840
    most_rows: Annotated[
        int,
        typer.Option(min=1, max=MAX_ROWS, help="Of a table; longer ones of MLPerf's 26 are cut."),
    ] = 2_000_000
    bags: Annotated[
        bool, typer.Option("--bags", help="As many rows a sample as MLPerf's, not one a table.")
    ] = False
    zipf: Annotated[
        float,
        typer.Option(
            min=0, max=10, help="The k-th most frequent row is asked for k^this times less often."
        ),
    ] = 1.05
    seed: Annotated[int, typer.Option(min=0, help="Another one: other look-ups.")] = 1
    json: JsonOption = False


@app.command("trace")
@command(TraceOptions)
def make_trace(asked: TraceOptions) -> None:
    """Write a trace of look-ups by Zipf's law, in tables as long as those of MLPerf's DLRM."""
    check_output("", asked.file, (".npz",))
    tables = mlperf_tables(asked.most_rows, bags=asked.bags)
    ids = asked.samples * sum(bag for _, bag in tables)
    try:
        with progress("draws rows", len(tables)) as said:
            trace = generated(
                tables, asked.samples, asked.zipf, asked.seed, lambda n: said.update(done=n)
            )
            said.update(f"writes {asked.file.name}")
            trace.save(asked.file)
    except MemoryError:
        raise TraceError(
            f"{ids:,} rows of tables of {asked.most_rows:,}: too many for memory"
        ) from None
    size = asked.file.stat().st_size
    emit(
        {"file": asked.file, "samples": asked.samples, "tables": len(tables), "ids": ids},
        asked.json,
        f"{asked.file}: {asked.samples:,} samples, {len(tables)} tables, {size_text(size)}",
    )


@app.command()
def show(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Where a rank serves: its INA_METRICS.")
    ],
    json: JsonOption = False,
) -> None:
    """Show what the services of a rank's process have counted: look-ups, rows, hits, bytes."""
    services = services_of(read(address), address)
    emit(services, json, services_view(services))


@app.command()
def serve(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Of the Unix socket to serve at.")],
    metrics: MetricsOption = "",
    json: ReadyJsonOption = False,
) -> None:
    """Have rows of embeddings in a process of their own, for ranks of this host, until Ctrl-C.

    Ranks attach where INA_EMBED names the same path.
    """
    log_as_a_service()
    with ExitStack() as stack:
        wait = stack.enter_context(told_to_stop())
        stack.enter_context(Serving(path))
        served = ""
        if metrics:
            server = MetricsServer(metrics, [ServiceCollector()])
            served = stack.enter_context(server).address
        said = f"ready: {path}" + (f", metrics {served}" if served else "")
        emit({"path": path, "metrics": served or None}, json, said)
        wait()
