"""What commands print: JSON for programs, tables for people, one line for an error."""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ina.errors import InvalidInputError, MissingToolError

# A pipe has no width; rich would fold lines at 80 columns and break what `grep` and `awk` read.
_PIPE_WIDTH = 240
_RULE = "─"

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def _raise(self: Console) -> None:
    """Leaves a broken pipe to ``ina.cli.main``; rich's own way is to exit with 1."""
    raise  # rich calls this where it handles the BrokenPipeError


Console.on_broken_pipe = _raise  # type: ignore[method-assign]  # of typer's consoles too


def console(*, stderr: bool = False) -> Console:
    """A rich console on stdout or stderr: no colour, no folding when it is not a terminal.

    Text is printed as it is: ``[x]`` is no markup (an array index is more likely than a style).
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False)


def emit(obj: Any, json: bool, human: RenderableType | None = None) -> None:
    """Print ``obj`` as one JSON document, or for people.

    ``obj`` may hold dicts, lists, dataclasses, msgspec structs, paths, enums. For people ``human``
    is printed where given; else a mapping becomes name and value lines, a list of mappings a table.
    """
    if json:
        sys.stdout.write(msgspec.json.encode(obj, enc_hook=_plain).decode() + "\n")
        sys.stdout.flush()
        return
    view = human if human is not None else _render(obj)
    # A line of text stays one, however long its names are: a pipe's reader takes it as it is.
    if sys.stdout.isatty():
        console().print(view, soft_wrap=isinstance(view, str))
        return
    text = io.StringIO()
    screen = Console(file=text, width=_PIPE_WIDTH, highlight=False, markup=False)
    for part in view.renderables if isinstance(view, Group) else [view]:
        screen.print(part, soft_wrap=isinstance(part, str | Text))
    sys.stdout.write("\n".join(map(_for_pipe, text.getvalue().split("\n"))))
    sys.stdout.flush()


def _for_pipe(line: str) -> str:
    """No blanks at its end, and a rule of one byte a column, which is as wide as the table."""
    line = line.rstrip()
    return "-" * len(line) if line and not line.strip(_RULE) else line


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None
) -> Table:
    """A table whose columns of numbers, and "-" for none, are right-aligned; by ``str``."""
    grid = [list(row) for row in rows]
    view = Table(
        title=title and Text(title),
        box=SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        show_edge=False,
    )
    for index, name in enumerate(columns):
        cells = [row[index] for row in grid if row[index] != "-"]
        numeric = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        # Where there is no room a cell goes on below: nothing of it is cut off.
        view.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in grid:
        view.add_row(*map(_cell, row))
    return view


def error_line(error: BaseException | str) -> str:
    """``error: ...`` on exactly one line, whatever line breaks the message holds."""
    text = " ".join(str(error).split())
    return f"error: {text or type(error).__name__}"


def fail(error: BaseException | str) -> NoReturn:
    """Print one line on stderr and exit with 2. Raising an ``InaError`` does the same."""
    print(error_line(error), file=sys.stderr)
    raise SystemExit(2)


def _render(obj: Any) -> RenderableType:
    plain = msgspec.to_builtins(obj, enc_hook=_plain)
    if isinstance(plain, Mapping):
        view = Table.grid(padding=(0, 2))
        for name, value in plain.items():
            view.add_row(str(name), _cell(value))
        return view
    if isinstance(plain, list) and plain and all(isinstance(row, Mapping) for row in plain):
        columns = list(dict.fromkeys(name for row in plain for name in row))
        return table(columns, ([row.get(name, "") for name in columns] for row in plain))
    return str(plain)


def _cell(value: Any) -> Text:
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    if isinstance(value, list | dict):
        return Text(msgspec.json.encode(value).decode())
    return Text(str(value))


def _plain(value: Any) -> Any:
    """What msgspec does not know: numpy scalars and arrays by value, anything else by its text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


@dataclass
class FittingTable:
    """A table that leaves out columns of ``spare``, first to last, until it fits; and says so."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    spare: Sequence[str]
    title: str | None = None
    notes: Sequence[str] = field(default=())
    """Lines of their own below the table; folded, never cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render at the width that there is."""
        gone: list[str] = []
        view = self._view(gone)
        for name in self.spare:
            if _width(console, options, view) <= options.max_width:
                break
            gone.append(name)
            view = self._view(gone)
        yield view
        if gone:
            yield Text(f"(too narrow for: {', '.join(gone)}; --json has all)", style="dim")
        for note in self.notes:
            yield Text(note, overflow="fold")

    def _view(self, gone: Sequence[str]) -> Table:
        kept = [index for index, name in enumerate(self.columns) if name not in gone]
        names = [self.columns[index] for index in kept]
        return table(names, [[row[index] for index in kept] for row in self.rows], title=self.title)


@dataclass
class TableOrLines:
    """A table where all its cells fit on one line; else a row is a line, and below it, indented,
    what stands in its last column. Words are kept whole."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render at the width that there is."""
        view = table(self.columns, self.rows)
        if _width(console, options, view) <= options.max_width:
            yield view
            return
        for *first, last in self.rows:
            yield Text("  ".join(map(str, first)), overflow="fold")
            yield Padding(Text(str(last), overflow="fold"), (0, 0, 0, 4), expand=False)


def lines_or_parts(rows: Iterable[LineOrParts]) -> RenderableType:
    """For a terminal of any width; whoever reads a pipe gets a line each, however long."""
    views = list(rows)
    return Group(*views) if console().is_terminal else "\n".join(map(str, views))


@dataclass
class LineOrParts:
    """One line, or where it does not fit, a part a line, indented but for the first."""

    parts: Sequence[str]

    def __str__(self) -> str:
        return "; ".join(self.parts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render at the width that there is."""
        if len(str(self)) <= options.max_width:
            yield Text(str(self))
            return
        yield Text(self.parts[0], overflow="fold")
        for part in self.parts[1:]:
            yield Padding(Text(part, overflow="fold"), (0, 0, 0, 2), expand=False)


def _width(console: Console, options: ConsoleOptions, view: Table) -> int:
    """What the table would take with all cells on one line."""
    wide = options.update(max_width=10_000)
    return Measurement.get(console, wide, view).maximum


def check_output(option: str, path: Path, suffixes: tuple[str, ...]) -> None:
    """``suffixes``: of what the command writes; "" among them: a name without any is taken, too.

    Raises :class:`InvalidInputError` that names ``option``, unless it is empty, and the file.
    """
    what = f"{option} {path}".lstrip()
    if path.suffix.lower() not in suffixes:
        wanted = ", ".join(suffix for suffix in suffixes if suffix)
        raise InvalidInputError(f"{what}: want a name that ends in {wanted}")
    if path.is_dir():
        raise InvalidInputError(f"{what}: it is a folder")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{what}: there is no folder {path.parent}")


PICTURES = (".png", ".svg", ".pdf")


def check_picture(option: str, path: Path) -> None:
    """As :func:`check_output`, of a picture. Raises MissingToolError: nothing here draws it."""
    check_output(option, path, PICTURES)
    check_matplotlib(option)


def check_matplotlib(option: str) -> None:
    """Before anything is run. Raises :class:`MissingToolError` that names ``option``."""
    if importlib.util.find_spec("matplotlib") is None:
        what = option or "a picture"
        raise MissingToolError(f"{what} needs matplotlib: pip install matplotlib")
