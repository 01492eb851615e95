"""``python -m tests.soak --seconds 600 --seed 1``: a soak, with what it did as a table."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.soak.soak import Soak
from tests.worlds.processes.forks import context


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="for which it disturbs")
    parser.add_argument("--seed", type=int, default=1, help="of packets, faults and sums")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="ina-soak-"))
    soak = Soak(folder, given.seed, lambda line: print(line, file=sys.stderr, flush=True))
    report = soak.run(given.seconds)
    if given.json:
        print(json.dumps(report.to_json()))
    else:
        print("\n".join(report.table()))
    if report.wrong:
        print(f"logs are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    # Nothing here imports torch, as the processes of other tests do.
    context.set_forkserver_preload(["tests.controller.preload", "tests.soak.rank"])
    sys.exit(main())
