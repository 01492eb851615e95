"""``ina bench pipeline``: packets a second of the compiled pool program, in memory, one core."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ina.cli.output import emit, table
from ina.errors import InvalidInputError

app = typer.Typer(help="Measure the pipeline.", add_completion=False)


def parse_counts(text: str, option: str) -> list[int]:
    """``64,256`` to numbers."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option} {text!r} is not a list of numbers") from None
    if not numbers or any(number < 1 for number in numbers):
        raise InvalidInputError(f"{option} {text!r}: numbers from 1 up are needed")
    return numbers


@app.callback()
def _bench() -> None:
    """Measure the pipeline."""


@app.command()
def pipeline(
    values: Annotated[str, typer.Option(help="Builds to measure, by values a packet.")] = "64,256",
    workers: Annotated[int, typer.Option(help="Workers of the job, 1 to 32.")] = 8,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats; the median counts.")] = 9,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Packets a second of the compiled pool program: packets in memory, one core, sums checked."""
    from ina.cli.bench_pipeline import measure

    results = [
        measure(count, workers, repeats=repeats) for count in parse_counts(values, "--values")
    ]
    rows = [
        (
            result.values,
            result.workers,
            f"{result.packets_per_second / 1e6:.1f}",
            f"{result.slowest_packets_per_second / 1e6:.1f}-"
            f"{result.fastest_packets_per_second / 1e6:.1f}",
            f"{result.ns_per_packet:.1f}",
            f"{result.gradient_gb_per_second:.1f}",
            f"{result.limit_gb_per_second:.1f}",
            f"{100 * result.fraction_of_limit:.0f} %",
        )
        for result in results
    ]
    columns = [
        "values",
        "workers",
        "M packets/s",
        "spread",
        "ns/packet",
        "GB/s in",
        "limit GB/s",
        "of limit",
    ]
    title = (
        "Pool program in memory, CPU time of one core; limit: int32 add and copy of the same bytes"
    )
    emit([asdict(result) for result in results], json, table(columns, rows, title=title))
