"""Compares ratios of a few benchmarks with those of baseline.json: ``make bench-guard``.

Only ratios of one run: ina over Gloo, ina over its limit, conversions over memcpy, pipeline over
NumPy. What is below the baseline by more than TOLERANCE is measured again, and must fail twice.
Exit codes: 0 nothing regressed, 1 something did, 2 a benchmark failed. ``--update`` writes the
baseline. What the default window must hold (default_window.py) is measured last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import default_window
from ina.bench.baseline import RatioChange, compare_ratios
from ina.bench.report import Ratio

BASELINE = Path(__file__).parent / "baseline.json"
TOLERANCE = 0.4
"""Machines differ, and so do two runs on a busy one: this finds what became twice as slow."""
TIMEOUT_S = 900.0
BENCHES: tuple[tuple[str, ...], ...] = (
    ("pipeline", "--repeats=5"),
    ("quantize", "--dtype=float32,float16,bfloat16,int32", "--repeats=5"),
    ("allreduce", "--workers=2,4", "--sizes=64K,16M", "--transport=udp", "--repeats=9"),
    ("allreduce", "--workers=2,4", "--sizes=16M", "--transport=shm", "--repeats=9"),
)
LEFT_OUT = ("scan ", " cpu ")
"""Ratios that say little of a whole: parts of a kernel, and CPU times of short runs."""


class BenchFailedError(Exception):
    """A benchmark did not end well; the message is its last line."""


def measure(bench: Sequence[str]) -> list[Ratio]:
    """The ratios of one benchmark, with its name before each. Raises BenchFailedError."""
    command = [sys.executable, "-m", "ina", "bench", *bench, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise BenchFailedError(f"{' '.join(bench)}: {said[-1] if said else done.returncode}")
    return ratios_of(json.loads(done.stdout))


def ratios_of(document: dict[str, Any]) -> list[Ratio]:
    """Those of a report that count here."""
    return [
        Ratio(f"{document['bench']}: {ratio['name']}", ratio["value"])
        for ratio in document["ratios"]
        if not any(part in ratio["name"] for part in LEFT_OUT)
    ]


def read_baseline(path: Path) -> list[Ratio]:
    """The ratios of a baseline. Raises OSError, ValueError."""
    document = json.loads(path.read_text())
    return [Ratio(name, value) for name, value in document["ratios"].items()]


def write_baseline(path: Path, found: list[Ratio]) -> None:
    """One ratio a line, for diffs to read."""
    ratios = {ratio.name: round(ratio.value, 3) for ratio in found}
    path.write_text(json.dumps({"tolerance": TOLERANCE, "ratios": ratios}, indent=2) + "\n")


def check(bench: tuple[str, ...], baseline: list[Ratio]) -> list[RatioChange]:
    """One benchmark against the baseline; what regressed is measured a second time."""
    first = compare_ratios(baseline, measure(bench), TOLERANCE)
    if not any(change.regressed for change in first):
        return first
    print(f"{bench[0]}: below the baseline, measuring again", file=sys.stderr, flush=True)
    second = compare_ratios(baseline, measure(bench), TOLERANCE)
    return [max(pair, key=lambda change: change.now) for pair in zip(first, second, strict=True)]


def main() -> int:
    """Measure, compare, print a line a ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--update", action="store_true", help="write the baseline instead")
    update = parser.parse_args().update
    try:
        if update:
            found = [ratio for bench in BENCHES for ratio in measure(bench)]
            write_baseline(BASELINE, found)
            print(f"{BASELINE}: {len(found)} ratios")
            return 0
        baseline = read_baseline(BASELINE)
        changes = []
        for bench in BENCHES:
            print(f"ina bench {' '.join(bench)}", file=sys.stderr, flush=True)
            changes += check(bench, baseline)
        print("the default window", file=sys.stderr, flush=True)
        broken = list(default_window.broken(measure))
    except (BenchFailedError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for change in changes:
        flag = "  REGRESSED" if change.regressed else ""
        print(f"{change.now:8.3f}  baseline {change.before:8.3f}  {change.name}{flag}")
    regressed = [change for change in changes if change.regressed]
    print(f"{len(changes)} ratios, {len(regressed)} below the baseline by {TOLERANCE:.0%} or more")
    missing = {ratio.name for ratio in baseline} - {change.name for change in changes}
    for name in sorted(missing):
        print(f"not measured any more: {name} (run with --update)")
    for line in broken:
        print(f"the default window: {line}")
    return 1 if regressed or missing or broken else 0


if __name__ == "__main__":
    sys.exit(main())
