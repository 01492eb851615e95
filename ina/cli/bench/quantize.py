"""``ina bench quantize``: tensors to packets and back, beside memcpy of the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import Report, rows_of
from ina.cli.bench.output import (
    ComparedOptions,
    number,
    steps,
)
from ina.cli.common.options import command
from ina.host.arrays import VALUE_TYPES
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET

_ALL = ",".join(map(str, VALUE_TYPES))
COLUMNS = (
    *("what", "type", "from", "GB/s", "spread", "memcpy GB/s", "of memcpy", "values/ns", "kernels"),
    "#wrong",
)


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions(ComparedOptions):
    """Of ``ina bench quantize``."""

    dtype: Annotated[str, typer.Option(help="Which, comma separated.")] = _ALL
    values: Annotated[int, typer.Option(help="Values of a block, that is, of a packet.")] = (
        DEFAULT_VALUES_PER_PACKET
    )
    repeats: Annotated[int, typer.Option(min=1, help="Samples; the median counts.")] = 9


@command(QuantizeOptions)
def quantize(asked: QuantizeOptions) -> None:
    """Quantise and dequantise arrays from cache and from DRAM, in CPU time of one thread.

    GB/s count bytes read and bytes written; memcpy moves as many, in turns with it.
    """
    from ina.bench.quantize import PLACES, ConversionRow, measure, ratios

    parse.numbers("--values", str(asked.values), 1, 1 << 16)
    outputs = asked.outputs("quantize")
    names = [name.strip() for name in asked.dtype.split(",")]
    rows: list[ConversionRow] = []
    with steps("quantize", len(names) * len(PLACES)) as bar:
        for name in names:
            for place in PLACES:
                rows += measure(name, place, asked.values, asked.repeats)
                bar.done(f"{name} from {place}")
    report = Report(
        bench=outputs.bench,
        settings={"dtypes": names, "values": asked.values, "repeats": asked.repeats},
        rows=rows_of(rows),
        ratios=ratios(rows),
        wrong=sum(row.wrong for row in rows),
        notes=["GB/s: bytes read and written; cache: 128 KiB of packets, DRAM: 64 MiB"],
    )
    cells = [
        (
            *(row.what, row.type, row.place, number(row.gb_per_second, 1)),
            f"{row.low_gb_per_second:.1f}-{row.high_gb_per_second:.1f}",
            *(number(row.memcpy_gb_per_second, 1), number(row.of_memcpy)),
            *(number(row.values_per_ns, 1), row.kernels, row.wrong),
        )
        for row in rows
    ]
    outputs.finish(report, COLUMNS, cells, title="conversions, one thread")
