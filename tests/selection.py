"""What of the tests runs: what this machine can run, and what ``make test`` has time for.

A test that needs a tool which is not here is not collected, and the end of the run says once, for
each tool, how many that were and how to get it; so is a test for ``make test-long`` alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

LONG_VARIABLE = "INA_LONG_TESTS"
LONG = bool(os.environ.get(LONG_VARIABLE))
"""Whether this is ``make test-long``: everything, with more seeds, packets and repetitions."""


def examples(most: int) -> int:
    """Hypothesis' examples of a test: so many in ``make test-long``, a quarter else."""
    return most if LONG else most // 4


# Imported where they are asked: a process that only hands tests out needs neither.


def _no_bmv2() -> str:
    from ina.testing.bmv2_device import cannot_run_bmv2

    return cannot_run_bmv2()


def _no_p4c() -> str:
    from ina.p4.compile import find_p4c
    from ina.p4.errors import P4cMissingError

    try:
        find_p4c()
    except P4cMissingError as missing:
        return str(missing)
    return ""


def _not_long() -> str:
    return "" if LONG else "they take long: make test-long runs them"


_MISSING: dict[str, Callable[[], str]] = {
    "bmv2": _no_bmv2,
    "p4c": _no_p4c,
    "long": _not_long,
}
"""Why a test with the mark of this name cannot run; empty: it can."""

SWITCHES = ("soft", pytest.param("bmv2", marks=pytest.mark.bmv2))
"""For tests of either."""
EMULATED = (*SWITCHES, pytest.param("xdp", marks=pytest.mark.long))
"""For tests of ``ina emulate`` with any switch."""

NOT_RUN = pytest.StashKey[dict[str, int]]()
"""How many tests were not collected, by reason."""


def marks() -> Iterator[str]:
    """What pytest is told of each mark."""
    yield "bmv2: needs simple_switch_grpc and the right to make cables"
    yield "p4c: needs p4c-bm2-ss"
    yield "long: only in make test-long"


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes out what cannot run here."""
    asked = {mark.name for item in items for mark in item.iter_markers()} & _MISSING.keys()
    reasons = {name: why for name in sorted(asked) if (why := _MISSING[name]())}
    not_run = config.stash.setdefault(NOT_RUN, {})
    kept: list[pytest.Item] = []
    out: list[pytest.Item] = []
    for item in items:
        why = next((why for name, why in reasons.items() if item.get_closest_marker(name)), "")
        if why:
            not_run[why] = not_run.get(why, 0) + 1
        (out if why else kept).append(item)
    if out:
        items[:] = kept
        config.hook.pytest_deselected(items=out)


def summary(not_run: dict[str, int]) -> Iterator[str]:
    """One line a reason."""
    for why, count in sorted(not_run.items(), key=lambda reason: -reason[1]):
        yield f"{count} tests: {why}"
