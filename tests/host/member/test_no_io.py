"""The rules of a membership know no thread, socket or clock: so whoever drives them is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layers import PACKAGE, imported

RULES = sorted((PACKAGE / "host" / "member").glob("*.py"))
FORBIDDEN = ("asyncio", "os", "select", "socket", "subprocess", "threading", "time")
DRIVERS = ("client", "thread_driver", "own_host", "session", "shm", "udp", "watcher", "halts")


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_they_import_none(path: Path) -> None:
    names = imported(path)
    assert [name for name in names if name.split(".")[0] in FORBIDDEN] == []
    assert [
        name for name in names if name.startswith(tuple(f"ina.host.{it}." for it in DRIVERS))
    ] == []
