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
from ina.cli.common.options import command
from ina.errors import InvalidInputError
from ina.modes.mode import Mode
from ina.p4 import names
from ina.p4.builds import builds_of, require_build, require_mode
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
    device: Annotated[
        str, typer.Option(help="soft (compiled C), or xdp: the kernel; needs root.")
    ] = "soft"


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


def _spread_ns(row: Row) -> str:
    return f"{row['low_ns_per_packet']:.0f}-{row['high_ns_per_packet']:.0f}"


IN_KERNEL = Bench(
    "pipeline",
    PipelineOptions,
    (
        *(Column("values"), Column("n", "workers"), Column("ns/packet", "ns_per_packet", 0)),
        Column(
            "spread", lambda row: f"{row['low_ns_per_packet']:.0f}-{row['high_ns_per_packet']:.0f}"
        ),
        *(Column("by hand ns", "floor_ns_per_packet", 0), Column("of it", "of_floor", 2)),
        Column("ns/copy", "ns_per_copy", 0),
        *(Column("checked", "sums_checked"), Column("#wrong", "wrong")),
    ),
    notes=(
        "by hand: benchmarks/xdp_floor.c, one job without tables, counters, checks of who sends",
        "ns/packet: ingress of a contribution; one in n completes a sum, and takes it along",
        "ns/copy: egress, which the program by hand has none of",
    ),
)


def _pool_beside(row: Row) -> str:
    return f"{row['pool_ns_per_packet']:.1f} ({row['pool_values']})"


IN_SENDS = Bench(
    "pipeline",
    PipelineOptions,
    (
        *(Column("mode"), Column("values"), Column("n", "workers")),
        *(Column("ns/packet", "ns_per_packet", 1), Column("spread", _spread_ns)),
        Column(
            names.DEFAULT_MODE,
            lambda row: f"{row['pool_ns_per_packet']:.1f} ({row['pool_values']})",
        ),
        *(Column("CRC ns", "crc_ns", 1), Column("zlib ns", "zlib_crc_ns", 1)),
        *(Column("limit ns", "limit_ns", 1), Column("of limit", "of_limit", 2)),
        *(Column("checked", "sums_checked"), Column("#wrong", "wrong")),
    ),
    notes=(
        "CPU time of one core; each worker gets a copy of each result, with an ICRC of its own",
        "pool: mode pool in the same run, in brackets its values a packet",
        "CRC, zlib: a CRC-32 alone of as many bytes as an ICRC is over, the switch's and zlib's",
        "limit: pool and twice CRC; of limit: 1 or more is within it",
    ),
)


@command(PipelineOptions)
def pipeline(asked: PipelineOptions) -> None:
    """Packets a second of a compiled program: packets in memory, one core, sums checked."""
    parse.names("--device", asked.device, ("soft", "xdp"))
    if asked.device == "xdp":
        IN_KERNEL.run(asked, _in_kernel)
    elif modes.of(require_mode("--mode", asked.mode)).framing != Mode.framing:
        IN_SENDS.run(asked, _in_sends)
    else:
        BENCH.run(asked, _compiled)


def _in_kernel(asked: PipelineOptions) -> Found:
    from ina.bench.pipeline_xdp import MOST_VALUES, MOST_WORKERS, measure_xdp, ratios

    counts = parse.numbers("--values", asked.values)
    parse.numbers("--workers", str(asked.workers), 1, MOST_WORKERS)
    if asked.mode != names.DEFAULT_MODE:
        does = f"the program by hand does {names.DEFAULT_MODE}"
        raise InvalidInputError(f"--mode {asked.mode}: {does}")
    fitting = [count for count in counts if count <= MOST_VALUES]
    results = []
    with steps("pipeline", len(fitting)) as bar:
        for count in fitting:
            results.append(measure_xdp(count, asked.workers, asked.repeats))
            bar.done(f"{count} values")
    return Found(
        title="program of mode pool in the kernel, frames in memory, one core",
        settings={"values": fitting, **asked.named("workers", "repeats", "device")},
        rows=rows_of(results),
        ratios=ratios(results),
        notes=[] if fitting == counts else [f"builds of more than {MOST_VALUES} values: not"],
    )


def _in_sends(asked: PipelineOptions) -> Found:
    from ina.bench.pipeline_frames import AROUND
    from ina.bench.pipeline_sends import measure_sends, ratios

    if modes.of(asked.mode).framing not in AROUND:
        found = "packets of UDP's, and SENDs to a switch"
        raise InvalidInputError(f"--mode {asked.mode}: what is measured are {found}")
    builds = builds_of(asked.mode)
    counts = list(builds) if asked.values == ALL_BUILDS else parse.numbers("--values", asked.values)
    for count in counts:
        require_build("--values", count, asked.mode)
    parse.numbers("--workers", str(asked.workers), 1, MAX_WORKERS)
    rows = []
    with steps("pipeline", len(counts)) as bar:
        for count in counts:
            rows.append(measure_sends(count, asked.workers, mode=asked.mode, repeats=asked.repeats))
            bar.done(f"{count} values")
    return Found(
        title=f"program of mode {asked.mode} in memory, one core",
        settings={"values": counts, **asked.named("workers", "mode", "repeats", "device")},
        rows=rows_of(rows),
        ratios=ratios(rows),
    )


def _compiled(asked: PipelineOptions) -> Found:
    from ina.bench.pipeline import measure, ratios

    counts = parse.numbers("--values", asked.values)
    parse.numbers("--workers", str(asked.workers), 1, MAX_WORKERS)
    results = []
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
        settings={"values": counts, **asked.named("workers", "mode", "repeats", "device")},
        rows=rows_of(results),
        ratios=ratios(results),
    )
