"""``-v`` and ``--log-format``, which every command takes, before or after its name."""

from __future__ import annotations

import copy
import functools
import logging
import os
from typing import Annotated, Any

import typer

from ina import log
from ina.errors import InvalidInputError


class _Choice:
    """What the command line has said so far, over what the environment says."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.verbosity = 0
        self.form = ""
        self.default = logging.WARNING

    def apply(self) -> None:
        """Raises InvalidInputError: an environment variable is wrong."""
        level = log.level_of(os.environ)
        if self.verbosity:
            level = logging.DEBUG if self.verbosity > 1 else logging.INFO
        log.install(level or self.default, self.form or log.format_of(os.environ))


_choice = _Choice()


def begin() -> None:
    """Forget an earlier command line, and log as the environment says."""
    _choice.reset()
    _choice.apply()


def log_as_a_service() -> None:
    """For a command that runs until it is stopped: what happens is logged unless less is wanted."""
    _choice.default = logging.INFO
    _choice.apply()


def _verbose(count: int) -> None:
    if count:
        _choice.verbosity += count
        _choice.apply()


def _form(name: str) -> None:
    if name:
        if name not in log.FORMATS:
            raise InvalidInputError(f"--log-format {name}: want text or json")
        _choice.form = name
        _choice.apply()


def _options(
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            callback=_verbose,
            expose_value=False,
            show_default=False,
            metavar="",
            help="Log what happens on stderr; twice: every detail. Also: INA_LOG=info, debug.",
        ),
    ] = 0,
    log_format: Annotated[
        str,
        typer.Option(
            metavar="text|json",
            callback=_form,
            expose_value=False,
            show_default=False,
            help="How log lines look. Also: INA_LOG_FORMAT.",
        ),
    ] = "",
) -> None:
    """Carries the options."""


@functools.cache
def _parameters() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_options)
    return typer.main.get_command(app).params


def add_to(command: Any) -> None:
    """Give the options to a click command and to those below it that are there already."""
    command.params += map(copy.copy, _parameters())  # each command mends its own
    for member in getattr(command, "commands", {}).values():
        add_to(member)
