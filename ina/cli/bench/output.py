"""What every ``ina bench`` command does with its report: print, save, compare, draw, exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Group
from rich.text import Text

from ina.bench import baseline as baselines
from ina.bench.plot import Panel
from ina.bench.report import Report, load
from ina.bench.report import save as save_report
from ina.cli.common.output import FittingTable, JsonOption, check_output, check_picture, emit, table
from ina.cli.common.progress import Progress, progress
from ina.errors import InvalidInputError
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS

ALL_BUILDS = ",".join(map(str, VALUES_PER_PACKET_BUILDS))
"""Default of a ``--values`` that takes several."""

SaveOption = Annotated[
    Path | None, typer.Option("--save", metavar="FILE", help="Write the report as JSON, too.")
]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="Compare the ratios with those of a saved report; exit with 1 if one regressed.",
    ),
]
ToleranceOption = Annotated[
    float, typer.Option(help="How much worse than the baseline is no regression: a share.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw curves: .png, .svg or .pdf.")
]
DEFAULT_TOLERANCE = 0.2


@dataclass(frozen=True)
class Outputs:
    """Where the report of one benchmark goes, as the command line said."""

    bench: str
    json: bool
    save: Path | None = None
    baseline: Path | None = None
    tolerance: float = DEFAULT_TOLERANCE
    plot: Path | None = None

    def __post_init__(self) -> None:
        """What is wrong with a file is told before anything is measured."""
        if self.plot is not None:
            check_picture("--plot", self.plot)
        if self.save is not None:
            check_output("--save", self.save, (".json", ""))
        baselines.check_tolerance(self.tolerance)
        if self.baseline is not None:
            baselines.check_bench(load(self.baseline), self.bench)

    def finish(
        self,
        report: Report,
        view: FittingTable,
        *,
        title: str,
        panels: Sequence[Panel] = (),
    ) -> None:
        """Save, draw, compare, print. Exits with 1 for a wrong sum or a regression.

        ``view``: its rows for people. ``title``: of what is drawn.

        Raises :class:`InvalidInputError` for a file that cannot be written, or a baseline that has
        none of these ratios, when what was measured has been printed: no measurement is lost.
        """
        failed: list[InvalidInputError] = []
        changes: list[baselines.RatioChange] = []
        with _later(failed):
            if self.save is not None:
                save_report(report, self.save)
        with _later(failed):
            if self.plot is not None:
                from ina.bench.figure import draw  # loads matplotlib

                draw(panels, title, self.plot)
        with _later(failed):
            if self.baseline is not None:
                changes = baselines.compare(load(self.baseline), report, self.tolerance)
        document = msgspec.to_builtins(report)
        if self.baseline is not None:
            document["baseline"] = [asdict(change) for change in changes]
        parts: list[Any] = [view]
        parts += [Text(note) for note in report.notes]
        if changes:
            parts.append(_changes_table(changes, self.tolerance))
        if report.wrong:
            parts.append(Text(f"WRONG: {report.wrong} values are not what they must be"))
        emit(document, self.json, Group(*parts))
        if failed:
            raise failed[0]
        if report.wrong or any(change.regressed for change in changes):
            raise typer.Exit(1)


class ReportedOptions:
    """Of a benchmark: dataclasses, whose fields of the names of :class:`Outputs` say where the
    report goes."""

    def named(self, *names: str) -> dict[str, Any]:
        """Those of the options, by name, for a report's settings."""
        return {name: getattr(self, name) for name in names}

    def outputs(self, bench: str) -> Outputs:
        """Raises :class:`InvalidInputError`: a file cannot be what it is to be."""
        known = [it.name for it in fields(Outputs) if hasattr(self, it.name)]
        return Outputs(bench, **self.named(*known))


@dataclass(frozen=True, kw_only=True)
class SavedOptions(ReportedOptions):
    """Of benchmarks: where the report goes."""

    save: SaveOption = None
    json: JsonOption = False


@dataclass(frozen=True, kw_only=True)
class ComparedOptions(ReportedOptions):
    """Of those that have ratios: what these are compared with, too."""

    save: SaveOption = None
    baseline: BaselineOption = None
    tolerance: ToleranceOption = DEFAULT_TOLERANCE
    json: JsonOption = False


@dataclass(frozen=True, kw_only=True)
class PlottedOptions(ComparedOptions):
    """Of those that are drawn, too."""

    plot: PlotOption = None


@contextmanager
def _later(failed: list[InvalidInputError]) -> Iterator[None]:
    """Keeps what goes wrong with a file, for when the rest is done."""
    try:
        yield
    except InvalidInputError as error:
        failed.append(error)
    except OSError as error:
        failed.append(InvalidInputError(f"{error.filename}: {error.strerror}"))


def _changes_table(changes: Sequence[baselines.RatioChange], tolerance: float) -> Any:
    rows = [
        (
            change.name,
            round(change.before, 3),
            round(change.now, 3),
            round(change.change, 3),
            "REGRESSED" if change.regressed else "",
        )
        for change in changes
    ]
    title = f"ratios (more is better), regressed: worse by more than {100 * tolerance:g} %"
    return table(["ratio", "baseline", "now", "now/baseline", ""], rows, title=title)


class Steps:
    """Progress of a measurement: a bar on a terminal, a line a step elsewhere."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar

    def say(self, what: str) -> None:
        """What comes next, or what is done by now."""
        self._bar.update(what)
        if not sys.stderr.isatty():
            print(what, file=sys.stderr, flush=True)

    def done(self, what: str) -> None:
        """One step more is over."""
        self._bar.advance()
        self.say(what)


@contextmanager
def steps(title: str, total: int) -> Iterator[Steps]:
    """A bar of ``total`` steps on stderr."""
    with progress(title, total, is_kept=True) as bar:
        yield Steps(bar)


def number(value: float | None, digits: int = 2) -> Any:
    """A cell: rounded; a dash for what was not measured."""
    return "-" if value is None else round(value, digits)
