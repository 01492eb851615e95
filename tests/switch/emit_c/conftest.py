"""Small programs, compiled once a session into a cache of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target

PROGRAMS = Path(__file__).parent.parent / "programs"

Load = Callable[[str], Pipeline]


@pytest.fixture
def load(cache_dir: Path) -> Iterator[Load]:
    """A fresh state of one of tests/switch/programs."""
    opened: list[Pipeline] = []

    def _load(name: str) -> Pipeline:
        pipeline = default_target(cache_dir).load(PROGRAMS / f"{name}.json")
        opened.append(pipeline)
        return pipeline

    yield _load
    for pipeline in opened:
        pipeline.close()
