"""Each input of the corpora, at its door: examples, and all that fuzzing has found so far."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.registry import CORPORA, DOORS, PIPELINE, Door, enter_of
from fuzz.seeds.__main__ import stale
from ina.testing.doors import door_names

MOST_FILES, MOST_BYTES = 100, 512 << 10
INPUTS = [(door, path) for door in DOORS.values() for path in door.inputs()]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The controller tells each time what becomes of jobs."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("door", "path"), INPUTS, ids=[str(path.relative_to(CORPORA)) for _, path in INPUTS]
)
def test_the_door_keeps_its_promises(door: Door, path: Path) -> None:
    enter_of(door)(path.read_bytes())


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_the_examples_are_of_this_ina(door: Door) -> None:
    """``python -m fuzz.seeds`` writes them anew, after a change of the wire format for example."""
    assert list(stale(door)) == []


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_corpus_is_small(door: Door) -> None:
    sizes = [path.stat().st_size for path in door.inputs()]
    assert 5 <= len(sizes) <= MOST_FILES
    assert sum(sizes) <= MOST_BYTES


def test_each_door_has_a_corpus_and_each_corpus_a_door() -> None:
    assert {path.name for path in CORPORA.iterdir()} == set(DOORS)


def test_the_registry_has_each_door_of_the_c_plus_plus() -> None:
    native = {door.name for door in DOORS.values() if door.is_native}
    assert native == {*door_names(), PIPELINE}
