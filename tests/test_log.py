"""Log lines: who sets them up, how they look, and what the command line makes of them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator

import pytest

from ina import log
from ina.cli import main
from ina.errors import InvalidInputError

Capture = pytest.CaptureFixture[str]
_ina = logging.getLogger("ina")
_line = logging.getLogger("ina.some.module")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (log.LEVEL_ENVIRONMENT, log.FORMAT_ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    log.remove()
    yield
    log.remove()


def test_without_ina_log_a_program_keeps_its_own_logging() -> None:
    before = list(_ina.handlers)
    log.from_environ({})
    assert _ina.handlers == before
    assert _ina.level == logging.NOTSET
    assert _ina.propagate


def test_with_ina_log_lines_have_time_level_logger_and_process(capsys: Capture) -> None:
    log.from_environ({"INA_LOG": "info"})
    log.from_environ({"INA_LOG": "debug"})  # another part of ina that is imported
    _line.debug("hidden")
    _line.info("job %r\nruns", "a")
    (line,) = capsys.readouterr().err.splitlines()
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
    assert re.fullmatch(stamp + r" INFO ina\.some\.module\[\d+\]: job 'a' runs", line)


def test_a_programs_own_handlers_get_the_lines_too(caplog: pytest.LogCaptureFixture) -> None:
    log.from_environ({"INA_LOG": "info"})
    _line.info("heard")
    assert "heard" in caplog.text


def test_json_lines_have_the_event_in_fields(capsys: Capture) -> None:
    log.from_environ({"INA_LOG": "info", "INA_LOG_FORMAT": "json"})
    _line.warning("job %r", "a", extra=log.fields(event="JOB_CREATED", ranks=[1]))
    said = json.loads(capsys.readouterr().err)
    assert said["message"] == "job 'a'"
    assert (said["level"], said["logger"]) == ("warning", "ina.some.module")
    assert (said["event"], said["ranks"]) == ("JOB_CREATED", [1])


def test_a_wrong_level_is_said_and_trains_on(capsys: Capture) -> None:
    log.from_environ({"INA_LOG": "loud"})
    assert "INA_LOG=loud: want one of debug, info, warning, error" in capsys.readouterr().err
    with pytest.raises(InvalidInputError, match="INA_LOG_FORMAT=xml: want text or json"):
        log.format_of({"INA_LOG_FORMAT": "xml"})


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"INA_LOG": "loud"}, "error: INA_LOG=loud: want one of debug, info, warning, error\n"),
        ({"INA_LOG_FORMAT": "xml"}, "error: INA_LOG_FORMAT=xml: want text or json\n"),
    ],
)
def test_the_command_line_refuses_wrong_values(
    environ: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main.run(["p4", "info"]) == 2
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("arguments", "environ", "level"),
    [
        (["p4", "info"], {}, logging.WARNING),
        (["p4", "info"], {"INA_LOG": "error"}, logging.ERROR),
        (["-v", "p4", "info"], {"INA_LOG": "error"}, logging.INFO),
        (["p4", "info", "-v"], {}, logging.INFO),
        (["p4", "info", "-vv"], {}, logging.DEBUG),
        (["-v", "p4", "info", "-v"], {}, logging.DEBUG),
        (["p4", "info", "--log-format", "json"], {}, logging.WARNING),
    ],
)
def test_every_command_takes_v_and_a_format(
    arguments: list[str],
    environ: dict[str, str],
    level: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    installed: list[tuple[int, str]] = []
    install = log.install

    def spy(level: int, form: str) -> None:
        installed.append((level, form))
        install(level, form)

    monkeypatch.setattr(log, "install", spy)
    assert main.run(arguments) == 0
    assert installed[-1] == (level, "json" if "json" in arguments else "text")
    assert _ina.level == logging.NOTSET, "nothing is left behind"


def test_a_wrong_format_is_one_line(capsys: Capture) -> None:
    assert main.run(["p4", "info", "--log-format", "xml"]) == 2
    assert capsys.readouterr().err == "error: --log-format xml: want text or json\n"
