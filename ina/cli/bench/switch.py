"""``ina bench switch``: packets through the UDP port of a soft switch, BMv2 beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import Report, rows_of
from ina.cli.bench.options import UnicastOption, check_seconds
from ina.cli.bench.output import (
    ALL_BUILDS,
    ComparedOptions,
    number,
    steps,
)
from ina.cli.common.options import command
from ina.p4.builds import packet_bytes
from ina.protocol.spec import MAX_WORKERS

COLUMNS = (
    *("switch", "values", "n", "k packets/s in", "spread", "CPU ns/packet in", "of a core"),
    *("GB/s in", "#wrong"),
)


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


@command(SwitchOptions)
def switch(asked: SwitchOptions) -> None:
    """Packets a second through a soft switch's UDP port, and its CPU time a packet, sums checked.

    Workers are processes on this machine; what they need of its cores the switch does not get.
    """
    from ina.bench.switch import SwitchRow, measure, measure_bmv2, ratios, why_not_bmv2
    from ina.emulate.nodes import LINK_MTU_BYTES

    builds = parse.numbers("--values", asked.values)
    counts = parse.numbers("--workers", asked.workers, 1, MAX_WORKERS)
    check_seconds(asked.seconds)
    outputs = asked.outputs("switch")
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
    notes = ["CPU: of the thread that moves packets, in and out, kernel included"]
    if not asked.unicast:
        notes.append("results go to all workers at once (IP multicast); --unicast: to each")
    notes.append(
        f"BMv2 was not measured: {missing}"
        if missing
        else "bmv2: simple_switch_grpc on veth pairs in namespaces, one sample after a first round"
    )
    if not missing and on_bmv2 != builds:
        notes.append(f"builds whose packets do not fit into its links' MTU, {LINK_MTU_BYTES}: not")
    report = Report(
        bench=outputs.bench,
        settings={
            **{"values": builds, "workers": counts},
            **asked.named("seconds", "repeats", "unicast"),
        },
        rows=rows_of(rows),
        ratios=ratios(rows),
        wrong=sum(row.wrong for row in rows),
        notes=notes,
    )
    cells = [
        (
            *(row.switch, row.values, row.workers, number(row.packets_per_second / 1e3, 1)),
            f"{row.low_packets_per_second / 1e3:.0f}-{row.high_packets_per_second / 1e3:.0f}",
            *(number(row.cpu_ns_per_packet, 0), number(row.cores_busy)),
            *(number(row.gradient_gb_per_second), row.wrong),
        )
        for row in rows
    ]
    outputs.finish(report, COLUMNS, cells, title="packets through ports")
