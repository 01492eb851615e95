"""Whether an option stands on the command line, or has its value from elsewhere."""

from __future__ import annotations

import typer


def is_given(ctx: typer.Context, name: str) -> bool:
    """``name``: of the command's parameter. A default, or one of the environment, is not given."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
