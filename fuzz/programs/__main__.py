"""Random v1model programs: the soft switch's main path, its general path and an interpreter."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from fuzz.programs.campaign import campaign
from fuzz.programs.check import Finding, check
from fuzz.programs.generate import generated
from fuzz.programs.lower import to_json
from fuzz.programs.minimise import minimised
from fuzz.programs.model import Trial
from fuzz.programs.show import show
from ina.errors import InaError


def main() -> int:
    """The exit code: 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.programs", description=__doc__)
    parser.add_argument("--count", type=_positive, default=500, help="programs (default 500)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count(), help="at a time")
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="go on from where it was stopped"
    )
    parser.add_argument("--replay", type=int, metavar="SEED", help="one program: show it, run it")
    parser.add_argument("--whole", action="store_true", help="show what differs as it was made")
    asked = parser.parse_args()
    if asked.replay is not None:
        return replay(asked.replay, asked.whole)
    began_s, done, found = time.monotonic(), 0, 0
    for progress, findings in campaign(asked.first, asked.count, asked.jobs, asked.state):
        done, found = progress.next - progress.first, len(progress.found)
        for finding in findings:
            print(f"seed {finding.trial.seed}, {finding.path}: {finding.what}", flush=True)
        if sys.stderr.isatty() or findings or done % 2000 == 0:
            seconds = time.monotonic() - began_s
            print(f"{done} programs, {found} differ, {seconds:.0f} s", file=sys.stderr, flush=True)
    print(f"{done} programs, {found} differ")
    if found:
        print("python -m fuzz.programs --replay SEED shows the smallest part that does")
    return 1 if found else 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def replay(seed: int, whole: bool) -> int:
    """One program; one that differs is made as small as it can be first, unless ``whole``."""
    trial = generated(seed)
    finding = check(trial)
    if finding is None:
        print(show(trial.program))
        print(f"seed {seed}: all paths do what is right with {len(trial.packets)} packets")
        return 0
    if not whole:
        finding = minimised(finding, lambda size: print(size, file=sys.stderr, flush=True))
    print(report(finding))
    return 1


def report(finding: Finding) -> str:
    """The program as people read it, as BMv2 JSON, and the packets."""
    trial: Trial = finding.trial
    packets = "\n".join(f"port {port}: {data.hex()}" for port, data in trial.packets)
    return (
        f"seed {trial.seed}, {finding.path}: {finding.what}\n\n{show(trial.program)}\n"
        f"{to_json(trial.program)}\n\n{packets}"
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InaError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
