"""``ina bench blocks``: sums of arrays that are mostly zero, by density, beside dense ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import blocks as bench
from ina.bench import parse
from ina.bench.report import rows_of
from ina.bench.testbed import LOOPBACK
from ina.cli.bench.cells import TIME
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import (
    DtypeOption,
    SizeSecondsOption,
    SpoilOption,
    UnicastOption,
    ValuesOption,
    check_samples,
    dtype_bytes,
)
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.bench.testbeds import check_link, open_testbed, values_for
from ina.cli.common.columns import Column, ms, percent
from ina.errors import InvalidInputError

_MOST_PERCENT = 100.0


@dataclass(frozen=True, kw_only=True)
class BlocksOptions(ComparedOptions):
    """Of ``ina bench blocks``."""

    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "4,8"
    size: Annotated[str, typer.Option(help="Of all arrays of a sum, as 64M.")] = "64M"
    arrays: Annotated[
        int, typer.Option(min=1, help="That are given together, as a training's buckets are.")
    ] = 8
    dtype: DtypeOption = "float32"
    densities: Annotated[
        str, typer.Option(help="Percent of a rank's blocks that are not zero, comma separated.")
    ] = "0.1,1,5,20,50,100"
    block: Annotated[int, typer.Option(min=0, help="Values of a block. 0: those of a packet.")] = 0
    link: Annotated[
        str, typer.Option(help="Of a star of namespaces, which needs root: unshaped, or a rate.")
    ] = "1gbit"
    values: ValuesOption = 0
    unicast: UnicastOption = False
    repeats: Annotated[int, typer.Option(help="Samples of each, at most.")] = 9
    seconds: SizeSecondsOption = 10.0
    spoil: SpoilOption = 0


BENCH = Bench(
    "blocks",
    BlocksOptions,
    (
        *(Column("n", "workers"), Column("blocks"), percent("density", "density", 1)),
        *(percent("union", "union", 1), ms("time ms", "time_s", 2)),
        ms("±", ("time_low_s", "time_high_s"), 2),
        *(ms("limit ms", "limit_s", 2), percent("% of limit", "limit_share", 1)),
        *(ms("dense ms", "dense_s", 2), Column("dense/this", "gain", 2)),
        *(ms("memory ms", "memory_s", 2), Column("#wrong", "wrong")),
    ),
    spare=("±", "memory ms", "dense ms"),
    notes=(
        TIME,
        "density: of rank 0's blocks; union: of the blocks, those that some rank has; limit: of"
        " their values and of the counters, with all headers, on a worker's link; memory: to find,"
        " gather and spread a rank's blocks, without the network; dense: the same arrays, in turns",
    ),
)


@BENCH.command
def blocks(asked: BlocksOptions) -> Found:
    """Sum arrays of which most blocks are zero, by density, beside the same as dense arrays.

    With the same blocks on all ranks, which is the best case, and with independent ones.
    """
    counts = parse.workers("--workers", asked.workers)
    order = _order(asked)
    check_link(asked.link)
    rows: list[bench.BlocksRow] = []
    with steps("blocks", len(counts) * len(order.densities) * len(order.choices)) as bar:

        def on_row(row: bench.BlocksRow) -> None:
            rows.append(row)
            bar.done(f"{row.workers} workers, {row.density:.1%} {row.blocks}")

        for n in counts:
            with open_testbed(
                n, asked.link, values=order.values, multicast=not asked.unicast, progress=bar.say
            ) as where:
                bench.measure(where, order, on_row)
    return Found(
        title=f"sparse sums of {asked.size}, {asked.link}, {asked.dtype},"
        f" blocks of {order.block_elems} values",
        settings={
            "workers": counts,
            "densities": list(order.densities),
            "values": order.values,
            "block_elems": order.block_elems,
            **asked.named("size", "arrays", "dtype", "link", "unicast"),
        },
        rows=rows_of(rows),
        ratios=bench.ratios(rows),
    )


def _order(asked: BlocksOptions) -> bench.BlocksOrder:
    """Raises InvalidInputError."""
    size, *more = parse.sizes("--size", asked.size)
    if more:
        raise InvalidInputError(f"--size {asked.size}: want one")
    if asked.link == LOOPBACK:
        raise InvalidInputError("--link loopback: want unshaped, or a rate as 1gbit")
    check_samples(asked.repeats, asked.seconds)
    elems = size // dtype_bytes(asked.dtype)
    if asked.arrays > elems:
        raise InvalidInputError(f"--arrays {asked.arrays}: there are {elems} values")
    values = values_for(asked.values, asked.link)
    return bench.BlocksOrder(
        elems=elems,
        block_elems=asked.block or values,
        values=values,
        densities=_densities(asked.densities),
        choices=(bench.SAME, bench.INDEPENDENT),
        **asked.named("dtype", "arrays", "repeats", "seconds", "spoil"),
    )


def _densities(listed: str) -> tuple[float, ...]:
    found = []
    for one in listed.split(","):
        try:
            percent_ = float(one)
        except ValueError:
            percent_ = -1.0
        if not 0 <= percent_ <= _MOST_PERCENT:
            raise InvalidInputError(f"--densities {listed}: want 0 to 100, comma separated")
        found.append(percent_ / _MOST_PERCENT)
    return tuple(found)
