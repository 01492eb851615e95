"""Collectives by ina and by Gloo, and bare UDP datagrams: what the workers measured, as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ina.bench import limits
from ina.bench.collective_kinds import ROOT, LinkBytes, SizedCollective, case_of, link_bytes
from ina.bench.parse import size_text
from ina.bench.plot import Axis, Panel, Point, curves, gain_panel
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.testbed import Record, Testbed, own_switch, records

_WORKER = "ina.bench.torch.collectives"
_START_UP_S = 180.0
_CASE_S = 60.0
INA, GLOO, ECHO, RING = "ina", "gloo", "udp echo", "udp ring"


@dataclass(frozen=True)
class CollectivesOrder:
    """What the ranks are asked for: each collective on each size."""

    names: list[str]
    sizes: list[int]
    """In bytes, as nccl-tests have them; a barrier has none."""
    dtype: str
    elem_bytes: int
    values: int
    """Words a packet."""
    repeats: int
    seconds: float
    """Upper bound of a case."""
    spoil: int
    """So many checked values of ina's are made wrong on each rank."""
    net: str = ""
    """Namespace of the other ends of the ranks' links, if these count what they carry."""

    def cases(self, workers: int) -> list[SizedCollective]:
        """In order, each once: sizes of less than an element are one."""
        wanted = (
            case_of(name, size, self.elem_bytes, workers)
            for name in self.names
            for size in self.sizes
        )
        return list(dict.fromkeys(wanted))


@dataclass(frozen=True)
class CollectivesRow:
    """One collective, size and backend. nccl-tests' columns in seconds, bytes and GB/s."""

    workers: int
    collective: str
    backend: str
    """ina; gloo; udp echo: a datagram as large as ina's only packet, between two ranks; udp ring:
    one from each rank to the next."""
    size_bytes: int
    count: int
    type: str
    redop: str
    root: int
    """-1: it has none."""
    time_s: float
    """Median of the samples; each is of the slowest rank."""
    time_low_s: float
    """First quartile."""
    time_high_s: float
    samples: int
    algbw_gb_s: float | None
    """size / time; None: of a barrier, and of bare datagrams."""
    busbw_gb_s: float | None
    wrong: int
    """Values that were wrong in a checked operation, on all ranks; of a barrier ranks that left
    before all had come."""
    limit_s: float | None
    """The least that the bytes of this way take on the slowest link; None: it has no rate."""
    limit_share: float | None
    """limit_s / time_s."""
    gain: float | None
    """Gloo's time / this one's."""
    echo: float | None
    """This time / that of the echo, where it is one packet."""
    sent_bytes: float | None
    """By a rank for one operation, with headers; mean of the ranks. None: links count nothing."""
    received_bytes: float | None
    formula: float | None
    """Counted bytes over what follows from the values a packet, of the rank and direction that is
    farthest off."""
    over: str
    """udp, shm; gloo: where ina's went there; tcp: Gloo's; udp: bare datagrams'."""


def measure(
    testbed: Testbed,
    order: CollectivesOrder,
    *,
    multicast: bool,
    on_rows: Callable[[list[CollectivesRow]], None],
) -> None:
    """All cases at one testbed, in one run of its workers; ``on_rows`` gets each case's.

    Raises InaError.
    """
    cases = iter(order.cases(testbed.workers))

    def on_record(record: Record) -> None:
        on_rows(_rows(testbed, next(cases), record, order, multicast=multicast))

    count = len(order.cases(testbed.workers))
    # Of one host's ranks some share memory.
    transport = {"INA_TRANSPORT": "auto" if testbed.hosts == 1 else "udp"}
    records(
        testbed,
        _WORKER,
        order,
        count=count,
        timeout_s=_START_UP_S + count * (4 * order.seconds + _CASE_S),
        environ={**own_switch(testbed, values=order.values), **transport},
        on_record=on_record,
    )


def _rows(
    testbed: Testbed,
    case: SizedCollective,
    record: Record,
    order: CollectivesOrder,
    *,
    multicast: bool,
) -> list[CollectivesRow]:
    times = {name: spread(found["times_s"]).median for name, found in record.items()}
    wanted = [
        link_bytes(case, order.values, rank, multicast=multicast) for rank in range(testbed.workers)
    ]
    return [
        _row(testbed, case, name, found, times, wanted, order.dtype)
        for name, found in record.items()
    ]


def _row(
    testbed: Testbed,
    case: SizedCollective,
    backend: str,
    found: Mapping[str, Any],
    times_s: Mapping[str, float],
    wanted: Sequence[LinkBytes],
    dtype: str,
) -> CollectivesRow:
    times = spread(found["times_s"])
    moved = [LinkBytes(*pair) for pair in found["moved"]]
    is_ina, is_bare = backend == INA, backend in (ECHO, RING)
    has_size = case.size_bytes > 0 and not is_bare
    limit_s = None
    if testbed.rate_bit_s is not None and not is_bare and (is_ina or moved):
        # Of Gloo, which has an algorithm of its own for each collective, what was counted.
        larger = max(it.larger for it in (wanted if is_ina else moved))
        limit_s = limits.link_s(larger, testbed.rate_bit_s)
    algbw = case.size_bytes / times.median / 1e9 if has_size else None
    echo_s = times_s.get(ECHO)
    return CollectivesRow(
        workers=testbed.workers,
        collective=case.name,
        backend=backend,
        size_bytes=case.size_bytes,
        count=case.count,
        type=dtype if case.count else "",
        redop="sum" if case.kind.is_summed else "none",
        root=ROOT if case.kind.has_root else -1,
        time_s=times.median,
        time_low_s=times.low,
        time_high_s=times.high,
        samples=times.count,
        algbw_gb_s=algbw,
        busbw_gb_s=None if algbw is None else algbw * case.kind.factor(testbed.workers),
        wrong=found["wrong"],
        limit_s=limit_s,
        limit_share=None if limit_s is None else limit_s / times.median,
        gain=None if is_bare else times_s[GLOO] / times.median,
        echo=None if echo_s is None or backend == ECHO else times.median / echo_s,
        sent_bytes=_mean([it.sent for it in moved]),
        received_bytes=_mean([it.received for it in moved]),
        formula=_off(moved, wanted) if is_ina and moved else None,
        over=found["over"],
    )


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _off(moved: Sequence[LinkBytes], wanted: Sequence[LinkBytes]) -> float:
    shares = [
        share
        for it, of in zip(moved, wanted, strict=True)
        for share in (it.sent / of.sent, it.received / of.received)
    ]
    return max(shares, key=lambda share: abs(share - 1))


def ratios(rows: Sequence[CollectivesRow], link: str) -> list[Ratio]:
    """Gloo's time over ina's, the limit's over ina's, the echo's over ina's."""
    found = []
    for row in rows:
        if row.backend != INA:
            continue
        size = f" {size_text(row.size_bytes)}" if row.size_bytes else ""
        name = f"{link} {row.collective} n={row.workers}{size}"
        shares = {"ina/gloo": row.gain, "ina/limit": row.limit_share}
        if row.echo is not None:
            shares["ina/echo"] = 1 / row.echo
        found += [Ratio(f"{name} {of}", it) for of, it in shares.items() if it is not None]
    return found


_SIZE = Axis("size", "bytes", log=True)


def panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Of each collective time and bus bandwidth against size; gain by the number of workers."""
    found = []
    sized = [row for row in rows if row["busbw_gb_s"] is not None]
    for name in dict.fromkeys(row["collective"] for row in sized):
        of = [row for row in sized if row["collective"] == name]
        times = curves(of, _group, _backend, _time) + curves(
            [row for row in of if row["backend"] == INA and row["limit_s"]],
            _group,
            lambda row: "limit",
            lambda row: Point(row["size_bytes"], row["limit_s"]),
        )
        rates = curves(
            of, _group, _backend, lambda row: Point(row["size_bytes"], row["busbw_gb_s"])
        )
        found += [
            Panel(f"{name}: time", _SIZE, Axis("", "s", log=True), times),
            Panel(f"{name}: bus bandwidth", _SIZE, Axis("GB/s", "GB/s"), rates),
        ]
    gains = curves(
        [row for row in rows if row["backend"] == INA],
        lambda row: f"{row['collective']} {size_text(row['size_bytes'])}",
        lambda row: "",
        lambda row: Point(row["workers"], row["gain"]),
    )
    return [*found, gain_panel(gains)]


def _group(row: dict[str, Any]) -> str:
    return f"{row['workers']} workers"


def _backend(row: dict[str, Any]) -> str:
    return str(row["backend"])


def _time(row: dict[str, Any]) -> Point:
    return Point(row["size_bytes"], row["time_s"], row["time_low_s"], row["time_high_s"])
