"""``ina bench pipeline``: packets a second of the compiled programs, in memory, one core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina import modes
from ina.bench import parse
from ina.bench.report import rows_of
from ina.cli.bench.declare import Bench, Found, Row
from ina.cli.bench.output import ALL_BUILDS, ComparedOptions, steps
from ina.cli.common.columns import Column
from ina.p4 import names
from ina.p4.builds import require_mode
from ina.protocol.spec import MAX_WORKERS


@dataclass(frozen=True, kw_only=True)
class PipelineOptions(ComparedOptions):
    """Of ``ina bench pipeline``."""

    values: Annotated[str, typer.Option(help="Builds to measure, by values a packet.")] = ALL_BUILDS
    workers: Annotated[int, typer.Option(help="Workers of the job, 1 to 32.")] = 8
    mode: Annotated[str, typer.Option(help=f"Of the program: {' or '.join(names.MODES)}.")] = (
        names.DEFAULT_MODE
    )
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; the median counts.")] = 9


def _spread(row: Row) -> str:
    slowest, fastest = row["slowest_packets_per_second"], row["fastest_packets_per_second"]
    return f"{slowest / 1e6:.1f}-{fastest / 1e6:.1f}"


BENCH = Bench(
    "pipeline",
    PipelineOptions,
    (
        *(Column("mode"), Column("values"), Column("n", "workers")),
        Column("copies", lambda row: "up" if row["claims"] else row["copies"]),
        Column("M packets/s", "packets_per_second", 1, 1e-6),
        Column("spread", _spread),
        Column("ns/packet", "ns_per_packet", 1),
        Column("GB/s in", "gradient_gb_per_second", 1),
        *(Column("NumPy GB/s", "numpy_gb_per_second", 1), Column("of NumPy", "of_numpy", 2)),
        *(Column("checked", "sums_checked"), Column("#wrong", "wrong")),
    ),
    notes=(
        "CPU time of one core; NumPy: int32 add and copy of the same bytes, without packets",
        "copies of each result: one for all workers (IP multicast, as other benchmarks), or one"
        " for each (ina's default); up: the job claims its slots, and each sum goes to its"
        " aggregator, once",
    ),
)


@BENCH.command
def pipeline(asked: PipelineOptions) -> Found:
    """Packets a second of a compiled program: packets in memory, one core, sums checked."""
    from ina.bench.pipeline import measure, ratios

    counts = parse.numbers("--values", asked.values)
    parse.numbers("--workers", str(asked.workers), 1, MAX_WORKERS)
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
    return Found(
        title=f"program of mode {asked.mode} in memory, one core",
        settings={"values": counts, **asked.named("workers", "mode", "repeats")},
        rows=rows_of(results),
        ratios=ratios(results),
    )
