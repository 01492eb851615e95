"""A command group whose members are imported only when they are used.

``ina --help`` and ``ina --version`` must answer at once and without torch, so each member's
one-line summary stands in a table and its module is imported when the member is run.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import re
from typing import Any, ClassVar, NamedTuple

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from ina.cli import log_options
from ina.cli.common.bounds import bound


class Lazy(NamedTuple):
    """One sub-command: the module that has it (as ``app``, or a function of its name)."""

    module: str
    summary: str


@functools.cache
def load(name: str, member: Lazy) -> Any:
    """Import the member's module and return its click command called ``name``: always the same."""
    module = importlib.import_module(member.module)
    app = getattr(module, "app", None)
    if not isinstance(app, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name)(getattr(module, name))
    command = typer.main.get_command(app)
    # An app whose group holds the command of this very name (say, after a callback) means that one.
    command = getattr(command, "commands", {}).get(name, command)
    command.name = name
    # Completion is the root command's concern.
    command.params = [p for p in command.params if not str(p.name).endswith("_completion")]
    log_options.add_to(command)
    return polish(command)


class LazyGroup(TyperGroup):
    """Members are read from ``members``; one whose module is absent is not offered."""

    members: ClassVar[dict[str, Lazy]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._for_help = False
        for name, member in self.members.items():
            if importlib.util.find_spec(member.module) is not None:
                self.commands[name] = TyperCommand(name=name, help=member.summary, callback=None)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the table's order."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The real command; while help is printed, its summary alone."""
        if self._for_help or cmd_name not in self.members or cmd_name not in self.commands:
            return self.commands.get(cmd_name)
        return load(cmd_name, self.members[cmd_name])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Offer the members' names without importing any."""
        self._for_help = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._for_help = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help without importing any member."""
        self._for_help = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._for_help = False


def lazy_group(members: dict[str, Lazy]) -> type[LazyGroup]:
    """The group class to give to ``typer.Typer(cls=...)``."""
    return type("LazyGroup", (LazyGroup,), {"members": members})


_IN_BACKTICKS = re.compile(r"`+([^`]+)`+")
_WITHIN_PARAGRAPH = re.compile(r"(?<!\n)\n(?!\n)")


def polish(command: Any) -> Any:
    """Returns the click command, its help and that of its parameters and sub-commands mended.

    Help texts are written like the docs: a command stands in backticks, a default in brackets.
    typer takes them for rich's markup, in which ``[brackets]`` vanish and backticks mean nothing,
    and shows ``<bool>`` behind a flag, which takes no value.

    To be called once for a command.
    """
    command.help = as_markup(command.help)
    command.short_help = as_markup(command.short_help)
    for parameter in command.params:
        parameter.help = as_markup(getattr(parameter, "help", None))
        bound(parameter)
    own_params = command.get_params

    def get_params(ctx: Any) -> list[Any]:
        # Here and not above: click adds --help when it is asked for the parameters.
        found: list[Any] = own_params(ctx)
        for parameter in found:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return found

    command.get_params = get_params
    for member in getattr(command, "commands", {}).values():
        polish(member)
    return command


def as_markup(text: str | None) -> str | None:
    """The text for rich: brackets as they are, what is in backticks in bold and without them.

    A paragraph is one line: rich breaks it where the terminal ends.
    """
    if not text:
        return text
    paragraphs = _WITHIN_PARAGRAPH.sub(" ", inspect.cleandoc(text))
    return _IN_BACKTICKS.sub(r"[bold]\1[/bold]", escape(paragraphs))
