"""What `ina --help` and its like print, of every command; and what a noun alone does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from ina.cli import lazy, main
from tests.cli.offered import leaves, offered


def words_of_all() -> list[tuple[str, ...]]:
    """The command lines of all nouns, their commands, and the root."""
    found = {tuple(words[:end]) for words, _ in leaves() for end in range(len(words) + 1)}
    return sorted(found)


@pytest.mark.parametrize("words", words_of_all(), ids=" ".join)
def test_help_is_for_people(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main.run([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--help" in shown
    assert "`" not in shown
    assert not re.search(r"<bool>|\bBOOLEAN\b", shown)
    assert not re.search(r"\S  ?\.$|\[\[\w+\]\]", shown, re.MULTILINE)
    if words:
        command = command_of(words)
        flat = " ".join(re.sub(r"[│\s]+", " ", shown).split())
        for default in re.findall(r"\\?(\[[^\]/]*\])", " ".join(_texts(command))):
            if default != "[bold]":  # rich's
                assert default in flat


@pytest.mark.parametrize("words", [words for words, _ in leaves()], ids=" ".join)
def test_every_parameter_is_explained_and_no_flag_undoes_what_is_not_on(
    words: tuple[str, ...],
) -> None:
    for parameter in command_of(words).params:
        assert getattr(parameter, "help", None), parameter.name
        if getattr(parameter, "is_flag", False) and not parameter.default:
            assert parameter.secondary_opts == []


def command_of(words: Sequence[str]) -> Any:
    command: Any = lazy.load(words[0], main.NOUNS[words[0]])
    for word in words[1:]:
        command = command.get_command(None, word)
    return command


def _texts(command: Any) -> list[str]:
    return [getattr(parameter, "help", None) or "" for parameter in command.params]


def test_a_paragraph_is_not_broken_where_the_source_breaks_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main.run(["bench", "advise", "--help"]) == 0
    assert "which measures them here. What an all-reduce costs" in capsys.readouterr().out


def groups() -> list[str]:
    """The nouns that do nothing without a command behind them; and the root."""
    commands = {name: lazy.load(name, main.NOUNS[name]) for name in offered()}
    return ["", *(n for n, c in commands.items() if getattr(c, "no_args_is_help", False))]


@pytest.mark.parametrize("noun", groups())
def test_a_group_alone_prints_its_help(noun: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(noun.split()) == 0
    alone = capsys.readouterr()
    assert main.run([*noun.split(), "--help"]) == 0
    assert alone == capsys.readouterr()
    assert alone.err == ""
    assert "Usage: ina" in alone.out


def test_all_groups_but_the_switch_are_meant() -> None:
    """`ina switch` alone runs one; the others have commands and print them."""
    with_commands = [
        name for name in offered() if hasattr(lazy.load(name, main.NOUNS[name]), "list_commands")
    ]
    assert sorted(groups()[1:]) == sorted(set(with_commands) - {"switch"})
