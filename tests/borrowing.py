"""What tests import of each other that belongs to one test alone.

``python -m tests.borrowing`` takes out of the exceptions what no longer is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.lines import ROOT, sources
from tests.sources import imports_of_tests

EXCEPTIONS = Path(__file__).parent / "borrowing_exceptions.json"
"""What was there when the rule was made. It may only lose some."""

# To parse all tests takes seconds; few have such a line.
_MAY_BORROW = re.compile(r"^\s*(?:from|import)\b.*\btest_|^\s+test_\w+(?: as \w+)?,$", re.MULTILINE)


def borrowed(path: str, imported: set[str]) -> Iterator[str]:
    """``PATH: MODULE``: of a test module, or by ``tests/worlds`` of a package of tests."""
    in_worlds = path.startswith("tests/worlds/")
    for name in imported:
        parts = name.split(".")
        if parts[0] not in ("tests", "bmv2_tests") or len(parts) < 2:
            continue
        above = next((at for at, part in enumerate(parts) if part.startswith("test_")), 0)
        is_package = parts[1] != "worlds" and (ROOT / parts[0] / parts[1]).is_dir()
        if above or (in_worlds and is_package):
            yield f"{path}: {'.'.join(parts[: above + 1] if above else parts[:-1])}"


def found() -> set[str]:
    """In all of the tests."""
    files = {path: path.relative_to(ROOT).as_posix() for path in sources() if path.suffix == ".py"}
    return {
        one
        for path, name in files.items()
        if name.startswith(("tests/", "bmv2_tests/"))
        if name.startswith("tests/worlds/") or _MAY_BORROW.search(path.read_text())
        for one in borrowed(name, imports_of_tests(path))
    }


def exceptions() -> set[str]:
    """What may be there still."""
    return set(json.loads(EXCEPTIONS.read_text()))


if __name__ == "__main__":
    left = sorted(exceptions() & found())
    EXCEPTIONS.write_text(json.dumps(left, indent=1) + "\n")
    print(f"{EXCEPTIONS.name}: {len(left)} left")
