"""``ina bench switch``: packets through the UDP port of a soft switch, BMv2 beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import rows_of
from ina.cli.bench.declare import Bench, Found, Row
from ina.cli.bench.options import UnicastOption, check_seconds
from ina.cli.bench.output import ALL_BUILDS, ComparedOptions, steps
from ina.cli.common.columns import Column
from ina.p4.builds import packet_bytes
from ina.protocol.spec import MAX_WORKERS


@dataclass(frozen=True, kw_only=True)
class SwitchOptions(ComparedOptions):
    """Of ``ina bench switch``."""

    values: Annotated[str, typer.Option(help="Builds to measure, by values a packet.")] = ALL_BUILDS
    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "2,4"
    seconds: Annotated[float, typer.Option(help="Of a sample.")] = 1.0
    repeats: Annotated[int, typer.Option(min=1, help="Samples; the median counts.")] = 5
    unicast: UnicastOption = False
    bmv2: Annotated[
        bool, typer.Option(help="Measure BMv2, too, where it is installed; needs root.")
    ] = True


def _spread(row: Row) -> str:
    low, high = row["low_packets_per_second"], row["high_packets_per_second"]
    return f"{low / 1e3:.0f}-{high / 1e3:.0f}"


BENCH = Bench(
    "switch",
    SwitchOptions,
    (
        *(Column("switch"), Column("values"), Column("n", "workers")),
        Column("k packets/s in", "packets_per_second", 1, 1e-3),
        Column("spread", _spread),
        *(Column("CPU ns/packet in", "cpu_ns_per_packet", 0), Column("of a core", "cores_busy", 2)),
        *(Column("GB/s in", "gradient_gb_per_second", 2), Column("#wrong", "wrong")),
    ),
    notes=("CPU: of the thread that moves packets, in and out, kernel included",),
)


@BENCH.command
def switch(asked: SwitchOptions) -> Found:
    """Packets a second through a soft switch's UDP port, and its CPU time a packet, sums checked.

    Workers are processes on this machine; what they need of its cores the switch does not get.
    """
    from ina.bench.switch import SwitchRow, measure, measure_bmv2, ratios, why_not_bmv2
    from ina.emulate.nodes import LINK_MTU_BYTES

    builds = parse.numbers("--values", asked.values)
    counts = parse.numbers("--workers", asked.workers, 1, MAX_WORKERS)
    check_seconds(asked.seconds)
    missing = why_not_bmv2() if asked.bmv2 else "--no-bmv2"
    rows: list[SwitchRow] = []
    on_bmv2 = [b for b in builds if not missing and packet_bytes(b) <= LINK_MTU_BYTES]
    with steps("switch", (len(builds) + len(on_bmv2)) * len(counts)) as bar:
        for build in builds:
            for n in counts:
                rows.append(
                    measure(build, n, asked.seconds, asked.repeats, multicast=not asked.unicast)
                )
                bar.done(f"{build} values, {n} workers")
                if build in on_bmv2:
                    rows.append(measure_bmv2(build, n, asked.seconds * asked.repeats))
                    bar.done(f"{build} values, {n} workers, BMv2")
    notes = []
    if not asked.unicast:
        notes.append("results go to all workers at once (IP multicast); --unicast: to each")
    notes.append(
        f"BMv2 was not measured: {missing}"
        if missing
        else "bmv2: simple_switch_grpc on veth pairs in namespaces, one sample after a first round"
    )
    if not missing and on_bmv2 != builds:
        notes.append(f"builds whose packets do not fit into its links' MTU, {LINK_MTU_BYTES}: not")
    return Found(
        title="packets through ports",
        settings={
            **{"values": builds, "workers": counts},
            **asked.named("seconds", "repeats", "unicast"),
        },
        rows=rows_of(rows),
        ratios=ratios(rows),
        notes=notes,
    )
