"""All-reduce through the switch and with its peers: what the workers measured, as rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ina import units
from ina.bench import limits
from ina.bench.parse import size_text
from ina.bench.plot import Axis, Panel, Point, curves, gain_panel
from ina.bench.report import Ratio
from ina.bench.spread import Spread, spread
from ina.bench.testbed import LOOPBACK, Record, Testbed, records
from ina.protocol.coding import CODINGS
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES

_START_UP_S = 120.0
_WORKER = "ina.bench.torch.allreduce"


@dataclass(frozen=True)
class AllReduceCase:
    """What is the same in every row."""

    dtype: str
    dtype_bytes: int
    op: str
    values: int
    repeats: int
    seconds: float
    transport: str = "auto"
    spoil: int = 0
    """So many checked sums are made wrong on each rank, to see that they are noticed."""
    threads: int = 0
    """Of each worker's transport; 0: by the cores."""
    verify: tuple[str, ...] = ("off",)
    """How ina's sums are verified: a row each."""
    wire: tuple[str, ...] = ("32",)
    """How ina's floats travel: a row each."""
    host_nodes: bool = False
    """With nodes on the hosts and without, a row each; else as the testbed has it."""
    window: str = ""
    """Of ina's workers, as INA_WINDOW has it; empty: as the controller says."""


@dataclass(frozen=True)
class AllReduceRow:
    """One backend, size and number of workers. nccl-tests' columns in seconds, bytes and GB/s."""

    workers: int
    backend: str
    """ina, gloo or mpi."""
    size_bytes: int
    count: int
    type: str
    redop: str
    time_s: float
    """Median of the samples; each is of the slowest rank."""
    time_low_s: float
    """First quartile."""
    time_high_s: float
    samples: int
    algbw_gb_s: float
    """size / time."""
    busbw_gb_s: float
    """algbw * 2 (n - 1) / n, as nccl-tests count for an all-reduce, whatever the algorithm."""
    wrong: int
    """Values that were wrong in a checked operation, of all ranks."""
    limit_s: float | None
    """The least that this backend's bytes take on the links, or on this machine's loopback."""
    limit_share: float | None
    """limit_s / time_s."""
    gain: float | None
    """Gloo's time / this one's."""
    cpu_s_per_gb: float | None
    """CPU seconds of a worker (all its threads) for 1e9 bytes of tensor; median."""
    retransmissions: int | None
    """Of all ranks, in all samples of this size; ina only. The next three: what became of them."""
    losses: int | None
    spurious_resends: int | None
    probes: int | None
    transport: str
    """udp, shm; tcp (Gloo); mpi: what Open MPI chooses."""
    multicast: bool
    """Whether results came to several workers at once."""
    verify: str
    """How sums are verified: off, accidents, keyed; empty: not ina's."""
    unverified: float | None
    """The time of ina without verification, measured in turns / this one's; ina only."""
    wire: str
    """How floats travel: 32, 16, 8; empty: not ina's."""
    whole: float | None
    """The time of ina with wire 32, measured in turns / this one's; ina only."""
    host_node: bool | None
    """Whether what a host's ranks send is added up there; None: not ina's, or nobody asked."""
    nodeless: float | None
    """The time of ina without hosts' nodes, measured in turns / this one's, which has them."""


@dataclass(frozen=True)
class MemoryMeasurement:
    """Peak memory of a worker above the tensor itself, in one all_reduce."""

    workers: int
    backend: str
    size_bytes: int
    above_bytes: int
    wrong: int


@dataclass(frozen=True)
class ReduceOrder:
    """What the ranks are asked for."""

    case: AllReduceCase
    sizes: Sequence[int]
    """Of the tensor, bytes."""
    measures_limit: bool = False
    """What UDP reaches here, around each size."""
    measures_memory: bool = False
    """Peak memory above the tensor instead."""


def measure(
    testbed: Testbed,
    sizes: Sequence[int],
    case: AllReduceCase,
    on_rows: Callable[[list[AllReduceRow]], None],
) -> None:
    """All sizes at one testbed, in one run of the workers; ``on_rows`` gets each size's."""

    def on_record(record: Record) -> None:
        on_rows(_measurements(testbed, record, case))

    order = ReduceOrder(case, sizes, measures_limit=testbed.rate_bit_s is None)
    ways = len(case.verify) * len(case.wire) * (2 if case.host_nodes else 1)
    _run(testbed, order, len(sizes) * ((5 + ways) * case.seconds + 30), on_record)


def measure_memory(
    testbed: Testbed,
    sizes: Sequence[int],
    case: AllReduceCase,
    on_rows: Callable[[list[MemoryMeasurement]], None],
) -> None:
    """Peak memory of one operation of each size, with both backends."""

    def on_record(record: Record) -> None:
        on_rows(
            [
                MemoryMeasurement(
                    workers=testbed.workers,
                    backend=name,
                    size_bytes=record["size_bytes"],
                    above_bytes=record[f"{name}_above_bytes"],
                    wrong=record[f"wrong_{name}"],
                )
                for name in ("ina", "gloo")
            ]
        )

    order = ReduceOrder(case, sizes, measures_memory=True)
    _run(testbed, order, 300.0 * len(sizes), on_record)


def _run(
    testbed: Testbed, order: ReduceOrder, budget_s: float, on_record: Callable[[Record], None]
) -> None:
    case = order.case
    # In a star the controller, which has the switch, was told of the values.
    if testbed.link == LOOPBACK:
        environ = {"INA_VALUES": str(case.values), "INA_TRANSPORT": case.transport}
    else:
        # Namespaces share the memory of one kernel: none of it, but where ranks share a host.
        environ = {"INA_TRANSPORT": "auto" if case.host_nodes else "udp"}
    environ |= {"INA_THREADS": str(case.threads), "INA_WINDOW": case.window}
    records(
        testbed,
        _WORKER,
        order,
        count=len(order.sizes),
        timeout_s=_START_UP_S + budget_s,
        environ=environ,
        on_record=on_record,
    )


def _measurements(
    testbed: Testbed, record: dict[str, Any], case: AllReduceCase
) -> list[AllReduceRow]:
    times = {
        (item["name"], item["verify"], item["host_node"], item["wire"]): spread(
            item["times_s"]
        ).median
        for item in record["backends"]
    }
    return [_measurement(testbed, record, item, times, case) for item in record["backends"]]


def _measurement(
    testbed: Testbed,
    record: dict[str, Any],
    item: dict[str, Any],
    times_s: dict[tuple[str, str, bool | None, str], float],
    case: AllReduceCase,
) -> AllReduceRow:
    elems = record["elems"]
    is_ina, wire = item["name"] == "ina", item["wire"]
    has_node = item["host_node"] is True
    multicast = is_ina and item["shared_packets"] > 0
    limit_s = _limit_s(testbed, item, elems, record["limit_bytes_per_s"], multicast, case)
    cpu = spread(item["cpu_s"]).median if item["cpu_s"] else None
    return make_measurement(
        workers=testbed.workers,
        backend=item["name"],
        count=elems,
        times=spread(item["times_s"]),
        wrong=item["wrong"],
        limit_s=limit_s,
        gloo_s=times_s.get(("gloo", "", None, "")),
        cpu_s=cpu,
        resends=item if is_ina else {},
        transport=item["transport"] if is_ina else "tcp",
        multicast=multicast,
        verify=item["verify"],
        unverified_s=times_s.get(("ina", "off", item["host_node"], wire)) if is_ina else None,
        wire=wire,
        whole_s=times_s.get(("ina", item["verify"], item["host_node"], "32")) if is_ina else None,
        host_node=item["host_node"],
        nodeless_s=times_s.get(("ina", item["verify"], False, wire)) if has_node else None,
        case=case,
    )


def make_measurement(
    *,
    workers: int,
    backend: str,
    count: int,
    times: Spread,
    wrong: int,
    limit_s: float | None,
    gloo_s: float | None,
    cpu_s: float | None,
    transport: str,
    case: AllReduceCase,
    resends: Mapping[str, int] = MappingProxyType({}),
    multicast: bool = False,
    verify: str = "",
    unverified_s: float | None = None,
    wire: str = "",
    whole_s: float | None = None,
    host_node: bool | None = None,
    nodeless_s: float | None = None,
) -> AllReduceRow:
    """What follows from the measured numbers. ``resends``: by their fields; empty: not counted."""
    size = count * case.dtype_bytes
    algbw = size / times.median / 1e9
    return AllReduceRow(
        workers=workers,
        backend=backend,
        size_bytes=size,
        count=count,
        type=case.dtype,
        redop=case.op,
        time_s=times.median,
        time_low_s=times.low,
        time_high_s=times.high,
        samples=times.count,
        algbw_gb_s=algbw,
        busbw_gb_s=algbw * 2 * (workers - 1) / workers,
        wrong=wrong,
        limit_s=limit_s,
        limit_share=limit_s / times.median if limit_s is not None else None,
        gain=gloo_s / times.median if gloo_s is not None else None,
        cpu_s_per_gb=cpu_s / size * 1e9 if cpu_s is not None else None,
        retransmissions=resends.get("retransmissions"),
        losses=resends.get("losses"),
        spurious_resends=resends.get("spurious_resends"),
        probes=resends.get("probes"),
        transport=transport,
        multicast=multicast,
        verify=verify,
        unverified=unverified_s / times.median if unverified_s is not None else None,
        wire=wire,
        whole=whole_s / times.median if whole_s is not None else None,
        host_node=host_node,
        nodeless=nodeless_s / times.median if nodeless_s is not None else None,
    )


def _limit_s(
    testbed: Testbed,
    item: dict[str, Any],
    elems: int,
    udp_bytes_per_s: float,
    multicast: bool,
    case: AllReduceCase,
) -> float | None:
    is_ina, has_node = item["name"] == "ina", item["host_node"] is True
    per_word = 32 // CODINGS[item["wire"]].bits if is_ina and case.dtype != "int32" else 1
    words = math.ceil(elems / per_word)
    if testbed.rate_bit_s is None:
        if not is_ina or not (has_node or item["transport"] == "udp") or not udp_bytes_per_s:
            return None
        # Headers here are those that the measured rate counts: UDP payload.
        payload = words * VALUE_BYTES + math.ceil(words / case.values) * HEADER_BYTES
        senders = testbed.hosts if has_node else testbed.workers
        crossings = limits.crossings(senders, multicast, testbed.racks)
        return crossings * payload / udp_bytes_per_s
    if is_ina:
        senders = 1 if has_node else testbed.workers // testbed.hosts  # on each link
        wire_bytes = senders * limits.ina_wire_bytes(words, case.values)
        return limits.link_s(wire_bytes, testbed.rate_bit_s)
    ring = limits.ring_wire_bytes(elems * case.dtype_bytes, testbed.workers)
    return limits.link_s(ring, testbed.rate_bit_s)


def ratios(rows: Sequence[AllReduceRow], link: str) -> list[Ratio]:
    """Gloo's time over ina's, the limit's over ina's, Gloo's CPU time over ina's.

    Where sums are verified, the time without that over ina's, too.
    """
    found = []
    by_case = {(row.workers, row.size_bytes): row for row in rows if row.backend == "gloo"}
    for row in rows:
        if row.backend != "ina":
            continue
        name = f"{link} {row.transport} n={row.workers} {size_text(row.size_bytes)}"
        if row.wire not in ("", "32"):
            name += f" wire {row.wire}"
            if row.whole is not None:
                found.append(Ratio(f"{name} ina/32", row.whole))
        if row.verify not in ("", "off"):
            name += f" {row.verify}"
            if row.unverified is not None:
                found.append(Ratio(f"{name} ina/off", row.unverified))
        if row.host_node is not None:
            name += " with nodes" if row.host_node else " without nodes"
        if row.nodeless is not None:
            found.append(Ratio(f"{name} ina/without", row.nodeless))
        if row.gain is not None:
            found.append(Ratio(f"{name} ina/gloo", row.gain))
        if row.limit_share is not None:
            found.append(Ratio(f"{name} ina/limit", row.limit_share))
        gloo = by_case.get((row.workers, row.size_bytes))
        if gloo is not None and gloo.cpu_s_per_gb and row.cpu_s_per_gb:
            found.append(Ratio(f"{name} cpu ina/gloo", gloo.cpu_s_per_gb / row.cpu_s_per_gb))
    return found


def _group(row: dict[str, Any]) -> str:
    return f"{row['workers']} workers"


def _backend(row: dict[str, Any]) -> str:
    return label(row["backend"], row.get("verify", ""), wire=row.get("wire", ""))


def label(backend: str, verify: str, host_node: bool | None = None, wire: str = "") -> str:
    """What a row is called where one is beside another."""
    named = f"{backend} {verify}" if verify not in ("", "off") else backend
    named = f"{named} wire {wire}" if wire not in ("", "32") else named
    return named if host_node is None else f"{named} {'with' if host_node else 'without'} nodes"


_SIZE = Axis("tensor", "bytes", log=True)


def memory_panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Memory above the tensor against its size."""
    found = curves(rows, _group, _backend, lambda row: Point(row["size_bytes"], row["above_bytes"]))
    return [Panel("Peak memory above the tensor", _SIZE, Axis("", "bytes"), found)]


def panels(rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Time and bandwidth against size, gain against the number of workers."""
    by_case = {(row["workers"], row["size_bytes"]): row for row in rows if row["backend"] == "gloo"}

    def time(row: dict[str, Any]) -> Point:
        return Point(row["size_bytes"], row["time_s"], row["time_low_s"], row["time_high_s"])

    def rate(row: dict[str, Any]) -> Point:
        gb = row["size_bytes"] / 1e9
        slow, fast = gb / row["time_high_s"], gb / row["time_low_s"]
        return Point(row["size_bytes"], row["algbw_gb_s"], slow, fast)

    def gain(row: dict[str, Any]) -> Point:
        gloo = by_case.get((row["workers"], row["size_bytes"]))
        if gloo is None:  # its rows have no peer to compare a quartile with
            return Point(row["workers"], row["gain"])
        low = gloo["time_low_s"] / row["time_high_s"]
        return Point(row["workers"], row["gain"], low, gloo["time_high_s"] / row["time_low_s"])

    times = curves(rows, _group, _backend, time)
    # The same, however sums are verified: of one of those rows.
    limited = {
        (row["workers"], row["size_bytes"]): row
        for row in rows
        if row["backend"] == "ina" and row["limit_s"]
    }
    times += curves(
        list(limited.values()),
        _group,
        lambda row: "limit",
        lambda row: Point(row["size_bytes"], row["limit_s"]),
    )
    gains = curves(
        [row for row in rows if row["backend"] == "ina" and row["gain"]],
        lambda row: units.size_text(row["size_bytes"]),
        lambda row: label("", row.get("verify", ""), wire=row.get("wire", "")).strip(),
        gain,
    )
    rates = curves(rows, _group, _backend, rate)
    return [
        Panel("Time", _SIZE, Axis("", "s", log=True), times),
        Panel("Algorithm bandwidth", _SIZE, Axis("GB/s", "GB/s"), rates),
        gain_panel(gains),
    ]
