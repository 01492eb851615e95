"""``ina files``: the files that ship with ina beside its code, listed or copied to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.output import JsonOption, emit, table
from ina.files import GROUPS, put_out, shipped


def files(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Folder to copy them to; without it they are listed."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP", help=f"One group: {', '.join(GROUPS)}; repeatable."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    json: JsonOption = False,
) -> None:
    """Copy what ships with ina beside its code: dashboards, units, examples, P4, the dissector."""
    if directory is not None:
        written = put_out(directory, only or (), force=force)
        emit({"written": written}, json, "\n".join(map(str, written)))
        return
    held = {name: shipped([name]) for name in only or GROUPS}
    rows = [{"group": name, "file": path} for name, paths in held.items() for path in paths]
    lines = [(name, len(paths), GROUPS[name].used_for) for name, paths in held.items()]
    emit(rows, json, table(["group", "files", "for"], lines))
