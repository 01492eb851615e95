"""A controller that answers as a test wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.worlds.fakes.operator import FakeController, serving


@pytest.fixture
def fake() -> FakeController:
    return FakeController()


@pytest.fixture
def address(fake: FakeController) -> Iterator[str]:
    with serving(fake) as address:
        yield address
