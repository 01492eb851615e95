"""Cells of a table's row that several measurements of all-reduces show, in their units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ina.cli.bench.output import number

Row = Mapping[str, Any]
"""An :class:`ina.bench.allreduce.Measurement` as plain data, and what else is known of it."""


def over(row: Row) -> str:
    """What it went over, and whether one result went to several workers."""
    return f"{row['transport']}, mc" if row["multicast"] else row["transport"]


def times(row: Row) -> tuple[Any, ...]:
    """Milliseconds: the median, and between the quartiles."""
    return (
        number(1e3 * row["time_s"], 3),
        number(1e3 * (row["time_high_s"] - row["time_low_s"]), 3),
    )


def limits(row: Row) -> tuple[Any, ...]:
    """The limit in milliseconds, and what share of it was reached in percent."""
    limit_s, share = row["limit_s"], row["limit_share"]
    return (
        number(None if limit_s is None else 1e3 * limit_s, 3),
        number(None if share is None else 100 * share, 1),
    )
