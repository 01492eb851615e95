"""ina's log lines: to stderr, with time, level, process and logger; as text or as JSON.

Every module logs to ``logging.getLogger(__name__)``, below the logger "ina". In a program that only
imports ina nothing is set up unless ``INA_LOG`` asks for it: warnings go where Python's logging, or
the program's own set-up, sends them. With ``INA_LOG`` a handler of ina's own prints from that level
on; the program's handlers get the lines as before. The command line always has the handler.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ina.errors import InvalidInputError

LEVEL_ENVIRONMENT = "INA_LOG"
"""``debug``, ``info``, ``warning`` or ``error``; empty: as if it were not set."""
FORMAT_ENVIRONMENT = "INA_LOG_FORMAT"
"""``text`` or ``json``: one document a line."""

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FORMATS = ("text", "json")
_FIELDS = "ina_fields"

_root = logging.getLogger("ina")


def fields(**of_line: Any) -> dict[str, Any]:
    """``extra`` of a log call: what a JSON line has besides the message. Values as JSON has."""
    return {_FIELDS: of_line}


def from_environ(environ: Mapping[str, str] = os.environ) -> None:
    """Print lines if ``INA_LOG`` says so and nothing has been set up: for who imports ina.

    A wrong value is a warning: a log level is no reason not to train.
    """
    if not environ.get(LEVEL_ENVIRONMENT) or _installed() is not None:
        return
    try:
        install(level_of(environ) or logging.WARNING, format_of(environ))
    except InvalidInputError as error:
        install(logging.WARNING, "text")
        _root.warning("%s; only warnings are printed", error)


def install(level: int, form: str) -> None:
    """Print lines from ``level`` on in one of ``FORMATS``; replaces what was installed before."""
    remove()
    handler = _StderrHandler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    handler.setLevel(level)
    _root.addHandler(handler)
    # Other handlers, of the program, get no fewer lines than before.
    _root.setLevel(min(level, logging.getLogger().level or logging.WARNING))


def remove() -> None:
    """Undo :func:`install`."""
    handler = _installed()
    if handler is not None:
        _root.removeHandler(handler)
        _root.setLevel(logging.NOTSET)


def level_of(environ: Mapping[str, str]) -> int | None:
    """The level that ``INA_LOG`` names; None: none. Raises InvalidInputError."""
    name = environ.get(LEVEL_ENVIRONMENT, "")
    if not name:
        return None
    level = LEVELS.get(name.lower())
    if level is None:
        raise InvalidInputError(f"{LEVEL_ENVIRONMENT}={name}: want one of {', '.join(LEVELS)}")
    return level


def format_of(environ: Mapping[str, str]) -> str:
    """The format that ``INA_LOG_FORMAT`` names, by default text. Raises InvalidInputError."""
    form = environ.get(FORMAT_ENVIRONMENT, "") or FORMATS[0]
    if form not in FORMATS:
        raise InvalidInputError(f"{FORMAT_ENVIRONMENT}={form}: want text or json")
    return form


def _installed() -> logging.Handler | None:
    return next((h for h in _root.handlers if isinstance(h, _StderrHandler)), None)


class _StderrHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to what ``sys.stderr`` is at that moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def _time(record: logging.LogRecord) -> str:
    """ISO 8601 with milliseconds and the zone's offset: local time, as other logs of the host."""
    at = datetime.fromtimestamp(record.created, timezone.utc).astimezone()
    return at.isoformat(timespec="milliseconds")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        # One event, one line, whatever line breaks the message holds; a traceback follows it.
        message = " ".join(record.getMessage().split())
        line = f"{_time(record)} {record.levelname} {record.name}[{record.process}]: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
