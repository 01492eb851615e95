"""``python -m ina.protocol.emit [--check]``: writes the generated files, or lists the stale."""

from __future__ import annotations

import argparse
import sys

from ina.protocol.emit import stale_files, write_files


def main() -> int:
    """Returns the exit code: 1 when ``--check`` finds a stale file."""
    parser = argparse.ArgumentParser(prog="python -m ina.protocol.emit", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a stale file")
    if parser.parse_args().check:
        stale = stale_files()
        for path in stale:
            print(f"stale: {path} (run python -m ina.protocol.emit)", file=sys.stderr)
        return 1 if stale else 0
    for path in write_files():
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
