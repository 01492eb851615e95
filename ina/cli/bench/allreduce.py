"""``ina bench allreduce``: time through the P4 switch, peers beside it, and the physical limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import typer

from ina.bench import allreduce as bench
from ina.bench import mpi, parse
from ina.bench.report import rows_of
from ina.bench.star import BURST_BYTES
from ina.bench.testbed import LOOPBACK, Testbed
from ina.cli.bench.cells import LOST, TIME, columns, measured
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import (
    DtypeOption,
    SizeSecondsOption,
    SizesOption,
    SpoilOption,
    UnicastOption,
    ValuesOption,
    check_samples,
    dtype_bytes,
)
from ina.cli.bench.output import PlottedOptions, steps
from ina.cli.bench.testbeds import (
    LINK_HELP,
    QUEUE_HELP,
    check_link,
    open_testbed,
    queue_bytes_for,
    values_for,
)
from ina.cli.common import torchrun
from ina.cli.common.columns import Column
from ina.cli.common.options import command
from ina.cli.common.window import WindowOption, WindowValuesOption, window_of
from ina.errors import InvalidInputError
from ina.host.threads import check_threads
from ina.protocol.coding import checked_coding
from ina.protocol.verify import checked_verify

_OPS = ("sum", "avg")
_TRANSPORTS = ("auto", "udp", "shm")
_CROSSINGS = "2 n tensors with headers (n + 1 where the switch sends results once)"
"""What ina moves through this machine's UDP."""


@dataclass(frozen=True, kw_only=True)
class AllReduceOptions(PlottedOptions):
    """Of ``ina bench allreduce``."""

    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "2,4,8"
    sizes: SizesOption = "64K,1M,16M,64M"
    dtype: DtypeOption = "float32"
    op: Annotated[str, typer.Option(help="sum or avg.")] = "sum"
    link: Annotated[str, typer.Option(help=LINK_HELP)] = LOOPBACK
    queue: Annotated[str, typer.Option(help=QUEUE_HELP, show_default="1M")] = ""
    transport: Annotated[
        str, typer.Option(help="Of ina: auto, udp, or shm (shared memory of one host).")
    ] = "auto"
    threads: Annotated[
        int, typer.Option(help="Of each of ina's workers: 1, 2, 4, 8; 0: by the cores.")
    ] = 0
    window: WindowOption = ""
    window_option: WindowValuesOption = None
    values: ValuesOption = 0
    verify: Annotated[
        str,
        typer.Option(help="How ina's sums are verified: off, accidents, keyed, in turns."),
    ] = "off"
    wire: Annotated[
        str,
        typer.Option(help="How ina's floats travel: 32, 16, 8 bits a value, in turns."),
    ] = "32"
    unicast: UnicastOption = False
    repeats: Annotated[int, typer.Option(help="Samples of each, at most.")] = 15
    seconds: SizeSecondsOption = 10.0
    memory: Annotated[
        bool,
        typer.Option("--memory", help="Measure one sum's peak memory above the tensor instead."),
    ] = False
    spoil: SpoilOption = 0


BENCH = Bench(
    "allreduce",
    AllReduceOptions,
    columns(
        *("n", "backend", "over", "size", "count", "type", "redop", "time ms", "±", "algbw GB/s"),
        *("busbw GB/s", "#wrong", "lost", "limit ms", "% of limit", "Gloo/this", "off/this"),
        *("32/this", "CPU s/GB"),
    ),
    spare=(
        *("redop", "type", "count", "busbw GB/s", "±", "limit ms", "CPU s/GB", "lost"),
        *("% of limit", "over", "algbw GB/s"),
    ),
    notes=(TIME + LOST + " (--json: the other resends, too)",),
    panels=bench.panels,
)
MEMORY = Bench(
    "allreduce-memory",
    AllReduceOptions,
    (
        *(Column("n", "workers"), Column("backend"), Column("size", "size_bytes")),
        *(Column("above MiB", "above_bytes", 1, 2**-20), Column("#wrong", "wrong")),
    ),
    notes=("above: peak resident memory in one all-reduce, less that before it (VmHWM)",),
    panels=bench.memory_panels,
)
Network = Callable[..., AbstractContextManager[Testbed]]


@command(AllReduceOptions)
def allreduce(asked: AllReduceOptions) -> None:
    """All-reduce tensors through the P4 switch and with its peers, in turns, on this machine.

    Gloo takes turns with ina; Open MPI, where mpirun and mpi4py are installed, runs after them, on
    loopback only. Gloo and MPI have no avg: they sum and then divide.
    """
    (MEMORY if asked.memory else BENCH).run(asked, _measure)


def _measure(asked: AllReduceOptions) -> Found:
    counts, wanted = parse.workers("--workers", asked.workers), parse.sizes("--sizes", asked.sizes)
    values = values_for(asked.values, asked.link)
    congestion = window_of(asked.window, asked.window_option)
    case = replace(_case(asked, values), window="" if congestion is None else congestion.text)
    rate = check_link(asked.link)
    queue_bytes = queue_bytes_for(asked.queue, rate)
    if asked.link != LOOPBACK and asked.transport == "shm":
        raise InvalidInputError(f"--transport shm --link {asked.link}: hosts share no memory")
    if asked.memory:
        _check_memory(asked, case)
    torchrun.require("torch")
    networks = {
        n: partial(
            open_testbed,
            n,
            asked.link,
            values=values,
            queue_bytes=queue_bytes,
            multicast=not asked.unicast,
        )
        for n in counts
    }
    settings = {
        **{"workers": counts, "sizes_bytes": wanted, "values": values},
        **{"verify": list(case.verify), "wire": list(case.wire), "window": case.window},
        **asked.named("dtype", "op", "link", "queue", "transport", "threads", "memory", "unicast"),
    }
    if asked.memory:
        memory = _memory(networks, wanted, case)
        title = f"memory above the tensor, {asked.link}"
        return Found(title=title, settings=settings, rows=rows_of(memory))
    rows = _times(networks, wanted, case, with_mpi=asked.link == LOOPBACK)
    return Found(
        title=f"all-reduce, {asked.link}, {asked.dtype} {asked.op}, {values} values a packet"
        + (f", {asked.threads} threads a worker" if asked.threads else "")
        + (f", window {congestion}" if congestion is not None else ""),
        settings=settings,
        rows=rows_of(rows),
        ratios=bench.ratios(rows, asked.link),
        notes=_notes(asked, rate, any(row.multicast for row in rows), case),
    )


def _times(
    networks: Mapping[int, Network],
    sizes: Sequence[int],
    case: bench.AllReduceCase,
    *,
    with_mpi: bool,
) -> list[bench.AllReduceRow]:
    rows: list[bench.AllReduceRow] = []
    with steps("all-reduce", len(networks) * len(sizes)) as bar:
        for n, network in networks.items():
            for found in measured(bar, f"{n} workers", network, sizes, case):
                rows += found
            if with_mpi and not mpi.why_not(case.dtype):
                bar.say(f"{n} workers, Open MPI")
                rows += mpi.measure(n, sizes, case, rows)
    order = ("ina", "gloo", "mpi")
    # Of ina's rows, which are many where sums are verified in several ways, the order stays.
    return sorted(rows, key=lambda row: (row.workers, row.size_bytes, order.index(row.backend)))


def _memory(
    networks: Mapping[int, Network], sizes: Sequence[int], case: bench.AllReduceCase
) -> list[bench.MemoryMeasurement]:
    rows: list[bench.MemoryMeasurement] = []
    with steps("memory", len(networks) * len(sizes)) as bar:

        def on_rows(found: list[bench.MemoryMeasurement]) -> None:
            rows.extend(found)
            bar.done(f"{found[0].workers} workers, {parse.size_text(found[0].size_bytes)}")

        for network in networks.values():
            with network(progress=bar.say) as where:
                bench.measure_memory(where, sizes, case, on_rows)
    return rows


def _case(asked: AllReduceOptions, values: int) -> bench.AllReduceCase:
    verify = _ways("--verify", asked.verify, checked_verify)
    wire = _ways("--wire", asked.wire, lambda name, value: str(checked_coding(name, value)))
    element_bytes = dtype_bytes(asked.dtype)
    if asked.op not in _OPS:
        raise InvalidInputError(f"--op {asked.op}: the network does {' and '.join(_OPS)}")
    if asked.transport not in _TRANSPORTS:
        raise InvalidInputError(f"--transport {asked.transport}: want {', '.join(_TRANSPORTS)}")
    check_threads("--threads", asked.threads)
    check_samples(asked.repeats, asked.seconds)
    return bench.AllReduceCase(
        dtype_bytes=element_bytes,
        values=values,
        verify=verify,
        wire=wire,
        **asked.named("dtype", "op", "repeats", "seconds", "transport", "spoil", "threads"),
    )


def _check_memory(asked: AllReduceOptions, case: bench.AllReduceCase) -> None:
    if asked.op != "sum":
        raise InvalidInputError(f"--memory --op {asked.op}: it measures a sum")
    if asked.baseline is not None:
        raise InvalidInputError("--memory --baseline: it has no ratios to compare")
    for name, ways in (("verify", case.verify), ("wire", case.wire)):
        if len(ways) > 1:
            raise InvalidInputError(f"--memory --{name} {','.join(ways)}: want one")


def _ways(option: str, listed: str, checked: Callable[[str, str], str]) -> tuple[str, ...]:
    ways = tuple(checked(option, way.strip()) for way in listed.split(","))
    if len(set(ways)) < len(ways):
        raise InvalidInputError(f"{option} {listed}: each of them once")
    return ways


def _notes(
    asked: AllReduceOptions, rate: float | None, multicast: bool, case: bench.AllReduceCase
) -> list[str]:
    link, dtype, op = asked.link, asked.dtype, asked.op
    notes = []
    if link == LOOPBACK:
        notes.append(
            f"limit: {_CROSSINGS}, at the rate of UDP with GSO and GRO in this run;"
            " none is given for shared memory; CPU: mean of the ranks other than 0, which runs the"
            " switch"
        )
        if why := mpi.why_not(dtype):
            notes.append(f"Open MPI was not measured: {why}")
    elif rate is None:
        notes.append(
            "star of namespaces without shaping; ina: UDP to a soft switch on the bridge's address;"
            f" Gloo: TCP through the bridge; limit: {_CROSSINGS}, at the rate of UDP with GSO and"
            " GRO from host to host in this run"
        )
    else:
        notes.append(
            f"star of namespaces, each link {link} each way by token buckets; ina: UDP to a soft"
            " switch on the bridge's address; Gloo: TCP through the same links and the kernel's"
            " bridge; limit: bytes with Ethernet, IP and UDP or TCP headers on a worker's link, for"
            f" ina once, for Gloo's ring 2 (n - 1) / n times; a link that was idle lets"
            f" {BURST_BYTES >> 10} KiB pass at once"
        )
    if multicast:
        notes.append(
            "mc: the switch sends a result once, to all workers behind its port (IP multicast);"
            " --unicast: to each"
        )
    if case.wire != ("32",):
        notes.append(
            f"ina's floats travel in {', '.join(case.wire)} bits, each in a job of its own, in"
            " turns; 32/this: the time in 32 / this one's"
        )
    if case.verify != ("off",):
        notes.append(
            f"ina's sums are verified: {', '.join(case.verify)}, each in a job of its own, in"
            " turns; off/this: the time without / this one's"
        )
    if op == "avg":
        notes.append("Gloo and MPI: sum, then division")
    return notes
