"""``ina bench collectives``: nccl-tests' table by ina and by Gloo, beside links and an echo."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import typer

from ina.bench import collectives as bench
from ina.bench import parse
from ina.bench.collective_kinds import KINDS
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK, Testbed
from ina.cli.bench.cells import TIME
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import (
    DtypeOption,
    SizeSecondsOption,
    SpoilOption,
    ValuesOption,
    check_samples,
    dtype_bytes,
)
from ina.cli.bench.output import PlottedOptions, steps
from ina.cli.bench.testbeds import LINK_HELP, check_link, counted_in, open_testbed, values_for
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms, percent
from ina.errors import InvalidInputError


@dataclass(frozen=True, kw_only=True)
class CollectivesOptions(PlottedOptions):
    """Of ``ina bench collectives``."""

    collectives: Annotated[str, typer.Option(help=f"{', '.join(KINDS)}; comma separated.")] = (
        ",".join(KINDS)
    )
    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "2,4,8"
    sizes: Annotated[
        str, typer.Option(help="As 4,64K,8M; of collectives with parts, of all parts together.")
    ] = "4,64K,8M"
    dtype: DtypeOption = "float32"
    link: Annotated[str, typer.Option(help=LINK_HELP)] = LOOPBACK
    values: ValuesOption = 0
    multicast: Annotated[
        bool,
        typer.Option(
            "--multicast",
            help="The switch sends one copy of each result to all (IP multicast), not one to each.",
        ),
    ] = False
    forwarding: Annotated[
        bool,
        typer.Option(
            "--forwarding",
            help="The star's soft switch forwards all frames, Gloo's and the echo's, too.",
        ),
    ] = False
    repeats: Annotated[int, typer.Option(help="Samples of each, at most.")] = 15
    seconds: SizeSecondsOption = 10.0
    spoil: SpoilOption = 0


BENCH = Bench(
    "collectives",
    CollectivesOptions,
    (
        *(Column("n", "workers"), Column("collective"), Column("backend"), Column("over")),
        *(Column("size", "size_bytes"), Column("count"), Column("type"), Column("redop")),
        *(Column("root"), Column("time us", "time_s", 1, 1e6)),
        Column("±", ("time_low_s", "time_high_s"), 1, 1e6),
        *(Column("algbw GB/s", "algbw_gb_s", 3), Column("busbw GB/s", "busbw_gb_s", 3)),
        *(Column("#wrong", "wrong"), ms("limit ms", "limit_s", 3)),
        *(percent("% of limit", "limit_share", 1), Column("Gloo/this", "gain", 2)),
        Column("this/echo", "echo", 2),
        Column("sent KB", "sent_bytes", 2, 1e-3),
        Column("received KB", "received_bytes", 2, 1e-3),
        Column("bytes/formula", "formula", 3),
    ),
    spare=(
        *("redop", "type", "root", "count", "limit ms", "±", "algbw GB/s", "sent KB"),
        *("received KB", "busbw GB/s", "over", "% of limit", "bytes/formula"),
    ),
    notes=(
        f"{TIME}; size, count, algbw, busbw and #wrong are nccl-tests'",
        "udp echo: a datagram as large as ina's only packet, from rank 0 to the last one and back",
        "udp ring: each rank sends one to the next rank, and waits for that of the rank before",
    ),
    panels=bench.panels,
)
_COUNTED = (
    "sent, received: by a rank's link for one operation, with headers, as its token buckets count"
    " them; bytes/formula: over what follows from the values a packet, of the rank and direction"
    " that is farthest off; limit: of the formula's bytes, of Gloo's counted ones"
)


@BENCH.command
def collectives(asked: CollectivesOptions) -> Found:
    """Do each collective by ina and by Gloo, in turns, and check what comes out on each rank.

    Beside those that are one packet, bare UDP datagrams take turns with them: an echo between two
    ranks, and a ring of all.
    """
    names = parse.names("--collectives", asked.collectives, KINDS)
    counts, wanted = parse.workers("--workers", asked.workers), parse.sizes("--sizes", asked.sizes)
    values = values_for(asked.values, asked.link)
    elem_bytes = dtype_bytes(asked.dtype)
    check_samples(asked.repeats, asked.seconds)
    rate = check_link(asked.link)
    network = _network(asked, rate)
    torchrun.require("torch")
    rows: list[bench.CollectivesRow] = []
    order = bench.CollectivesOrder(
        names=names,
        sizes=wanted,
        elem_bytes=elem_bytes,
        values=values,
        **asked.named("dtype", "repeats", "seconds", "spoil"),
    )
    with steps("collectives", sum(len(order.cases(n)) for n in counts)) as bar:

        def on_rows(found: list[bench.CollectivesRow]) -> None:
            rows.extend(found)
            of = found[0]
            what = f"{of.collective} {parse.size_text(of.size_bytes)}" if of.count else "barrier"
            times = ", ".join(f"{row.backend} {1e6 * row.time_s:.0f} us" for row in found)
            bar.done(f"{of.workers} workers, {what}: {times}")

        for n in counts:
            with network(n, asked.link, values=values, progress=bar.say) as where:
                bar.say(f"{n} workers")
                there = replace(order, net=counted_in(where))
                bench.measure(where, there, multicast=asked.multicast, on_rows=on_rows)
    return Found(
        title=f"collectives, {asked.link}, {asked.dtype}, {values} values a packet",
        settings={
            **{"collectives": names, "workers": counts, "sizes_bytes": wanted, "values": values},
            **asked.named("dtype", "link", "multicast", "forwarding"),
        },
        rows=rows_of(rows),
        ratios=bench.ratios(rows, asked.link),
        notes=[] if rate is None else [_COUNTED],
    )


def _network(
    asked: CollectivesOptions, rate: float | None
) -> Callable[..., AbstractContextManager[Testbed]]:
    if not asked.forwarding:
        return partial(open_testbed, multicast=asked.multicast)
    if asked.link == LOOPBACK or asked.multicast:
        other = "--multicast" if asked.multicast else f"--link {asked.link}"
        raise InvalidInputError(f"--forwarding {other}: want a star, and results to each worker")
    from ina.bench.emulated_star import forwarding_star

    return partial(forwarding_star, rate_bit_s=rate)
