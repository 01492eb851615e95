"""Writes how ``make test-long`` ended into docs/tests.md, where the last such run stands."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.record import ROOT, Run, last_run

PAGE = ROOT / "docs" / "tests.md"
BEGIN, END = "<!-- last long run -->", "<!-- end of the last long run -->"


def table(run: Run, commit: str, day: str, machine: str) -> Iterator[str]:
    """The rows, Markdown."""
    minutes, seconds = divmod(round(run.took_s), 60)
    yield "| | |"
    yield "| --- | --- |"
    yield f"| day, commit | {day}, {commit} |"
    yield f"| machine | {machine} |"
    yield f"| took | {minutes} min {seconds} s, {run.workers} processes |"
    for outcome in ("passed", "failed", "skipped"):
        yield f"| {outcome} | {run.outcomes.get(outcome, 0)} |"
    for why, count in sorted(run.not_run.items(), key=lambda reason: -reason[1]):
        yield f"| not run | {count}: {why} |"


def written(page: str, rows: Iterator[str]) -> str:
    """The page with these rows in the place of the last ones."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"no {BEGIN}"
    assert end, f"no {END}"
    return "\n".join([before + begin, "", *rows, "", end + after])


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {names[0] if names else platform.machine()}, {platform.system()}"


def main() -> int:
    """The exit status."""
    run = last_run()
    if run is None or not run.is_long:
        print("no long run that came to its end", file=sys.stderr)
        return 2
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    PAGE.write_text(written(PAGE.read_text(), table(run, commit or "unknown", day, _machine())))
    print(f"{PAGE.relative_to(ROOT)}: how this run ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
