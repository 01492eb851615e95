"""Small programs: those of files compiled as they ship, into a cache; those of tests quickly."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from tests.selection import LONG
from tests.switch.ir.small import Json
from tests.switch.quick import quick

PROGRAMS = Path(__file__).parent.parent / "programs"

Load = Callable[[str], Pipeline]
Run = Callable[[Json], Pipeline]


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


@pytest.fixture
def run(cache_dir: Path) -> Iterator[Run]:
    """Of a program in BMv2 JSON; in ``make test-long`` compiled as it ships."""
    with ExitStack() as opened:

        def _run(program: Json) -> Pipeline:
            text = json.dumps(program)
            if LONG:
                return opened.enter_context(default_target(cache_dir).load(text))
            [built] = opened.enter_context(quick([text]))
            return built.main

        yield _run


def csum16(data: bytes | bytearray) -> int:
    """IP's sum, of an even number of bytes."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
