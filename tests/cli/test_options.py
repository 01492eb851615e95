"""A command whose options are one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ina.cli.common.options import command


@dataclass(frozen=True, kw_only=True)
class TitledOptions:
    """Of all that greet."""

    titles: Annotated[list[str] | None, typer.Option("--title", help="May be repeated.")] = None


@dataclass(frozen=True, kw_only=True)
class GreetOptions(TitledOptions):
    """Of ``greet``."""

    name: Annotated[str, typer.Argument(help="Whom.")]
    times: Annotated[int, typer.Option(min=1, help="How often.")] = 1
    loud: Annotated[bool, typer.Option("--loud", help="In capitals.")] = False


@command(GreetOptions)
def greet(asked: GreetOptions) -> None:
    """Greet somebody."""
    words = " ".join([*(asked.titles or []), asked.name])
    print(*[words.upper() if asked.loud else words] * asked.times)


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(greet)
    return made


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["Ada"], 0, "Ada\n"),
        (["Ada", "--times", "2", "--loud"], 0, "ADA ADA\n"),
        (["Ada", "--title", "Dr", "--title", "h. c."], 0, "Dr h. c. Ada\n"),
        (["Ada", "--times", "0"], 2, "--times"),
        ([], 2, "name"),
    ],
)
def test_fields_are_options(app: typer.Typer, words: list[str], code: int, said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code
    assert said in result.output


def test_help_has_them_in_their_order(app: typer.Typer) -> None:
    said = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "Greet somebody." in said
    places = [said.index(text) for text in ("Whom.", "How often.", "In capitals.", "repeated")]
    assert places == sorted(places)
