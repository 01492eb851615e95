"""Inference in virtual time: no answer is wrong and nobody hangs, whatever the network does."""

from __future__ import annotations

import pytest

from tests.infer.world import World, draw

SHORT = 8
LONG = 4000


@pytest.mark.parametrize("first", range(0, SHORT, 4))
def test_no_answer_is_wrong_and_nobody_hangs(first: int) -> None:
    for seed in range(first, first + 4):
        assert World(draw(seed)).run().wrong == [], seed


@pytest.mark.parametrize("seed", [2283, 4084])
def test_nobody_counts_as_lost_whose_answers_are(seed: int) -> None:
    """A quarter of the packets is lost."""
    assert World(draw(seed)).run().wrong == []


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, LONG, 400))
def test_no_answer_is_wrong_in_many_seeds(first: int) -> None:
    for seed in range(first, first + 400):
        assert World(draw(seed)).run().wrong == [], seed
