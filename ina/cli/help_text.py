"""Help as people read it: typer's own shows markup, brackets and types that they cannot use.

Help texts are written like the docs: a command stands in backticks, a default in brackets. typer
takes them for rich's markup, in which ``[brackets]`` vanish and backticks mean nothing, and shows
``<bool>`` behind a flag, which takes no value.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from rich.markup import escape

_IN_BACKTICKS = re.compile(r"`+([^`]+)`+")
_WITHIN_PARAGRAPH = re.compile(r"(?<!\n)\n(?!\n)")


def polish(command: Any) -> Any:
    """Returns the click command, its help and that of its parameters and sub-commands mended.

    To be called once for a command.
    """
    command.help = as_markup(command.help)
    command.short_help = as_markup(command.short_help)
    for parameter in command.params:
        parameter.help = as_markup(getattr(parameter, "help", None))
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
