"""The commands of ``ina`` that are offered here, for the tests that ask each."""

from __future__ import annotations

import typer

from ina.cli import lazy, main


def offered() -> list[str]:
    return typer.main.get_command(main.app).list_commands(None)  # type: ignore[attr-defined,no-any-return]


def leaves() -> list[tuple[list[str], object]]:
    """Every runnable command with its words."""
    found: list[tuple[list[str], object]] = []
    queue = [([name], lazy.load(name, main.NOUNS[name])) for name in offered()]
    while queue:
        path, command = queue.pop()
        if hasattr(command, "list_commands"):
            names = command.list_commands(None)
            queue += [([*path, name], command.get_command(None, name)) for name in names]
        else:
            found.append((path, command))
    return found
