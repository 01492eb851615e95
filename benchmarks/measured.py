"""What the reports of ``benchmarks/results`` say, as lines of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ina.bench import report
from ina.bench.report import Report
from ina.errors import InvalidInputError
from ina.units import size_text

RESULTS = Path(__file__).resolve().parent / "results"
MS = 1e3
SOFT = "soft-udp"
SHORT = re.compile(
    r"64 MiB|DDP|soft switch, UDP, 8|P4 in memory, 8 workers, 256 values, one|float32, from DRAM"
    r"|, 100 jobs"
)
"""Lines that stand on the page itself."""

Line = tuple[str, str, str, str, str]
TITLES: Line = ("what", "median", "quartiles", "of the limit", "against the peer")


def spread(low: float, high: float, scale: float, unit: str) -> str:
    """Quartiles, or whatever the benchmark takes for the spread."""
    return f"{low * scale:.3g}–{high * scale:.3g} {unit}"


def of_all_reduce(where: str) -> Callable[[Report], Iterator[Line]]:
    """``where``: in words, what the workers are connected by."""

    def lines(found: Report) -> Iterator[Line]:
        peers = {
            (row["workers"], row["size_bytes"]): row["time_s"]
            for row in found.rows
            if row["backend"] == "gloo"
        }
        for row in found.rows:
            if row["backend"] != "ina":
                continue
            peer = peers[row["workers"], row["size_bytes"]] / row["time_s"]
            limit = f"{row['limit_s'] / row['time_s']:.1%}" if row["limit_s"] else ""
            what = f"{where}, {row['workers']} workers, {size_text(row['size_bytes'])}"
            time = f"{row['time_s'] * MS:.3g} ms"
            bounds = spread(row["time_low_s"], row["time_high_s"], MS, "ms")
            yield what, time, bounds, limit, f"{peer:.2f} × Gloo"

    return lines


def of_ddp(found: Report) -> Iterator[Line]:
    """Steps of DDP."""
    by_backend = {row["backend"]: row for row in found.rows}
    row, peer = by_backend["ina"], by_backend["gloo"]
    limit = f"{row['limit_s'] / row['step_s']:.1%}" if row["limit_s"] else ""
    yield (
        f"DDP step, {row['model']}'s gradients, star of 1 Gbit/s, {row['workers']} workers",
        f"{row['step_s']:.3g} s",
        spread(row["step_low_s"], row["step_high_s"], 1, "s"),
        limit,
        f"{peer['step_s'] / row['step_s']:.2f} × Gloo",
    )


def of_switch(found: Report) -> Iterator[Line]:
    """The soft switch's UDP port; BMv2's where it was there."""
    bmv2 = {row["workers"]: row for row in found.rows if row["switch"] != SOFT}
    for row in found.rows:
        if row["switch"] != SOFT:
            continue
        peer = bmv2.get(row["workers"])
        ratio = row["packets_per_second"] / peer["packets_per_second"] if peer else 0.0
        yield (
            f"soft switch, UDP, {row['workers']} workers, {row['values']} values: packets in",
            f"{row['packets_per_second'] / 1e6:.3g} M/s, {row['cpu_ns_per_packet']:.0f} ns of CPU",
            spread(row["low_packets_per_second"], row["high_packets_per_second"], 1e-6, "M/s"),
            "",
            f"{ratio:.0f} × BMv2" if peer else "",
        )


def of_pipeline(found: Report) -> Iterator[Line]:
    """The compiled program, packets in memory."""
    for row in found.rows:
        slowest, fastest = row["slowest_packets_per_second"], row["fastest_packets_per_second"]
        copies = "one copy for all" if row["copies"] == 1 else "a copy for each"
        yield (
            f"P4 in memory, {row['workers']} workers, {row['values']} values, {copies}",
            f"{row['packets_per_second'] / 1e6:.3g} M packets/s",
            spread(slowest, fastest, 1e-6, "M/s"),
            "",
            f"{row['of_numpy']:.2f} × NumPy's add and copy",
        )


def of_quantize(found: Report) -> Iterator[Line]:
    """The host's conversions."""
    for row in found.rows:
        if row["place"] != "DRAM" or row["what"] == "scan":
            continue
        yield (
            f"{row['what']} {row['type']}, from DRAM",
            f"{row['gb_per_second']:.3g} GB/s",
            spread(row["low_gb_per_second"], row["high_gb_per_second"], 1, "GB/s"),
            "",
            f"{row['of_memcpy']:.2f} × memcpy",
        )


def of_controller(found: Report) -> Iterator[Line]:
    """Admissions."""
    for row in found.rows:
        yield (
            f"admission of {row['workers']} workers, {row['jobs']} jobs on the switch",
            f"{row['p50_s'] * MS:.3g} ms",
            f"99 %: {row['p99_s'] * MS:.3g} ms",
            "",
            "",
        )


LINES: dict[str, Callable[[Report], Iterator[Line]]] = {
    "star": of_all_reduce("star of 1 Gbit/s"),
    "host": of_all_reduce("one host, shared memory"),
    "ddp": of_ddp,
    "switch": of_switch,
    "pipeline": of_pipeline,
    "quantize": of_quantize,
    "controller": of_controller,
}


def reports() -> dict[str, Report]:
    """By their files' names. Raises InvalidInputError: one is missing, or has wrong sums."""
    found = {name: report.load(RESULTS / f"{name}.json") for name in LINES}
    for name, one in found.items():
        if one.wrong:
            raise InvalidInputError(f"{name}: {one.wrong} wrong values: no result")
    return found


def head(of: Mapping[str, Report]) -> str:
    """One sentence: when and where."""
    machine, first = of["star"].machine, min(it.machine.date for it in of.values())
    return (
        f"One run, {first[:10]}, ina {of['star'].ina}: {machine.cores} cores of"
        f" {machine.cpu}, Linux {machine.kernel}."
    )


def lines(of: Mapping[str, Report]) -> list[Line]:
    """Below :data:`TITLES`."""
    return [line for name, one in of.items() for line in LINES[name](one)]


def short(found: Sequence[Line]) -> list[Line]:
    """Those of the page itself."""
    return [line for line in found if SHORT.search(line[0])]
