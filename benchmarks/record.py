"""Measures what docs/benchmarks.md shows, and writes it there: ``make bench-record``, as root.

Each benchmark's report goes to ``benchmarks/results``, the plot beside the page, and the page's
table is made of the reports. It takes twenty minutes. ``--table`` makes it of those that are there;
``--check`` fails when the page has another one.
Exit codes: 0, 1 another table (``--check``), 2 a benchmark failed or a report is missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ina.bench import report
from ina.bench.report import Report
from ina.errors import InvalidInputError
from ina.units import size_text

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PLOT = ROOT / "docs" / "benchmarks.svg"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
TIMEOUT_S = 1800.0
MS = 1e3
SOFT = "soft-udp"

BENCHES: dict[str, tuple[str, ...]] = {
    "star": ("allreduce", "--link=1gbit", "--sizes=64K,1M,16M,64M", "--seconds=3"),
    "host": ("allreduce", "--transport=shm", "--sizes=64K,16M,64M", "--seconds=3"),
    "ddp": ("ddp", "--model=gpt2", "--workers=4", "--link=1gbit"),
    "switch": ("switch", "--values=256", "--workers=2,4,8"),
    "pipeline": ("pipeline",),
    "quantize": ("quantize", "--dtype=float32,bfloat16,int32"),
    "controller": ("controller", "--jobs=1,100"),
}
"""By the name of the file."""

Line = tuple[str, str, str, str, str]
"""What, median, spread, of the limit, against the peer."""


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


def table(reports: dict[str, Report]) -> str:
    """In Markdown. Raises InvalidInputError: a benchmark found wrong sums."""
    for name, found in reports.items():
        if found.wrong:
            raise InvalidInputError(f"{name}: {found.wrong} wrong values: no result")
    machine, first = reports["star"].machine, min(it.machine.date for it in reports.values())
    head = (
        f"One run, {first[:10]}, ina {reports['star'].ina}: {machine.cores} cores of"
        f" {machine.cpu}, Linux {machine.kernel}."
    )
    rows = [line for name, found in reports.items() for line in LINES[name](found)]
    titles = ("what", "median", "quartiles", "of the limit", "against the peer")
    cells = [titles, ("---",) * len(titles), *rows]
    return "\n".join([head, "", *(f"| {' | '.join(row)} |" for row in cells)])


def page_with(text: str, page: str) -> str:
    """``page`` with this table. Raises InvalidInputError: it has no place for one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InvalidInputError(f"{PAGE}: no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def measure(name: str) -> None:
    """Run one benchmark and save its report. Raises InvalidInputError, TimeoutExpired."""
    command = [sys.executable, "-m", "ina", "bench", *BENCHES[name]]
    command += [f"--save={RESULTS / name}.json"]
    if name == "star":
        command += [f"--plot={PLOT}"]
    print(" ".join(command[2:]), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        said: list[Any] = done.stderr.strip().splitlines() or [done.returncode]
        raise InvalidInputError(f"{name}: {said[-1]}")


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--table", action="store_true", help="of the results that are there")
    parser.add_argument("--check", action="store_true", help="fail when the page has another table")
    asked = parser.parse_args()
    try:
        if not (asked.table or asked.check):
            RESULTS.mkdir(exist_ok=True)
            for name in BENCHES:
                measure(name)
        reports = {name: report.load(RESULTS / f"{name}.json") for name in BENCHES}
        before = PAGE.read_text("utf-8")
        after = page_with(table(reports), before)
    except (InvalidInputError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if asked.check:
        if after != before:
            print(f"{PAGE}: not the table of {RESULTS}: run with --table", file=sys.stderr)
        return int(after != before)
    PAGE.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
