"""What a report's panels hold, and where they are drawn: see :mod:`ina.bench.figure`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Unit = Literal["bytes", "s", "GB/s", "ratio", "workers", "steps", "loss"]
"""Bytes and seconds are drawn as people write them: 64 KiB, 3.5 ms."""


class Point(NamedTuple):
    """A median, and the quartiles around it where there are several measurements; of a panel with
    bands a mean, and the least and the largest."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curve:
    """The points of one ``backend`` in one ``group``; a backend is a style, a group a colour."""

    group: str
    """As "4 workers"; what the figure's colours tell apart."""
    backend: str
    """ina, gloo, mpi, or limit; empty: there is but one."""
    points: Sequence[Point]

    @property
    def label(self) -> str:
        """In the legend."""
        return ", ".join(filter(None, [self.backend, self.group]))


@dataclass(frozen=True)
class Axis:
    """What it says and counts."""

    label: str
    unit: Unit
    log: bool = False
    from_zero: bool = True
    """Where it is not logarithmic; False: around what is drawn."""


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    x: Axis
    y: Axis
    curves: Sequence[Curve]
    level: tuple[float, str] | None = None
    """A horizontal line and its name: where the two are equal."""
    band: str = ""
    """Of what the points' ends are, where they are drawn as bands along curves of many points;
    empty: quartiles, as error bars."""


def gain_panel(found: Sequence[Curve]) -> Panel:
    """Gloo's time over ina's, by the number of workers."""
    return Panel(
        "Gain",
        Axis("workers", "workers"),
        Axis("Gloo's time / ina's", "ratio"),
        found,
        level=(1.0, "as fast as Gloo"),
    )


def curves(
    rows: Iterable[dict[str, Any]],
    group: Callable[[dict[str, Any]], str],
    backend: Callable[[dict[str, Any]], str],
    point: Callable[[dict[str, Any]], Point],
) -> list[Curve]:
    """Rows of one group and backend make one curve."""
    found: dict[tuple[str, str], list[Point]] = {}
    for row in rows:
        found.setdefault((group(row), backend(row)), []).append(point(row))
    return [Curve(*names, points) for names, points in found.items()]
