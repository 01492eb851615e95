"""This run's ratios beside those of an earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ina.bench.report import Ratio, Report
from ina.errors import InvalidInputError


@dataclass(frozen=True)
class RatioChange:
    """One ratio, then and now. More is better."""

    name: str
    before: float
    now: float
    change: float
    """now / before."""
    regressed: bool


def check_bench(before: Report, bench: str) -> None:
    """Raises :class:`InvalidInputError`: the baseline is of another benchmark."""
    if before.bench != bench:
        raise InvalidInputError(f"the baseline is of bench {before.bench}, this is {bench}")


def check_tolerance(tolerance: float) -> None:
    """Raises :class:`InvalidInputError`: it is no share."""
    if not 0 <= tolerance < 1:
        raise InvalidInputError(f"tolerance {tolerance:g}: want 0 or more and below 1")


def compare(before: Report, now: Report, tolerance: float) -> list[RatioChange]:
    """Ratios that both have; ``regressed``: below the earlier one by more than ``tolerance``.

    ``tolerance``: a share, 0.2 for 20 %. Raises :class:`InvalidInputError` where nothing can be
    compared.
    """
    check_bench(before, now.bench)
    changes = compare_ratios(before.ratios, now.ratios, tolerance)
    if not changes:
        raise InvalidInputError(
            "the baseline has no ratio that this run has: "
            + ", ".join(ratio.name for ratio in before.ratios[:4])
        )
    return changes


def compare_ratios(
    before: Sequence[Ratio], now: Sequence[Ratio], tolerance: float
) -> list[RatioChange]:
    """Those of the same name, in this run's order."""
    check_tolerance(tolerance)
    old = {ratio.name: ratio.value for ratio in before}
    return [
        RatioChange(
            ratio.name,
            old[ratio.name],
            ratio.value,
            ratio.value / old[ratio.name],
            ratio.value < old[ratio.name] * (1 - tolerance),
        )
        for ratio in now
        if old.get(ratio.name, 0) > 0
    ]
