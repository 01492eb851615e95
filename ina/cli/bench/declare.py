"""What a benchmark declares once, and what runs all of them: options, columns, notes, a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import typer

from ina.bench.plot import Panel
from ina.bench.report import Ratio, Report
from ina.cli.bench.output import ReportedOptions
from ina.cli.common.columns import Column, view
from ina.cli.common.options import command
from ina.cli.common.output import FittingTable

Asked = TypeVar("Asked", bound=ReportedOptions)
Row = Mapping[str, Any]
"""One of a report's rows; what it lacks is of the report's settings."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a run came to."""

    title: str
    """Of the table, and of what is drawn."""
    settings: dict[str, Any]
    rows: list[dict[str, Any]]
    ratios: Sequence[Ratio] = ()
    notes: Sequence[str] = ()
    """What a reader must know of this run, below what is declared."""
    wrong: int | None = None
    """None: the sum of the rows'."""
    fails: bool = False
    """Whether the command ends with 1, also where all sums are right."""


@dataclass(frozen=True)
class Bench(Generic[Asked]):
    """A benchmark's declaration; :meth:`command` makes a command of what measures."""

    name: str
    options: type[Asked]
    columns: Sequence[Column]
    spare: Sequence[str] = ()
    """Titles of columns that a narrow terminal does without, the first ones first."""
    notes: Sequence[str] = ()
    """What a reader must know of each run."""
    panels: Callable[[list[dict[str, Any]]], Sequence[Panel]] | None = None
    """What is drawn of the rows; None: nothing."""

    def command(self, measure: Callable[[Asked], Found]) -> Callable[..., None]:
        """The command, which has the options' fields and the function's name and text."""

        def run(asked: Asked) -> None:
            self.run(asked, measure)

        run.__name__, run.__doc__ = measure.__name__, measure.__doc__
        run.__module__, run.__qualname__ = measure.__module__, measure.__qualname__
        return command(self.options)(run)

    def run(self, asked: Asked, measure: Callable[[Asked], Found]) -> None:
        """Measures and tells. What is wrong with a file is told before anything is measured.

        Raises :class:`~ina.errors.InaError`; exits with 1 for a wrong sum or a regression.
        """
        outputs = asked.outputs(self.name)
        found = measure(asked)
        report = Report(
            bench=self.name,
            settings=found.settings,
            rows=found.rows,
            ratios=list(found.ratios),
            wrong=sum(row["wrong"] for row in found.rows) if found.wrong is None else found.wrong,
            notes=[*self.notes, *found.notes],
        )
        drawn = self.panels(found.rows) if self.panels and outputs.plot is not None else ()
        outputs.finish(report, self.view(found), title=found.title, panels=drawn)
        if found.fails:
            raise typer.Exit(1)

    def view(self, found: Found) -> FittingTable:
        """The rows for people."""
        rows = [{**found.settings, **row} for row in found.rows]
        return view(self.columns, rows, self.spare, title=found.title)
