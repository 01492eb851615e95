"""A command group whose members are imported only when they are used.

``ina --help`` and ``ina --version`` must answer at once and without torch, so each member's
one-line summary stands in a table and its module is imported when the member is run.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from ina.cli import log_options
from ina.cli.help_text import polish


class Lazy(NamedTuple):
    """One sub-command: the module that has it (as ``app``, or a function of its name)."""

    module: str
    summary: str


def load(name: str, member: Lazy) -> Any:
    """Import the member's module and return its click command called ``name``."""
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
