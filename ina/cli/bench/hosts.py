"""``ina bench hosts``: what nodes on hosts of several ranks bring, beside Gloo and the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from ina.bench import allreduce as bench
from ina.bench import parse
from ina.bench.report import Ratio, rows_of
from ina.bench.star import star
from ina.cli.bench.cells import TIME, columns, measured
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import LinkedOptions
from ina.cli.bench.output import steps
from ina.cli.bench.testbeds import UNSHAPED, check_link, values_for
from ina.cli.common import torchrun
from ina.errors import InvalidInputError
from ina.protocol.spec import MAX_WORKERS

_UNSHAPED = (
    "unshaped: the same without token buckets, as fast as this machine; limit: what crosses UDP, at"
    " the rate of UDP with GSO and GRO from host to host in this run"
)


@dataclass(frozen=True, kw_only=True)
class HostsOptions(LinkedOptions):
    """Of ``ina bench hosts``."""

    count: Annotated[int, typer.Option("--hosts", help="How many hosts.")] = 2
    ranks: Annotated[int, typer.Option(help="How many on each host.")] = 4
    link: Annotated[
        str, typer.Option(help="Rates of each host's link, in turns, as 1gbit,250mbit.")
    ] = "1gbit"


def _check(asked: HostsOptions) -> None:
    if not 2 <= asked.ranks <= MAX_WORKERS:
        raise InvalidInputError(f"--ranks {asked.ranks}: want 2 to {MAX_WORKERS}")
    most = MAX_WORKERS // asked.ranks  # without nodes one switch sums all of them
    if not 1 <= asked.count <= most:
        raise InvalidInputError(f"--hosts {asked.count}: want 1 to {most} of {asked.ranks} ranks")
    asked.check()


BENCH = Bench(
    "hosts",
    HostsOptions,
    columns(
        *("link", "backend", "over", "size", "time ms", "±", "algbw GB/s", "#wrong", "resent"),
        *("limit ms", "% of limit", "Gloo/this", "without/this", "limit without/this", "CPU s/GB"),
    ),
    spare=("over", "algbw GB/s", "±", "limit ms", "resent", "CPU s/GB", "without/this"),
    notes=(
        TIME + "; resent: packets of all samples and ranks that were sent again (--json: why)",
        "each host a namespace behind one link, shaped each way by token buckets, its ranks"
        " processes in it; ina: a soft switch on the bridge's address, and with nodes one more in"
        " each host, with shared memory to its ranks; Gloo: TCP through the same links, neighbours"
        " on one host",
        "limit: bytes with headers on a host's link: ina's tensor once with nodes, without them"
        " once for each rank; for Gloo's ring, which enters and leaves each host once, 2 (n - 1) /"
        " n times",
        "without/this: the time without nodes, limit without/this: the least that it can be, over"
        " this one's; CPU: seconds of a rank for 1e9 bytes of tensor, host's node included. All"
        " switches and ranks share this machine's cores",
    ),
)


@BENCH.command
def hosts(asked: HostsOptions) -> Found:
    """All-reduce over hosts of several ranks, with nodes on them and without, beside Gloo."""
    _check(asked)
    wanted = parse.sizes("--sizes", asked.sizes)
    rates: dict[str, float | None] = {**parse.rates_bit_s("--link", asked.link)}
    check_link(next(iter(rates)))
    torchrun.require("torch")
    values = values_for(asked.values, asked.link)
    case = asked.case(values, host_nodes=True)
    links = list(rates)
    if asked.unshaped:
        rates[UNSHAPED] = None
    rows: list[dict[str, Any]] = []
    ratios: list[Ratio] = []
    with steps("hosts", len(rates) * len(wanted)) as bar:
        for name, rate in rates.items():
            net = partial(
                star,
                asked.count * asked.ranks,
                name,
                rate,
                values=values,
                ranks=asked.ranks,
                multicast=not asked.unicast,
            )
            for found in measured(bar, name, net, wanted, case):
                gains = _gains_of_limits(found)
                rows.extend(
                    {"hosts": asked.count, "link": name, "limit_gain": gain, **row}
                    for row, gain in zip(rows_of(found), gains, strict=True)
                )
                ratios.extend(_ratios(found, gains, f"{asked.count} hosts {name}"))
    return Found(
        title=f"{asked.count} hosts of {asked.ranks} ranks, links {asked.link}, {asked.dtype} sum,"
        f" {values} values a packet",
        settings={
            **{"hosts": asked.count, "sizes_bytes": wanted, "links": links, "values": values},
            **asked.named("ranks", "dtype", "unshaped", "unicast"),
        },
        rows=rows,
        ratios=ratios,
        notes=[_UNSHAPED] if asked.unshaped else [],
    )


def _gains_of_limits(rows: Sequence[bench.AllReduceRow]) -> list[float | None]:
    """Of each row with nodes: the limit without them / its time."""
    (limit_s,) = (row.limit_s for row in rows if row.host_node is False)
    return [limit_s / row.time_s if row.host_node and limit_s is not None else None for row in rows]


def _ratios(
    rows: Sequence[bench.AllReduceRow], gains: Sequence[float | None], link: str
) -> list[Ratio]:
    size = parse.size_text(rows[0].size_bytes)
    return bench.ratios(rows, link) + [
        Ratio(f"{link} n={row.workers} {size} with nodes/limit without", gain)
        for row, gain in zip(rows, gains, strict=True)
        if gain is not None
    ]
