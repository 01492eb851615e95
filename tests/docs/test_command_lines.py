"""Commands on the pages that no test runs name sub-commands and options that there are."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from typer.main import get_command

from ina.cli.main import app
from tests.docs.runner import ROOT

TEXTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(path for path in (ROOT / "deploy").rglob("*") if path.is_file()),
    *(ROOT / "dashboards").glob("*.yaml"),
]
_COMMAND = re.compile(
    r"(?:\$ |`|^ExecStart=\S*/env |^\s+)ina ((?:[^`\n|;&<>()#]|\|(?=[a-z]))*)", re.M
)
_IN_EVERY_COMMAND = {"--help", "-v", "-vv"}


@functools.cache
def command_of(words: tuple[str, ...]) -> Any:
    """``ina WORDS``, a command or a group of them; None: there is none."""
    return command_of(words[:-1]).get_command(None, words[-1]) if words else get_command(app)


def wrong(words: list[str]) -> str:
    """What of ``ina WORDS`` there is not; empty: nothing, or it is prose."""
    command, depth = command_of(()), 0
    names = [word.partition("|")[0] for word in words]
    while depth < len(words) and hasattr(command, "get_command"):
        found = command_of(tuple(names[: depth + 1]))
        if found is None:
            # A placeholder, an option, or the argument of a group that has a command to itself.
            is_other = not re.fullmatch(r"[a-z][a-z0-9-]*", names[depth])
            return "" if depth == 0 or is_other else f"no command {names[depth]}"
        command, depth = found, depth + 1
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    given = words[depth : words.index("--")] if "--" in words else words[depth:]
    options = [word.strip("[]'\".,:").partition("=")[0] for word in given]
    lacking = [o for o in options if o.startswith("--") and o not in known | _IN_EVERY_COMMAND]
    return f"no option {lacking[0]}" if depth and lacking else ""


def commands(path: Path) -> list[list[str]]:
    text = path.read_text().replace("\\\n", " ")
    return [found.split() for found in _COMMAND.findall(text) if found.strip()]


def test_what_is_wrong_is_found() -> None:
    assert wrong(["job", "list", "--json"]) == ""
    assert wrong(["job", "list|show", "NAME"]) == ""
    assert wrong(["job", "lists"]) == "no command lists"
    assert wrong(["job", "list", "--jsn"]) == "no option --jsn"
    assert wrong(["emulate", "run", "net.toml", "--", "x", "--epochs", "1"]) == ""
    assert wrong(["is", "installed"]) == ""


def test_every_command_and_option_on_a_page_is_there() -> None:
    found = [(path, words) for path in TEXTS for words in commands(path)]
    assert len(found) > 200
    mistakes = {
        f"{path.relative_to(ROOT)}: ina {' '.join(words)}": why
        for path, words in found
        if (why := wrong(words))
    }
    assert mistakes == {}
