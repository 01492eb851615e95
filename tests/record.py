"""What a run of the tests leaves in pytest's cache: how it ended, and the seconds of each file."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import selection

ROOT = Path(__file__).parent.parent
_KEY = "ina/run"
CACHE_FILE = Path(".pytest_cache/v") / _KEY


class Run(msgspec.Struct, forbid_unknown_fields=True):
    """A run that came to its end."""

    is_long: bool
    workers: int
    """Processes that ran tests."""
    took_s: float
    outcomes: dict[str, int]
    """How many passed, failed, were skipped."""
    not_run: dict[str, int]
    """How many were not collected, by reason."""
    seconds: dict[str, float]
    """Of each file: what its tests and their fixtures took, one after the other."""


class Recorder:
    """A plugin of the process that sees all reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began_s = time.monotonic()
        self._seconds: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds one phase of one test up."""
        self._seconds[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[report.outcome] += 1

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Writes it, where the run came to its end."""
        cache = getattr(self._config, "cache", None)
        if cache is None or exitstatus not in (0, 1) or not _is_whole(self._config):
            return
        run = Run(
            selection.LONG,
            int(self._config.getoption("numprocesses", None) or 1),
            round(time.monotonic() - self._began_s, 1),
            dict(self._outcomes),
            self._config.stash.get(selection.NOT_RUN, {}),
            {name: round(seconds, 2) for name, seconds in sorted(self._seconds.items())},
        )
        cache.set(_KEY, msgspec.to_builtins(run))


def _is_whole(config: pytest.Config) -> bool:
    """Whether nobody chose tests: a few say nothing of a budget."""
    chosen = ("lf", "keyword", "markexpr", "deselect", "ignore", "ignore_glob")
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return not named and not any(config.getoption(option, None) for option in chosen)


def last_run(cache_file: Path = CACHE_FILE) -> Run | None:
    """The last one that came to its end."""
    try:
        document: Any = json.loads(cache_file.read_text())
    except FileNotFoundError:
        return None
    return msgspec.convert(document, Run)
