"""Runs ``make test``; the few tests that fail in it once more, alone.

CI has two cores, which others may use too: a test that waits there for another process can fail for
that alone. So where at most MAX_AGAIN tests failed of a run that came to its end, exactly those run
again, one at a time, once. If they pass, that is said loudly, also into the file that is the
argument, and the exit status is 0. A test that is named there is to be mended all the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MAX_AGAIN = 5
_CACHE = Path(".pytest_cache/v")
_STATUS, _FAILED = "ina/exit_status", "cache/lastfailed"
_SOME_FAILED = 1  # pytest's exit status; others: it was interrupted, or is broken itself


def main(flaky: Path) -> int:
    """The exit status for the step."""
    python = os.environ.get("PYTHON_OF_TESTS", ".venv/bin/python")
    # Not a cache of its own, which ARGS would name: make hands that on to each make in a test.
    for name in (_STATUS, _FAILED):
        (_CACHE / name).unlink(missing_ok=True)
    status = subprocess.run(["make", "--no-print-directory", "test"]).returncode
    if status == 0:
        return 0
    failed = failures()
    if failed is None:
        print("not run again: the run did not come to its end")
        return status
    if len(failed) > MAX_AGAIN:
        print(f"not run again: {len(failed)} tests failed, more than {MAX_AGAIN}")
        return status
    print(f"=== again, alone: {len(failed)} tests that failed", flush=True)
    again = [python, "-m", "pytest", "-n", "0", "-ra", "--lf", "--lfnf=none"]
    status = subprocess.run(again).returncode
    left = failures()
    if status or left:
        return status or 1
    said = f"FLAKY: {', '.join(failed)} failed in the full run and passed alone"
    print(f"{'!' * 80}\n{said}\n{'!' * 80}", flush=True)
    flaky.write_text(said + "\n")
    return 0


def failures() -> list[str] | None:
    """The tests that failed in the last run, by pytest's cache; None: it did not end as it should.

    The exit status is written by tests/conftest.py.
    """
    try:
        status = json.loads((_CACHE / _STATUS).read_text())
        if status == 0:
            return []
        failed: dict[str, bool] = json.loads((_CACHE / _FAILED).read_text())
    except FileNotFoundError:
        return None
    return sorted(failed) if status == _SOME_FAILED and failed else None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
