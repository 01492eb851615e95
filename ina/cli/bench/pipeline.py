"""``ina bench pipeline``: packets a second of the compiled pool program, in memory, one core."""

from __future__ import annotations

from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import Report, rows_of
from ina.cli.bench.output import (
    ALL_BUILDS,
    DEFAULT_TOLERANCE,
    BaselineOption,
    JsonOption,
    Outputs,
    SaveOption,
    ToleranceOption,
    number,
    steps,
)
from ina.protocol.spec import MAX_WORKERS

COLUMNS = (
    *("values", "n", "copies", "M packets/s", "spread", "ns/packet", "GB/s in", "NumPy GB/s"),
    *("of NumPy", "checked", "#wrong"),
)


def pipeline(
    values: Annotated[
        str, typer.Option(help="Builds to measure, by values a packet.")
    ] = ALL_BUILDS,
    workers: Annotated[int, typer.Option(help="Workers of the job, 1 to 32.")] = 8,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; the median counts.")] = 9,
    save: SaveOption = None,
    baseline: BaselineOption = None,
    tolerance: ToleranceOption = DEFAULT_TOLERANCE,
    json: JsonOption = False,
) -> None:
    """Packets a second of the compiled pool program: packets in memory, one core, sums checked."""
    from ina.bench.pipeline import measure, ratios

    counts = parse.numbers("--values", values)
    parse.numbers("--workers", str(workers), 1, MAX_WORKERS)
    outputs = Outputs("pipeline", json, save, baseline, tolerance)
    results = []
    copies_shared = [True, False] if workers > 1 else [False]
    ways = [(count, shared) for count in counts for shared in copies_shared]
    with steps("pipeline", len(ways)) as bar:
        for count, shared in ways:
            results.append(measure(count, workers, shared=shared, repeats=repeats))
            bar.done(f"{count} values, {'one copy for all' if shared else 'a copy each'}")
    report = Report(
        bench=outputs.bench,
        settings={"values": counts, "workers": workers, "repeats": repeats},
        rows=rows_of(results),
        ratios=ratios(results),
        wrong=sum(result.wrong for result in results),
        notes=[
            "CPU time of one core; NumPy: int32 add and copy of the same bytes, without packets",
            "copies of each result: one for all workers (IP multicast, as other benchmarks), or one"
            " for each (ina's default)",
        ],
    )
    cells = [
        (
            *(result.values, result.workers, result.copies),
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
    outputs.finish(report, COLUMNS, cells, title="pool program in memory, one core")
