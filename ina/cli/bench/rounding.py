"""``ina bench rounding``: how far off sums are where floats travel in fewer bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import rows_of
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.output import SavedOptions, steps
from ina.cli.common.columns import Column

_WORDS = 360


@dataclass(frozen=True, kw_only=True)
class RoundingOptions(SavedOptions):
    """Of ``ina bench rounding``."""

    workers: Annotated[str, typer.Option(help="How many, comma separated.")] = "4,8,32"
    elems: Annotated[int, typer.Option(help="Values of a gradient.")] = 200_000
    seeds: Annotated[int, typer.Option(min=1, help="Gradients that are drawn.")] = 2


BENCH = Bench(
    "rounding",
    RoundingOptions,
    (Column("n", "workers"), Column("way"), Column("relative squared error", "shown")),
    notes=(
        "values: normal times a log-normal that the ranks share; bf16: a chain of additions;"
        " turned: as ina.torch.lowbit_hook does, without feedback",
    ),
)


@BENCH.command
def rounding(asked: RoundingOptions) -> Found:
    """Sum drawn gradients as they travel in 32, 16 and 8 bits, and say how far off that is.

    In memory, by the documented numerics: what the network's sums are, bit for bit.
    """
    from ina.bench.rounding import RoundingRow, measure

    counts = parse.numbers("--workers", asked.workers, 1, 64)
    parse.numbers("--elems", str(asked.elems), 1, 1 << 24)
    rows: list[RoundingRow] = []
    with steps("rounding", len(counts)) as bar:
        for workers in counts:
            rows += measure(workers, asked.elems, _WORDS, asked.seeds)
            bar.done(f"{workers} workers")
    shown = [{**row, "shown": f"{row['error']:.1e}"} for row in rows_of(rows)]
    return Found(
        title=f"sums of {asked.elems} float32, {_WORDS} words a packet",
        settings={"workers": counts, "elems": asked.elems, "seeds": asked.seeds},
        rows=shown,
        wrong=0,
    )
