"""Jobs over several trees are in the store as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings

from ina.controller.change import Change
from ina.controller.job import JobState
from ina.controller.store import Store, open_store
from ina.trees.forest import Forest, forest_of
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange
from tests.controller.forests import AT_A_SPINE, forests
from tests.selection import examples
from tests.worlds.fakes.placed import job, job_over, shown, stored_job


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with closing(open_store(store_url)) as opened:
        yield opened


@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(forest=forests(), other=forests())
def test_forests_come_back(store: Store, forest: Forest, other: Forest) -> None:
    """Of a job, and of the mapping that it changes to; they are put over those of before."""
    made = job(1, state=JobState.RUNNING)
    memory = {name: SlotRange(8, 64, 64) for name in forest.switches}
    made.placed = Mapping(3, (made.number, *range(50, 49 + len(forest))), forest, memory, 32)
    to = {name: SlotRange(80, 64, 64) for name in other.switches}
    numbers = tuple(range(70, 70 + len(other)))
    made.change = Change(Mapping(made.epoch + 1, numbers, other, to, 32), "a test")
    claim = store.claim("test")
    claim.save(made)
    try:
        assert stored_job(store) == shown(made)
    finally:
        claim.remove(made)


def test_ports_of_workers_past_their_top_of_rack_come_back(store: Store) -> None:
    made = job_over(AT_A_SPINE)
    store.claim("test").save(made)
    assert store.load(0.0)[0].job.forest == forest_of(AT_A_SPINE)
