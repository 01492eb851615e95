"""``ina bench racks``: all-reduce over racks and a spine, beside Gloo and the links' limit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from ina.bench import allreduce as bench
from ina.bench import parse
from ina.bench import racks as network
from ina.bench.report import Ratio, rows_of
from ina.cli.bench.cells import LOST, TIME, columns, measured
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import LinkedOptions
from ina.cli.bench.output import steps
from ina.cli.bench.testbeds import UNSHAPED, check_link, values_for
from ina.cli.common import torchrun
from ina.errors import InvalidInputError

_MAX_WORKERS = 200
_UNSHAPED = (
    "unshaped: the same without token buckets, as fast as this machine; limit: each worker's tensor"
    " and two for each rack up or down, and the results, at the rate of UDP with GSO and GRO from"
    " host to host in this run"
)


@dataclass(frozen=True, kw_only=True)
class RacksOptions(LinkedOptions):
    """Of ``ina bench racks``."""

    workers: Annotated[int, typer.Option(help="How many, in all racks.")] = 8
    count: Annotated[int, typer.Option("--racks", help="How many racks.")] = 2
    link: Annotated[str, typer.Option(help="Rate of each host's link, as 1gbit.")] = "1gbit"
    uplink: Annotated[
        str, typer.Option(help="Rates of a rack's link, in turns, as 1gbit,250mbit.")
    ] = "1gbit,250mbit"


def _check(asked: RacksOptions) -> None:
    if not 2 <= asked.workers <= _MAX_WORKERS:
        raise InvalidInputError(f"--workers {asked.workers}: want 2 to {_MAX_WORKERS}")
    if not 2 <= asked.count <= min(network.MAX_RACKS, asked.workers):
        most = min(network.MAX_RACKS, asked.workers)
        raise InvalidInputError(
            f"--racks {asked.count}: want 2 to {most} for {asked.workers} workers"
        )
    asked.check()


BENCH = Bench(
    "racks",
    RacksOptions,
    columns(
        *("uplinks", "backend", "over", "size", "time ms", "±", "algbw GB/s", "#wrong", "lost"),
        *("limit ms", "% of limit", "Gloo/this", "CPU s/GB"),
    ),
    spare=("over", "algbw GB/s", "CPU s/GB", "±", "lost", "limit ms"),
    notes=(
        TIME + LOST,
        "each host in a namespace behind a link to its rack's bridge, an uplink a rack, all shaped"
        " each way by token buckets; ina: UDP to a soft switch in each rack, and from there to one"
        " in the spine; Gloo: TCP through the same links, bridged and routed by the kernel",
        "limit: bytes with headers on the slowest link, of a host or of a rack: for ina once, for"
        " Gloo's ring, which enters and leaves each rack once, 2 (n - 1) / n times. All switches"
        " and hosts share this machine's cores",
    ),
)


@BENCH.command
def racks(asked: RacksOptions) -> Found:
    """All-reduce over racks below a spine whose switches all sum, in turns with Gloo's ring."""
    _check(asked)
    wanted, rate = parse.sizes("--sizes", asked.sizes), parse.rate_bit_s("--link", asked.link)
    rates = parse.rates_bit_s("--uplink", asked.uplink)
    values = values_for(asked.values, asked.link)
    check_link(asked.link)
    torchrun.require("torch")
    case = asked.case(values, transport="udp")
    networks: list[tuple[str, float | None, float | None]] = [
        (it, rate, uplink_rate) for it, uplink_rate in rates.items()
    ]
    if asked.unshaped:
        networks.append((UNSHAPED, None, None))
    rows: list[dict[str, Any]] = []
    ratios: list[Ratio] = []
    with steps("racks", len(networks) * len(wanted)) as bar:
        for name, link_rate, uplink_rate in networks:
            links = UNSHAPED if link_rate is None else f"{asked.link}, uplinks {name}"
            net = partial(
                network.racks,
                asked.workers,
                asked.count,
                links,
                link_rate,
                uplink_rate,
                values=values,
                multicast=not asked.unicast,
            )
            for found in measured(bar, links, net, wanted, case):
                rows.extend({"racks": asked.count, "uplink": name, **row} for row in rows_of(found))
                ratios.extend(bench.ratios(found, f"{asked.count} racks {links}"))
    return Found(
        title=f"{asked.workers} workers in {asked.count} racks, links {asked.link},"
        f" {asked.dtype} sum, {values} values a packet",
        settings={
            **{"racks": asked.count, "sizes_bytes": wanted, "uplinks": list(rates)},
            **{"values": values, **asked.named("workers", "dtype", "link", "unshaped", "unicast")},
        },
        rows=rows,
        ratios=ratios,
        notes=[_UNSHAPED] if asked.unshaped else [],
    )
