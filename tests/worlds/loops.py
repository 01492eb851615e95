"""Tests that are coroutines, each in an event loop of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

import pytest

TIMEOUT_S = 240.0
"""Below pytest-timeout's, which would end the whole run of a worker of xdist."""


def drive(scenario: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end; raises TimeoutError: it has none."""

    async def limited() -> None:
        await asyncio.wait_for(scenario, TIMEOUT_S)

    asyncio.run(limited())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """``async def test_...``, with fixtures as any other."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    drive(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True
