"""``tests/durations.json``: the seconds that each file of the tests may take, and who passes them.

``make durations`` writes the last run of ``make test`` there, of an idle machine of two cores; CI
holds each run against it. Machines differ and are disturbed, so nothing is compared in seconds of
two machines: what all files do alike is the machine (the median of their ratios), and a file has
grown when it takes half as much again as that, and GRACE_S of the record's machine besides. Files
that seem to have grown run once more, alone, and have grown if they do so again.

That all of them grow together shows in the record alone, which may not say more than TOTAL_S.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.record import last_run

RECORD = Path(__file__).parent / "durations.json"
TOTAL_S = 1290.0
"""Of the record: three processes for seven minutes and ten seconds."""
MOST = 1.5
GRACE_S = 4.0
_LONG_ENOUGH_S = 0.5
"""Files below are too short to tell how fast the machine is."""


def speed(record: Mapping[str, float], seconds: Mapping[str, float]) -> float:
    """How many seconds here are one of the record's machine."""
    ratios = [
        seconds[name] / recorded
        for name, recorded in record.items()
        if name in seconds and recorded >= _LONG_ENOUGH_S
    ]
    return statistics.median(ratios) if ratios else 1.0


def grown(
    record: Mapping[str, float], seconds: Mapping[str, float], ratio: float
) -> dict[str, str]:
    """The files that passed their budget by half, and what to say of each."""
    found = {}
    for name, taken in everywhere(seconds).items():
        budget = record.get(name, 0.0)
        if taken > ratio * (MOST * budget + GRACE_S):
            said = f"{taken / ratio:.1f} s of the record's machine, "
            found[name] = said + (f"its budget is {budget:.1f} s" if budget else "it has no budget")
    return found


def everywhere(seconds: Mapping[str, float]) -> dict[str, float]:
    """Without ``bmv2_tests``, which run where somebody has installed Mininet."""
    return {it: taken for it, taken in seconds.items() if not it.startswith("bmv2_tests/")}


def read() -> dict[str, float]:
    """The record."""
    record: dict[str, float] = json.loads(RECORD.read_text())
    return record


def write(seconds: Mapping[str, float]) -> str:
    """Makes the seconds the record; returns what to say of it."""
    kept = everywhere(seconds)
    RECORD.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    return f"{RECORD.name}: {len(kept)} files, {sum(kept.values()):.0f} s"


def check() -> int:
    """Holds the last run against the record; the exit status of CI's step."""
    run = last_run()
    if run is None or run.is_long:
        print("durations: no run of make test to hold against the record")
        return 1
    record = read()
    ratio = speed(record, run.seconds)
    print(f"durations: a second of the record takes {ratio:.2f} s here")
    suspects = grown(record, run.seconds, ratio)
    if not suspects:
        return 0
    print(f"again, alone: {', '.join(suspects)}", flush=True)
    # In this process's cache, so that what failed in the full run is still known after.
    again = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    again += ["--durations=0", "--durations-min=0", *suspects]
    ready = os.environ | {"INA_FORKS_READY": "1"}  # their server's start is nobody's seconds
    ran = subprocess.run(again, text=True, env=ready, stdout=subprocess.PIPE)
    alone = seconds_of(ran.stdout)
    left = grown(record, {name: alone.get(name, 0.0) for name in suspects}, ratio)
    for name, why in left.items():
        print(f"{name} takes {why}: make it quicker, or say why in a change of {RECORD.name}")
    return 1 if left else 0


def seconds_of(report: str) -> dict[str, float]:
    """Of each file, from the lines of ``--durations=0``: "0.12s call     tests/a.py::test_b"."""
    seconds: dict[str, float] = {}
    for line in report.splitlines():
        taken, _, rest = line.strip().partition("s ")
        phase, _, name = rest.partition(" ")
        if phase in ("setup", "call", "teardown") and "::" in name:
            file = name.strip().partition("::")[0]
            seconds[file] = seconds.get(file, 0.0) + float(taken)
    return seconds


def main() -> int:
    """``python -m tests.durations write`` or ``check``."""
    if sys.argv[1:] == ["check"]:
        return check()
    run = last_run()
    if run is None or run.is_long or run.outcomes.get("failed"):
        print("no whole run of make test without a failure to write down", file=sys.stderr)
        return 2
    print(write(run.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
