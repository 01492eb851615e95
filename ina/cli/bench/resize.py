"""``ina bench resize``: what a change of a running job's slots costs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ina.bench import parse
from ina.bench import resize as bench
from ina.bench.report import Report, rows_of
from ina.bench.resize_worker import KINDS
from ina.bench.shared_star import MAX_WORKERS
from ina.cli.bench.options import MAX_SHARED_SLOTS, ValuesOption
from ina.cli.bench.output import SavedOptions, number, steps
from ina.cli.bench.testbeds import UNSHAPED, check_link, values_for
from ina.cli.common.options import command
from ina.errors import InvalidInputError
from ina.protocol.spec import VALUE_BYTES
from ina.switch.server import MAX_DELAY_US

_LEAST_SLOTS = 64
_NOTES = [
    "a job of mode pool sums without a pause, four sums in flight, while its slots change once:"
    " grow to twice as many, shrink to half, move to others, in place where there is no room for"
    " both; none: they do not, so what is lost then is the machine's own unrest",
    "lost: how much longer it took to sum what was summed from the request until 0.2 s after the"
    " change, than as many sums took before and after that; median, ± between the quartiles. Round"
    " trip: of a lone packet, with the time until all have woken up. All sums are checked",
]


@dataclass(frozen=True, kw_only=True)
class ResizeOptions(SavedOptions):
    """Of ``ina bench resize``."""

    round_trip_us: Annotated[
        str,
        typer.Option(help="Microseconds to the switch and back, added to the links', in turns."),
    ] = "0,1000,5000"
    workers: Annotated[int, typer.Option(help="Of the job.")] = 2
    slots: Annotated[int, typer.Option(help="Of the job: a power of two.")] = 256
    size: Annotated[str, typer.Option(help="Of a sum's tensor.")] = "90K"
    link: Annotated[str, typer.Option(help="Rate of each host's link; or unshaped.")] = "200mbit"
    values: ValuesOption = 0
    trials: Annotated[int, typer.Option(min=1, help="Of each kind.")] = 7


@command(ResizeOptions)
def resize(asked: ResizeOptions) -> None:
    """Goodput that a running job loses as it gets more slots, fewer, or others."""
    values = asked.values
    if not 2 <= asked.workers <= MAX_WORKERS:
        raise InvalidInputError(f"--workers {asked.workers}: want 2 to {MAX_WORKERS}")
    if not _LEAST_SLOTS <= asked.slots <= MAX_SHARED_SLOTS or asked.slots & (asked.slots - 1):
        raise InvalidInputError(
            f"--slots {asked.slots}: want a power of two, {_LEAST_SLOTS} to {MAX_SHARED_SLOTS}"
        )
    round_trips_us = parse.numbers("--round-trip-us", asked.round_trip_us, 0, MAX_DELAY_US)
    size_bytes = parse.one_size("--size", asked.size)
    rate_bit_s = None if asked.link == UNSHAPED else parse.rate_bit_s("--link", asked.link)
    outputs = asked.outputs("resize")
    check_link(asked.link)
    values = values_for(values, asked.link)
    case = bench.ResizeCase(asked.workers, size_bytes // VALUE_BYTES, asked.slots, asked.trials)
    plan = bench.plan(asked.workers, asked.link, rate_bit_s, values, asked.slots)
    with steps("resize", len(round_trips_us) * asked.trials * len(KINDS)) as bar:
        found = bench.measure(plan, case, round_trips_us, bar.say, bar.done)
    settings = {
        **{"round_trips_us": round_trips_us, "size_bytes": size_bytes, "values": values},
        **asked.named("workers", "slots", "link", "trials"),
    }
    report = Report(
        bench=outputs.bench,
        settings=settings,
        rows=rows_of(found),
        ratios=[],
        wrong=sum(row.wrong for row in found),
        notes=_NOTES,
    )
    outputs.finish(
        report,
        COLUMNS,
        [_cells(row) for row in report.rows],
        title=f"{asked.workers} workers, links {asked.link}, {asked.slots} slots and multiples,"
        f" sums of {parse.size_text(size_bytes)}",
        spare=SPARE,
    )


COLUMNS = (
    *("added us", "round trip ms", "change", "lost ms", "±", "lost round trips", "took ms"),
    *("a sum ms", "#wrong"),
)
SPARE = ("added us", "a sum ms", "±")


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    width_s = row["lost_high_s"] - row["lost_low_s"]
    return (
        *(row["round_trip_us"], number(1e3 * row["round_trip_s"]), row["kind"]),
        *(number(1e3 * row["lost_s"]), number(1e3 * width_s), number(row["lost_round_trips"])),
        *(number(1e3 * row["took_s"], 0), number(1e3 * row["sum_s"]), row["wrong"]),
    )
