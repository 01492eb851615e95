"""``ina bench stopped``: a job that claims slots and is stopped, and what its neighbour feels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench import stopped as bench
from ina.bench.report import rows_of
from ina.bench.shared_star import MAX_WORKERS, StarShape
from ina.bench.stopped_worker import WHO
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import SharedSlotsOption, ValuesOption, check_shared_slots
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.bench.testbeds import check_link, values_for
from ina.cli.common.columns import Column, ms
from ina.errors import InvalidInputError
from ina.protocol.spec import VALUE_BYTES


@dataclass(frozen=True, kw_only=True)
class StoppedOptions(ComparedOptions):
    """Of ``ina bench stopped``."""

    slot_age_us: Annotated[
        str, typer.Option(help="Ages of the switch's slots, in turns, as 20000,100000.")
    ] = "20000,100000,400000"
    workers: Annotated[int, typer.Option(help="Of each job.")] = 2
    slots: SharedSlotsOption = 128
    size: Annotated[str, typer.Option(help="Of a sum's tensor.")] = "180K"
    link: Annotated[
        str, typer.Option(help="Rate of each host's link and the aggregator's, as 200mbit.")
    ] = "200mbit"
    round_trip_us: Annotated[
        int, typer.Option(min=0, help="Microseconds to the switch and back, added to the links'.")
    ] = 3500
    values: ValuesOption = 0
    trials: Annotated[int, typer.Option(min=1, help="Stops of each kind, at each age.")] = 5


BENCH = Bench(
    "stopped",
    StoppedOptions,
    (
        *(Column("age ms", lambda row: row["slot_age_us"] / 1000), Column("stopped", "who")),
        *(ms("before ms", "before_s", 1), ms("held ms", "held_s", 1), ms("later ms", "later_s", 1)),
        *(ms("longest ms", "longest_s", 1), ms("cost ms", "cost_s", 1)),
        *(Column("taken", "taken_packets"), ms("until ms", "taken_until_s", 1)),
        Column("#wrong", "wrong"),
    ),
    spare=("cost ms", "longest ms"),
    notes=(
        "two jobs of mode shared sum without a pause and may claim the same slots; SIGSTOP stops"
        " one worker of the second job, or all; times are of the first job's sums, medians: before"
        " the stop, those that began within the slots' age after it, and those after that; longest:"
        " after the stop; cost: how much longer those within the age took than as many before",
        "taken: the neighbour's packets that found a slot taken after the stop, and went up alone;"
        " until: when the last one did, to about 10 ms; both the most of all trials. All sums of"
        " both jobs are checked, also of the stopped one, which goes on afterwards",
    ),
)


@BENCH.command
def stopped(asked: StoppedOptions) -> Found:
    """A job that claims slots and is stopped costs its neighbour its slots for their age."""
    if not 2 <= asked.workers <= MAX_WORKERS // 2:
        raise InvalidInputError(f"--workers {asked.workers}: want 2 to {MAX_WORKERS // 2}")
    check_shared_slots(asked.slots, 2)
    ages_us = parse.numbers("--slot-age-us", asked.slot_age_us, 1000, bench.MAX_AGE_US)
    size_bytes = parse.one_size("--size", asked.size)
    rate_bit_s = parse.rate_bit_s("--link", asked.link)
    check_link(asked.link)
    values = values_for(asked.values, asked.link)
    case = bench.StoppedCase(asked.workers, size_bytes // VALUE_BYTES, asked.slots, asked.trials)
    plan = StarShape(
        workers=2 * asked.workers,
        link=asked.link,
        rate_bit_s=rate_bit_s,
        aggregator_bit_s=rate_bit_s,
        values=values,
        slots=asked.slots,
        round_trip_us=asked.round_trip_us,
    )
    with steps("stopped", len(ages_us) * asked.trials * len(WHO)) as bar:
        found = bench.measure(plan, case, ages_us, bar.say, bar.done)
    return Found(
        title=f"two jobs of {asked.workers} workers share {asked.slots} slots, links {asked.link},"
        f" round trip {asked.round_trip_us} us and more, sums of {parse.size_text(size_bytes)}",
        settings={
            **{"slot_ages_us": ages_us, "size_bytes": size_bytes, "values": values},
            **asked.named("workers", "slots", "link", "round_trip_us", "trials"),
        },
        rows=rows_of(found),
        ratios=bench.ratios(found),
    )
