"""``ina bench allreduce``: time through the P4 switch, Gloo beside it, and the machine's limit."""

from __future__ import annotations

import json as json_module
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ina.cli import torchrun
from ina.cli.output import emit
from ina.cli.output import table as plain_table
from ina.errors import InvalidInputError
from ina.host.arrays import VALUE_TYPES
from ina.protocol.spec import HEADER_BYTES, MAX_WORKERS, VALUE_BYTES, VALUES_PER_PACKET_BUILDS

_START_UP_S = 60.0
_DTYPE_BYTES = {str(dtype): dtype.itemsize for dtype in VALUE_TYPES}
_OPS = ("sum", "avg")


@dataclass(frozen=True)
class Row:
    """One size and number of workers. Times in seconds, bandwidths in Gbit/s of tensor."""

    workers: int
    mib: float
    dtype: str
    op: str
    repeats: int
    ina_s: float  # median
    ina_spread_s: float  # between the quartiles
    gloo_s: float
    gloo_spread_s: float
    algorithm_gbit_s: float  # tensor / time
    bus_gbit_s: float  # algorithm bandwidth * 2 (n - 1) / n, as nccl-tests count
    gloo_algorithm_gbit_s: float
    limit_s: float  # 2 n tensors, with headers, at the loopback rate of this run
    limit_share: float  # limit_s / ina_s
    gloo_over_ina: float  # above 1: ina is faster
    retransmissions: int  # of rank 0, in all repetitions
    sums_correct: bool


def allreduce(
    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "2,4,8",
    mib: Annotated[str, typer.Option(help="Tensor sizes in MiB, comma separated.")] = "1,16,64",
    dtype: Annotated[str, typer.Option(help=f"One of {', '.join(_DTYPE_BYTES)}.")] = "float32",
    op: Annotated[str, typer.Option(help="sum or avg.")] = "sum",
    values: Annotated[int, typer.Option(help="Values a packet: 64 or 256.")] = 256,
    repeats: Annotated[int, typer.Option(help="Repetitions of each, at most.")] = 15,
    seconds: Annotated[float, typer.Option(help="Upper bound for a size, in seconds.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """All-reduce tensors through the P4 switch and with Gloo, in turns, on this machine.

    The limit: every worker's tensor crosses loopback once up and once down, 4 bytes a value, at the
    rate that UDP with GSO and GRO reaches in the same run with one sender and one receiver for each
    two cores. Gloo has no avg: it sums and then divides.
    """
    counts, sizes = _integers("--workers", workers), _sizes(mib)
    if dtype not in _DTYPE_BYTES:
        raise InvalidInputError(f"--dtype {dtype}: the network sums {', '.join(_DTYPE_BYTES)}")
    if op not in _OPS:
        raise InvalidInputError(f"--op {op}: the network does {' and '.join(_OPS)}")
    if values not in VALUES_PER_PACKET_BUILDS:
        raise InvalidInputError(f"--values {values}: there are builds for 64 and 256")
    if repeats < 3 or seconds <= 0:
        raise InvalidInputError(f"--repeats {repeats} --seconds {seconds:g}: want >= 3 and > 0")
    torchrun.require(["torch"], "torch")
    case = _Case(dtype, op, values, repeats, seconds)
    rows: list[Row] = []
    with _bars() as bars:
        task = bars.add_task("all-reduce", total=len(counts) * len(sizes))

        def on_row(row: Row) -> None:
            rows.append(row)
            bars.update(task, advance=1, description=_describe(row))
            if not sys.stderr.isatty():
                print(_describe(row), file=sys.stderr, flush=True)

        for n in counts:
            _measure(n, sizes, case, on_row)
    emit({"values": values, "rows": rows}, json, _table(rows, case))
    if not all(row.sums_correct for row in rows):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Case:
    """What is the same in every row."""

    dtype: str
    op: str
    values: int
    repeats: int
    seconds: float


def _measure(n: int, sizes: list[float], case: _Case, on_row: Callable[[Row], None]) -> None:
    """All sizes with ``n`` workers, in one run of torchrun."""

    def on_line(line: str) -> None:
        if line.startswith('{"kind": "size"'):
            on_row(_row(n, json_module.loads(line), case))

    sizes_text = ",".join(map(str, sizes))
    torchrun.run(
        "ina.torch.bench_worker",
        [
            *(f"--mib={sizes_text}", f"--dtype={case.dtype}", f"--op={case.op}"),
            *(f"--repeats={case.repeats}", f"--seconds={case.seconds}"),
        ],
        workers=n,
        environ={"INA_VALUES": str(case.values)},
        timeout_s=_START_UP_S + len(sizes) * (4 * case.seconds + 20),
        on_line=on_line,
    )


def _integers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(item) for item in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option} {text}: want integers, comma separated") from None
    for number in numbers:
        if not 2 <= number <= MAX_WORKERS:
            raise InvalidInputError(
                f"{option} {number}: want 2 to {MAX_WORKERS}, the width of the workers' bitmap"
            )
    return numbers


def _sizes(text: str) -> list[float]:
    try:
        sizes = [float(item) for item in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"--mib {text}: want numbers, comma separated") from None
    if not all(0 < size <= 1024 for size in sizes):
        raise InvalidInputError(f"--mib {text}: want more than 0 and at most 1024")
    return sizes


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )


def _row(n: int, record: dict[str, Any], case: _Case) -> Row:
    tensor_bytes = record["elems"] * _DTYPE_BYTES[case.dtype]
    wire_bytes = record["elems"] * (VALUE_BYTES + HEADER_BYTES / case.values)
    ina_s, gloo_s = statistics.median(record["ina_s"]), statistics.median(record["gloo_s"])
    limit_s = 2 * n * wire_bytes / record["limit_bytes_per_s"]
    gbit = 8e-9 * tensor_bytes
    return Row(
        workers=n,
        mib=record["mib"],
        dtype=case.dtype,
        op=case.op,
        repeats=len(record["ina_s"]),
        ina_s=ina_s,
        ina_spread_s=_spread(record["ina_s"]),
        gloo_s=gloo_s,
        gloo_spread_s=_spread(record["gloo_s"]),
        algorithm_gbit_s=gbit / ina_s,
        bus_gbit_s=gbit / ina_s * 2 * (n - 1) / n,
        gloo_algorithm_gbit_s=gbit / gloo_s,
        limit_s=limit_s,
        limit_share=limit_s / ina_s,
        gloo_over_ina=gloo_s / ina_s,
        retransmissions=record["retransmissions"],
        sums_correct=record["wrong_elems"] == 0,
    )


def _spread(seconds: list[float]) -> float:
    first, _, third = statistics.quantiles(seconds, n=4)
    return third - first


def _describe(row: Row) -> str:
    return (
        f"{row.workers} workers, {row.mib:g} MiB: ina {1e3 * row.ina_s:.2f} ms,"
        f" Gloo {1e3 * row.gloo_s:.2f} ms"
    )


def _table(rows: list[Row], case: _Case) -> Any:
    columns = ["workers", "MiB", "ina ms", "±", "Gloo ms", "±", "Gloo/ina", "Gbit/s", "bus Gbit/s"]
    columns += ["Gloo Gbit/s", "% of limit", "sums"]
    cells = [
        (
            row.workers,
            row.mib,
            *(round(1e3 * s, 2) for s in (row.ina_s, row.ina_spread_s)),
            *(round(1e3 * s, 2) for s in (row.gloo_s, row.gloo_spread_s)),
            round(row.gloo_over_ina, 2),
            round(row.algorithm_gbit_s, 2),
            round(row.bus_gbit_s, 2),
            round(row.gloo_algorithm_gbit_s, 2),
            round(100 * row.limit_share, 1),
            "ok" if row.sums_correct else "WRONG",
        )
        for row in rows
    ]
    title = (
        f"{case.dtype} {case.op}, {case.values} values a packet; median and quartile distance;"
        " limit: loopback UDP with GSO/GRO, same run"
    )
    if case.op == "avg":
        title += "; Gloo: sum, then division"
    return plain_table(columns, cells, title=title)
