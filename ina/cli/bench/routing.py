"""``ina bench routing``: two jobs over two spines by placement, beside Gloo and the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench import routing as bench
from ina.bench.report import Ratio, rows_of
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.bench.testbeds import check_link
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms
from ina.controller.config.rules import PLACEMENTS
from ina.files import root

TOPOLOGY = root() / "examples" / "topologies" / "two_spines.toml"


@dataclass(frozen=True, kw_only=True)
class RoutingOptions(ComparedOptions):
    """Of ``ina bench routing``."""

    uplink: Annotated[
        str, typer.Option(help="Rates of leaf1's link to spine1, in turns, as 100mbit,10mbit.")
    ] = "100mbit,10mbit"
    link: Annotated[str, typer.Option(help="Rate of all other links.")] = "100mbit"
    placements: Annotated[str, typer.Option(help="Policies, and gloo, separated by commas.")] = (
        "nearest,ina,gloo"
    )
    width: Annotated[int, typer.Option(min=1, max=4096, help="Of the model's layers.")] = 1024
    count: Annotated[
        int, typer.Option("--steps", min=1, max=10_000, help="Of a job in a round.")
    ] = 4
    rounds: Annotated[int, typer.Option(min=1, help="Of all placements.")] = 2


BENCH = Bench(
    "routing",
    RoutingOptions,
    (
        *(Column("uplink"), Column("placement"), Column("ranks", "workers")),
        Column("gradient KB", lambda row: round(row["gradient_bytes"] / 1e3)),
        *(ms("step ms", "step_s", 2), ms("±", ("step_low_s", "step_high_s"), 2)),
        *(ms("limit ms", "limit_s", 2), Column("of limit", "limit_share", 2)),
        Column("#wrong", "wrong"),
    ),
    spare=("gradient KB", "±"),
    notes=(
        "three racks of three hosts below two spines, five soft switches in namespaces, links"
        " shaped each way by token buckets, one uplink of the first rack as the column says; two"
        " jobs of DDP at once, six ranks and three, placements in turns",
        "step: of rank 0, median; ±: between the quartiles. Limit: bytes with headers of both jobs'"
        " gradients on a host's link, and on both links out of a rack; for Gloo's ring 2 (n - 1) /"
        " n times as many. A step also computes, and all ranks and switches share this machine's"
        " cores",
        "wrong: integers summed beside each step that were not the sum, and runs of a job that did"
        " not come to the same parameters by all placements, bit for bit; Gloo rounds otherwise",
    ),
)


@BENCH.command
def routing(asked: RoutingOptions) -> Found:
    """Steps of two jobs over two spines, placed by each policy in turns. Needs root."""
    wanted = parse.names("--placements", asked.placements, (*PLACEMENTS, bench.GLOO))
    link_bit_s = parse.rate_bit_s("--link", asked.link)
    rates = parse.rates_bit_s("--uplink", asked.uplink)
    check_link(asked.link)
    torchrun.require("torch")
    case = bench.RoutingCase(link_bit_s, wanted, asked.rounds, asked.count, asked.width, TOPOLOGY)
    found: list[bench.PlacementRow] = []
    ratios: list[Ratio] = []
    with steps("routing", len(rates) * asked.rounds * len(wanted)) as bar:
        for name, rate_bit_s in rates.items():
            rows = bench.measure(case, name, rate_bit_s, bar.say, bar.done)
            found += rows
            ratios += bench.ratios(rows, name)
    return Found(
        title=f"two jobs over two spines, links {asked.link}",
        settings={
            **{"uplinks": list(rates), "placements": wanted, "steps": asked.count},
            **asked.named("link", "width", "rounds"),
        },
        rows=rows_of(found),
        ratios=ratios,
    )
