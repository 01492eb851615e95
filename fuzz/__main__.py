"""``make fuzz-parsers``: each door for a while, several at a time, and what was found."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.progress import Progress, TaskID, TextColumn, TimeElapsedColumn

from fuzz.build import build
from fuzz.registry import DOORS, Door, enter_of
from fuzz.target import OUT, Outcome, fuzz, stop
from ina.errors import InaError


def main() -> int:
    """The exit code: 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="make fuzz-parsers", description=__doc__)
    parser.add_argument("doors", nargs="*", metavar="DOOR", help=f"of {', '.join(DOORS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each door (default 60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="doors at a time")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="enter one door with this")
    asked = parser.parse_args()
    unknown = [name for name in asked.doors if name not in DOORS]
    if unknown:
        parser.error(f"no door is called {unknown[0]!r}; there are {', '.join(DOORS)}")
    doors = [DOORS[name] for name in asked.doors] or list(DOORS.values())
    if asked.replay:
        return _replay(parser, doors, asked.replay)
    try:
        if any(door.is_native for door in doors):
            print("building libFuzzer's program (first time: a minute or two)", flush=True)
            build()
    except InaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return _fuzz_all(doors, asked.seconds, asked.jobs)


def _replay(parser: argparse.ArgumentParser, doors: list[Door], path: Path) -> int:
    if len(doors) != 1:
        parser.error("--replay wants one door")
    enter_of(doors[0])(path.read_bytes())
    print(f"{path}: {doors[0].name} keeps its promises")
    return 0


def _fuzz_all(doors: list[Door], seconds: int, jobs: int) -> int:
    columns = [
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[at]}"),
    ]
    outcomes = []
    print(f"{'door':<16}{'seconds':>8}{'executions':>12}{'edges':>8}{'findings':>10}", flush=True)
    with Progress(*columns, transient=True) as progress, ThreadPoolExecutor(jobs) as threads:
        runs = [threads.submit(_one, door, seconds, progress) for door in doors]
        try:
            for run in as_completed(runs):
                outcome = run.result()
                outcomes.append(outcome)
                progress.console.print(_line(outcome), highlight=False, soft_wrap=True)
        except KeyboardInterrupt:
            threads.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
    found = sum(len(outcome.findings) for outcome in outcomes)
    executions = sum(outcome.executions for outcome in outcomes)
    print(f"{len(outcomes)} doors, {executions} executions, {found} findings")
    if found:
        print(f"kept in {OUT}: make fuzz-parsers ARGS='--replay FILE DOOR' enters a door again")
    return 1 if found or any(outcome.failure for outcome in outcomes) else 0


def _one(door: Door, seconds: int, progress: Progress) -> Outcome:
    task: TaskID = progress.add_task(door.name, total=None, at="")
    began_s = time.monotonic()

    def tell(so_far: Outcome) -> None:
        progress.update(task, at=f"{so_far.executions} executions, {so_far.coverage} edges")

    outcome = fuzz(door, seconds, tell)
    outcome.seconds = time.monotonic() - began_s
    progress.remove_task(task)
    return outcome


def _line(outcome: Outcome) -> str:
    line = (
        f"{outcome.door.name:<16}{outcome.seconds:>8.0f}{outcome.executions:>12}"
        f"{outcome.coverage:>8}{len(outcome.findings):>10}"
    )
    for path in outcome.findings:
        line += f"\n  {path}: {outcome.reason}"
    return line + (f"\n  failed: {outcome.failure}" if outcome.failure else "")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
