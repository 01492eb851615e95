"""``ina bench pipeline``: packets a second of the compiled programs, in memory, one core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina import modes
from ina.bench import parse
from ina.bench.report import Report, rows_of
from ina.cli.bench.output import (
    ALL_BUILDS,
    ComparedOptions,
    number,
    steps,
)
from ina.cli.common.options import command
from ina.p4 import names
from ina.p4.builds import require_mode
from ina.protocol.spec import MAX_WORKERS

COLUMNS = (
    *(
        "mode",
        "values",
        "n",
        "copies",
        "M packets/s",
        "spread",
        "ns/packet",
        "GB/s in",
        "NumPy GB/s",
    ),
    *("of NumPy", "checked", "#wrong"),
)


@dataclass(frozen=True, kw_only=True)
class PipelineOptions(ComparedOptions):
    """Of ``ina bench pipeline``."""

    values: Annotated[str, typer.Option(help="Builds to measure, by values a packet.")] = ALL_BUILDS
    workers: Annotated[int, typer.Option(help="Workers of the job, 1 to 32.")] = 8
    mode: Annotated[str, typer.Option(help=f"Of the program: {' or '.join(names.MODES)}.")] = (
        names.DEFAULT_MODE
    )
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; the median counts.")] = 9


@command(PipelineOptions)
def pipeline(asked: PipelineOptions) -> None:
    """Packets a second of a compiled program: packets in memory, one core, sums checked."""
    from ina.bench.pipeline import measure, ratios

    counts = parse.numbers("--values", asked.values)
    parse.numbers("--workers", str(asked.workers), 1, MAX_WORKERS)
    outputs = asked.outputs("pipeline")
    results = []
    require_mode("--mode", asked.mode)
    hows = ["one copy for all", "a copy each"] if asked.workers > 1 else ["a copy each"]
    hows += ["up"] if modes.of(asked.mode).needs_aggregator else []
    ways = [(count, how) for count in counts for how in hows]
    with steps("pipeline", len(ways)) as bar:
        for count, how in ways:
            shared, claims = how == "one copy for all", how == "up"
            found = measure(
                count,
                asked.workers,
                shared=shared,
                mode=asked.mode,
                claims=claims,
                repeats=asked.repeats,
            )
            results.append(found)
            bar.done(f"{count} values, {how}")
    report = Report(
        bench=outputs.bench,
        settings={"values": counts, **asked.named("workers", "mode", "repeats")},
        rows=rows_of(results),
        ratios=ratios(results),
        wrong=sum(result.wrong for result in results),
        notes=[
            "CPU time of one core; NumPy: int32 add and copy of the same bytes, without packets",
            "copies of each result: one for all workers (IP multicast, as other benchmarks), or one"
            " for each (ina's default); up: the job claims its slots, and each sum goes to its"
            " aggregator, once",
        ],
    )
    cells = [
        (
            *(result.mode, result.values, result.workers),
            "up" if result.claims else result.copies,
            number(result.packets_per_second / 1e6, 1),
            f"{result.slowest_packets_per_second / 1e6:.1f}-"
            f"{result.fastest_packets_per_second / 1e6:.1f}",
            *(number(result.ns_per_packet, 1), number(result.gradient_gb_per_second, 1)),
            number(result.numpy_gb_per_second, 1),
            number(result.of_numpy),
            *(result.sums_checked, result.wrong),
        )
        for result in results
    ]
    outputs.finish(
        report, COLUMNS, cells, title=f"program of mode {asked.mode} in memory, one core"
    )
