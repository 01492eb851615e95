"""A cell of the comparison: one network with what runs on it, to be run by each algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ina.sim.windows.network import Limit, Net


@dataclass(frozen=True)
class Series:
    """For plots: over virtual time, since the first packet."""

    at_ms: list[float]
    windows: dict[str, list[float]]
    """By job: packets that a rank may have in flight, on average."""
    queues_kib: dict[str, list[float]]
    """By port; those that were longest."""
    goodput_gbit: dict[str, list[float]]
    """Of a job's worker; of other traffic that each host gets."""


@dataclass(frozen=True)
class Measured:
    """One run of a cell."""

    metrics: dict[str, float]
    series: Series
    completions_us: list[float] = field(default_factory=list)
    """Of short flows of other traffic."""


@dataclass(frozen=True, kw_only=True)
class Cell(ABC):
    """Immutable and picklable; families derive from it."""

    name: str
    """In its family; says what it is."""
    net: Net
    is_quick: bool = False
    """Whether ``--quick`` runs it."""
    plot: str = ""
    """The plot's name in the documentation; empty: there is none."""

    @property
    @abstractmethod
    def limit(self) -> Limit:
        """What no algorithm exceeds here."""

    @abstractmethod
    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """With the algorithm and options of a ``[congestion]`` table.

        Raises :class:`~ina.sim.errors.ScenarioError`.
        """


@dataclass(frozen=True)
class Promise:
    """What the default algorithm is to keep in each cell of a family."""

    metric: str
    bound: float
    is_least: bool
    """The metric is to be that or more; else that or less."""
    relative_to: str = ""
    """An algorithm: the bound is of the metric divided by that one's in the same cell."""

    @property
    def text(self) -> str:
        """As "share of limit at least 0.97"."""
        sense = "at least" if self.is_least else "at most"
        times = f" times {self.relative_to}'s" if self.relative_to else ""
        return f"{self.metric} {sense} {self.bound:.3g}{times}"

    def holds(self, value: float) -> bool:
        """Of the mean over seeds; not of what is not a number."""
        return value >= self.bound if self.is_least else value <= self.bound


@dataclass(frozen=True)
class Family:
    """Cells of one kind."""

    name: str
    what: str
    """One line."""
    cells: Sequence[Cell]
    promises: Sequence[Promise]
    columns: Sequence[str]
    """Metrics of the table, in order."""
