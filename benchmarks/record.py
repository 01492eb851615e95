"""Measures what docs/benchmarks.md shows, and writes it there: ``make bench-record``, as root.

Each benchmark's report goes to ``benchmarks/results``, of which :mod:`benchmarks.pages` makes the
tables. It takes twenty minutes. Exit codes: 0, 2 a benchmark failed.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from benchmarks import pages
from benchmarks.measured import RESULTS
from ina.errors import InvalidInputError

TIMEOUT_S = 1800.0

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


def measure(name: str) -> None:
    """Run one benchmark and save its report. Raises InvalidInputError, TimeoutExpired."""
    command = [sys.executable, "-m", "ina", "bench", *BENCHES[name]]
    command += [f"--save={RESULTS / name}.json"]
    print(" ".join(command[2:]), file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        said: list[Any] = done.stderr.strip().splitlines() or [done.returncode]
        raise InvalidInputError(f"{name}: {said[-1]}")


def main() -> int:
    """Measure, and write the pages."""
    try:
        RESULTS.mkdir(exist_ok=True)
        for name in BENCHES:
            measure(name)
        pages.write()
    except (InvalidInputError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
