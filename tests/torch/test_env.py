"""The environment variables: defaults, all of them set, and a name that does not exist."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from ina.torch import env
from ina.torch.env import Settings

_PAGE = Path(__file__).parents[2] / "docs" / "pytorch.md"


def test_defaults() -> None:
    assert Settings.from_environ({"PATH": "/bin"}) == Settings()


def test_all_set(tmp_path: Path) -> None:
    environ = {
        "INA_JOB": "mine",
        "INA_HOST": "10.0.0.1",
        "INA_VALUES": "64",
        "INA_LOSS_RATE": "0.25",
        "INA_LOSS_SEED": "7",
        "INA_STATS_DIR": str(tmp_path),
        "INA_LEAVE_TIMEOUT_S": "2.5",
    }
    assert Settings.from_environ(environ) == Settings(
        None, "mine", "10.0.0.1", 64, 0.25, 7, tmp_path, 2.5
    )
    assert Settings.from_environ({"INA_CONTROLLER": "host:99"}).controller == "host:99"


def test_unknown_name_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert Settings.from_environ({"INA_CONTROLER": "host:99"}) == Settings()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "INA_CONTROLER is not known" in record.getMessage()


def test_the_page_and_the_docstring_name_the_same_variables() -> None:
    assert env.__doc__ is not None
    rows = [line for line in _PAGE.read_text().splitlines() if line.startswith("| `INA_")]
    on_page = {name for row in rows for name in re.findall(r"`(INA_\w+)`", row.split("|")[1])}
    in_docstring = set(re.findall(r"^(INA_\w+)", env.__doc__, re.MULTILINE))
    assert on_page == in_docstring == env.KNOWN
