"""The environment of p4runtime-shell and PTF: installed once, kept in pytest's cache."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ina.cli.switch.shell_env import ShellEnvironmentError, shell_python

PTF = "ptf==0.12.0"


@pytest.fixture(scope="session")
def with_shell(pytestconfig: pytest.Config) -> Path:
    """A Python that has p4runtime-shell, and PTF: one environment is installed sooner than two."""
    try:
        return shell_python(pytestconfig.rootpath / ".pytest_cache" / "d", (PTF,))
    except ShellEnvironmentError as error:
        if _index_answers():
            raise
        pytest.skip(f"PyPI cannot be reached: {error}")


def _index_answers() -> bool:
    try:
        socket.create_connection(("pypi.org", 443), timeout=10).close()
    except OSError:
        return False
    return True
