"""``ina bench sharing``: jobs on a switch whose slots are enough for one, in four ways."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ina.bench import parse
from ina.bench import sharing as bench
from ina.bench.emulated_star import emulated_star
from ina.bench.report import Ratio, rows_of
from ina.bench.shared_star import MAX_WORKERS, StarShape, shared_star
from ina.bench.star import StarNetwork
from ina.bench.switch import why_not_bmv2
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import (
    SharedSlotsOption,
    SpoilOption,
    ValuesOption,
    check_shared_slots,
)
from ina.cli.bench.output import PlottedOptions, steps
from ina.cli.bench.testbeds import check_link, values_for
from ina.cli.common.columns import Column, percent
from ina.errors import InvalidInputError, MissingToolError
from ina.protocol.spec import VALUE_BYTES

_ROUND_TRIP_US = 3500
"""With it 128 slots hold what a job has in flight on a link of 200 Mbit/s."""


@dataclass(frozen=True, kw_only=True)
class SharingOptions(PlottedOptions):
    """Of ``ina bench sharing``."""

    jobs: Annotated[str, typer.Option(help="How many jobs, in turns, as 2,4.")] = "2,4"
    workers: Annotated[int, typer.Option(help="Of each job.")] = 2
    slots: SharedSlotsOption = 128
    size: Annotated[str, typer.Option(help="Of a step's tensor, as 4M.")] = "4M"
    job_steps: Annotated[int, typer.Option("--steps", min=1, help="Of a job, in a round.")] = 10
    compute: Annotated[
        float, typer.Option(help="Share of a step that is no communication, on a free link.")
    ] = 0.5
    link: Annotated[str, typer.Option(help="Rate of each host's link, as 200mbit.")] = "200mbit"
    aggregator_link: Annotated[
        str, typer.Option(help="Of the aggregator's; default: of --link, for each job.")
    ] = ""
    switch: Annotated[str, typer.Option(help="soft, or bmv2: simple_switch_grpc.")] = "soft"
    round_trip_us: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Microseconds to the switch and back, added to the links'; default: 3500, of BMv2"
            " none.",
        ),
    ] = None
    slot_age_us: Annotated[int, typer.Option(min=0, help="Of the switch; 0: as is usual.")] = 0
    ways: Annotated[str, typer.Option(help="Which, comma separated.")] = ",".join(bench.WAYS)
    values: ValuesOption = 0
    rounds: Annotated[int, typer.Option(min=1, help="Each has all ways, in turn.")] = 5
    seed: Annotated[int, typer.Option(min=0, help="Of what jobs compute.")] = 1
    spoil: SpoilOption = 0


BENCH = Bench(
    "sharing",
    SharingOptions,
    (
        *(Column("jobs"), Column("way"), Column("goodput MB/s", "goodput_gb_s", 1, 1e3)),
        *(Column("±", ("low_gb_s", "high_gb_s"), 1, 1e3), Column("/static", "gain", 2)),
        Column("/static ±", ("gain_low", "gain_high"), 2),
        *(percent("% of limit", "limit_share", 1), Column("job s", "job_s", 2)),
        percent("% on switch", "on_switch", 1),
        *(Column("to aggregator", "aggregator_packets", 2), Column("resent", "resends")),
        *(percent("% busy", "busy", 0), Column("#wrong", "wrong")),
    ),
    spare=("/static ±", "±", "resent", "job s", "to aggregator"),
    notes=(
        "shared: mode shared, a job may claim every slot; static: mode pool, a job has its part of"
        " the slots; queued: mode pool, one job after the other, each with all slots; aggregator:"
        " mode shared, but for one slot all sums are made at the aggregator. In turns, on one"
        " switch",
        "goodput: int32 of all jobs, each tensor once, by the time until the last job is done;"
        " median of the rounds, ± between the quartiles; /static: the round's ratio, median; job:"
        " mean time until a job is done",
        "a job computes (sleeps) between its sums, from half to one and a half of the mean, drawn,"
        " the same in each way; every worker and the aggregator in a namespace behind a link,"
        " shaped each way by token buckets; all of them share this machine's cores (busy: with all"
        " that else runs)",
        "limit: each job alone on its links, and the aggregator's link; on switch: share of packets"
        " that the switch added up; to aggregator: packets for a sum",
    ),
    panels=bench.panels,
)


@BENCH.command
def sharing(asked: SharingOptions) -> Found:
    """Jobs that compute, too, on a switch with slots for one: shared, in parts, one by one."""
    round_trip_us = asked.round_trip_us
    counts = parse.numbers("--jobs", asked.jobs, 1, MAX_WORKERS // 2)
    if not 2 <= asked.workers <= MAX_WORKERS // max(counts):
        most = MAX_WORKERS // max(counts)
        raise InvalidInputError(
            f"--workers {asked.workers}: want 2 to {most} of {max(counts)} jobs"
        )
    check_shared_slots(asked.slots, 2 * max(counts))
    if not 0 <= asked.compute < 1:
        raise InvalidInputError(f"--compute {asked.compute:g}: want a share from 0, below 1")
    chosen = parse.names("--ways", asked.ways, bench.WAYS)
    if len(chosen) <= asked.ways.count(","):
        raise InvalidInputError(f"--ways {asked.ways}: one is there twice")
    size_bytes = parse.one_size("--size", asked.size)
    rate_bit_s = parse.rate_bit_s("--link", asked.link)
    above = asked.aggregator_link and parse.rate_bit_s("--aggregator-link", asked.aggregator_link)
    check_link(asked.link)
    values = values_for(asked.values, asked.link)
    if asked.switch == "bmv2":
        if round_trip_us:
            raise InvalidInputError(f"--round-trip-us {round_trip_us}: BMv2 has no such delay")
        if why := why_not_bmv2():
            raise MissingToolError(f"--switch bmv2: {why}")
    elif asked.switch != "soft":
        raise InvalidInputError(f"--switch {asked.switch}: want soft or bmv2")
    if round_trip_us is None:
        round_trip_us = _ROUND_TRIP_US if asked.switch == "soft" else 0
    rows: list[dict[str, Any]] = []
    ratios: list[Ratio] = []
    with steps("sharing", len(counts) * asked.rounds * len(chosen)) as bar:
        for count in counts:
            case = bench.SharingCase(
                jobs=count,
                workers=asked.workers,
                elems=size_bytes // VALUE_BYTES,
                steps=asked.job_steps,
                rounds=asked.rounds,
                compute=asked.compute,
                slots=asked.slots,
                values=values,
                rate_bit_s=rate_bit_s,
                aggregator_bit_s=above or count * rate_bit_s,
                seed=asked.seed,
                spoil=asked.spoil,
            )
            plan = StarShape(
                workers=count * asked.workers,
                link=asked.link,
                rate_bit_s=rate_bit_s,
                aggregator_bit_s=case.aggregator_bit_s,
                values=values,
                slots=asked.slots,
                round_trip_us=round_trip_us,
                slot_age_us=asked.slot_age_us,
            )

            def on_round(way: str, gb_s: float, count: int = count) -> None:
                bar.done(f"{count} jobs, {way}: {1e3 * gb_s:.1f} MB/s")

            with _star(plan, asked.switch, bar.say) as star:
                found = bench.measure(star, case, chosen, on_round)
            rows.extend(rows_of(found))
            ratios.extend(bench.ratios(found, asked.link))
    return Found(
        title=f"{asked.slots} slots of {asked.switch}, {asked.workers} workers a job on"
        f" {asked.link}, round trip {round_trip_us} us and more, {asked.compute:.0%} computing",
        settings={
            **{"jobs": counts, "size_bytes": size_bytes, "steps": asked.job_steps},
            **{"ways": chosen, "round_trip_us": round_trip_us, "values": values},
            **asked.named("workers", "slots", "compute", "link", "aggregator_link", "switch"),
            **asked.named("slot_age_us", "rounds", "seed"),
        },
        rows=rows,
        ratios=ratios,
    )


def _star(
    plan: StarShape, switch: str, say: Callable[[str], None]
) -> contextlib.AbstractContextManager[StarNetwork]:
    return shared_star(plan, say) if switch == "soft" else emulated_star(plan, "bmv2", say)
