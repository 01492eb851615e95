"""``ina bench resize``: what a change of a running job's slots costs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench import resize as bench
from ina.bench.report import rows_of
from ina.bench.resize_worker import KINDS, ResizeCase
from ina.bench.shared_star import MAX_WORKERS
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import MAX_SHARED_SLOTS, ValuesOption
from ina.cli.bench.output import SavedOptions, steps
from ina.cli.bench.testbeds import UNSHAPED, check_link, values_for
from ina.cli.common.columns import Column, ms
from ina.errors import InvalidInputError
from ina.protocol.spec import VALUE_BYTES
from ina.switch.server import MAX_DELAY_US

_LEAST_SLOTS = 64


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


BENCH = Bench(
    "resize",
    ResizeOptions,
    (
        *(Column("added us", "round_trip_us"), ms("round trip ms", "round_trip_s", 2)),
        *(Column("change", "kind"), ms("lost ms", "lost_s", 2)),
        *(
            ms("±", ("lost_low_s", "lost_high_s"), 2),
            Column("lost round trips", "lost_round_trips", 2),
        ),
        *(ms("took ms", "took_s", 0), ms("a sum ms", "sum_s", 2), Column("#wrong", "wrong")),
    ),
    spare=("added us", "a sum ms", "±"),
    notes=(
        "a job of mode pool sums without a pause, four sums in flight, while its slots change once:"
        " grow to twice as many, shrink to half, move to others, in place where there is no room"
        " for both; none: they do not, so what is lost then is the machine's own unrest",
        "lost: how much longer it took to sum what was summed from the request until 0.2 s after"
        " the change, than as many sums took before and after that; median, ± between the"
        " quartiles. Round trip: of a lone packet, with the time until all have woken up. All sums"
        " are checked",
    ),
)


@BENCH.command
def resize(asked: ResizeOptions) -> Found:
    """Goodput that a running job loses as it gets more slots, fewer, or others."""
    if not 2 <= asked.workers <= MAX_WORKERS:
        raise InvalidInputError(f"--workers {asked.workers}: want 2 to {MAX_WORKERS}")
    if not _LEAST_SLOTS <= asked.slots <= MAX_SHARED_SLOTS or asked.slots & (asked.slots - 1):
        raise InvalidInputError(
            f"--slots {asked.slots}: want a power of two, {_LEAST_SLOTS} to {MAX_SHARED_SLOTS}"
        )
    round_trips_us = parse.numbers("--round-trip-us", asked.round_trip_us, 0, MAX_DELAY_US)
    size_bytes = parse.one_size("--size", asked.size)
    rate_bit_s = None if asked.link == UNSHAPED else parse.rate_bit_s("--link", asked.link)
    check_link(asked.link)
    values = values_for(asked.values, asked.link)
    case = ResizeCase(size_bytes // VALUE_BYTES, asked.slots, asked.trials)
    plan = bench.plan(asked.workers, asked.link, rate_bit_s, values, asked.slots)
    with steps("resize", len(round_trips_us) * asked.trials * len(KINDS)) as bar:
        found = bench.measure(plan, case, round_trips_us, bar.say, bar.done)
    return Found(
        title=f"{asked.workers} workers, links {asked.link}, {asked.slots} slots and multiples,"
        f" sums of {parse.size_text(size_bytes)}",
        settings={
            **{"round_trips_us": round_trips_us, "size_bytes": size_bytes, "values": values},
            **asked.named("workers", "slots", "link", "trials"),
        },
        rows=rows_of(found),
    )
