"""Which lines of the shipped worker's side the fuzzer's seeds reach.

``python -m tests.sim_coverage [--seeds N] [--first SEED] [FOLDER ...]``: by default 100 seeds and
``ina/host``. A line counts once any seed has run it, not when its module was imported.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ina.sim.draw import draw
from ina.sim.fuzz import try_scenario
from tests.lines import ROOT

Lines = dict[str, set[int]]


def of_code(code: CodeType) -> Iterator[int]:
    """Lines of functions, which importing does not run; but for their heads."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            is_class = "__qualname__" in constant.co_names and "__module__" in constant.co_names
            if not is_class:
                lines = {line for _, _, line in constant.co_lines() if line}
                yield from lines - {constant.co_firstlineno}
            yield from of_code(constant)


def executable(path: Path) -> set[int]:
    """What a run might reach."""
    return set(of_code(compile(path.read_text(), str(path), "exec")))


def reached(folders: tuple[str, ...], work: Callable[[], None]) -> Lines:
    """What of the files in ``folders`` runs during ``work``."""
    found: Lines = defaultdict(set)

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_filename].add(frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(folders) else None

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return found


def spans(lines: set[int]) -> str:
    """``3-5, 9``."""
    parts: list[list[int]] = []
    for line in sorted(lines):
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("folders", nargs="*", default=["ina/host"])
    options = parser.parse_args()

    def work() -> None:
        for seed in range(options.first, options.first + options.seeds):
            assert not try_scenario(draw(seed), seed).violations, f"seed {seed}"

    folders = [ROOT / folder for folder in options.folders]
    found = reached(tuple(f"{folder}/" for folder in folders), work)
    total = hit = 0
    for path in sorted(file for folder in folders for file in folder.rglob("*.py")):
        wanted = executable(path)
        ran = found[str(path)] & wanted
        total, hit = total + len(wanted), hit + len(ran)
        if wanted:
            missing = f"; not {spans(wanted - ran)}" if ran and wanted - ran else ""
            name = path.relative_to(ROOT)
            print(f"{len(ran):4} of {len(wanted):4} {name}{missing}")
    print(f"{hit} of {total} lines, {options.seeds} seeds from {options.first} on")


if __name__ == "__main__":
    main()
