"""``ina bench quantize``: tensors to packets and back, beside memcpy of the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import rows_of
from ina.cli.bench.declare import Bench, Found, Row
from ina.cli.bench.output import ComparedOptions, steps
from ina.cli.common.columns import Column
from ina.host.arrays import VALUE_TYPES
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET

_ALL = ",".join(map(str, VALUE_TYPES))


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions(ComparedOptions):
    """Of ``ina bench quantize``."""

    dtype: Annotated[str, typer.Option(help="Which, comma separated.")] = _ALL
    values: Annotated[int, typer.Option(help="Values of a block, that is, of a packet.")] = (
        DEFAULT_VALUES_PER_PACKET
    )
    repeats: Annotated[int, typer.Option(min=1, help="Samples; the median counts.")] = 9


def _spread(row: Row) -> str:
    return f"{row['low_gb_per_second']:.1f}-{row['high_gb_per_second']:.1f}"


BENCH = Bench(
    "quantize",
    QuantizeOptions,
    (
        *(Column("what"), Column("type"), Column("from", "place")),
        Column("GB/s", "gb_per_second", 1),
        Column("spread", _spread),
        *(Column("memcpy GB/s", "memcpy_gb_per_second", 1), Column("of memcpy", "of_memcpy", 2)),
        *(Column("values/ns", "values_per_ns", 1), Column("kernels"), Column("#wrong", "wrong")),
    ),
    notes=("GB/s: bytes read and written; cache: 128 KiB of packets, DRAM: 64 MiB",),
)


@BENCH.command
def quantize(asked: QuantizeOptions) -> Found:
    """Quantise and dequantise arrays from cache and from DRAM, in CPU time of one thread.

    GB/s count bytes read and bytes written; memcpy moves as many, in turns with it.
    """
    from ina.bench.quantize import PLACES, ConversionRow, measure, ratios

    parse.numbers("--values", str(asked.values), 1, 1 << 16)
    names = [name.strip() for name in asked.dtype.split(",")]
    rows: list[ConversionRow] = []
    with steps("quantize", len(names) * len(PLACES)) as bar:
        for name in names:
            for place in PLACES:
                rows += measure(name, place, asked.values, asked.repeats)
                bar.done(f"{name} from {place}")
    return Found(
        title="conversions, one thread",
        settings={"dtypes": names, "values": asked.values, "repeats": asked.repeats},
        rows=rows_of(rows),
        ratios=ratios(rows),
    )
