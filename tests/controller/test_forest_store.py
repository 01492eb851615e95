"""Jobs over several trees are in the store as they are, also those that an older ina put there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from ina.controller.change import Change
from ina.controller.job import JobState
from ina.controller.store import Store, open_store
from ina.controller.store.schema import APPLICATION_ID, MIGRATIONS
from ina.trees.forest import Forest, forest_of
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange
from ina.trees.tree import Node, with_aggregator
from tests.controller.forests import AT_A_SPINE, forests, over
from tests.controller.test_store import job, open_file, stored_change
from tests.controller.test_tree_plan import job_over


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with closing(open_store(store_url)) as opened:
        yield opened


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(forest=forests(), other=forests())
def test_forests_come_back(store: Store, forest: Forest, other: Forest) -> None:
    """Of a job, and of the mapping that it changes to; they are put over those of before."""
    made = job(1, state=JobState.RUNNING)
    made.forest, made.mapping_numbers = forest, (made.number, *range(50, 49 + len(forest)))
    made.memory = {name: SlotRange(8, 64, 64) for name in forest.switches}
    to = {name: SlotRange(80, 64, 64) for name in other.switches}
    numbers = tuple(range(70, 70 + len(other)))
    made.change = Change(Mapping(made.epoch + 1, numbers, other, to, 32), "a test")
    claim = store.claim("test")
    claim.save(made)
    try:
        (stored,) = store.load(0.0)
        assert stored.job.mapping.numbers == made.mapping.numbers
        assert (stored.job.forest, stored.job.memory) == (forest, made.memory)
        assert stored_change(store)["change"]["other"] == vars(made.change.other)
        assert stored.job.numbers == made.numbers
    finally:
        claim.remove(made)


def test_ports_of_workers_past_their_top_of_rack_come_back(store: Store) -> None:
    made = job_over(AT_A_SPINE)
    store.claim("test").save(made)
    assert store.load(0.0)[0].job.forest == forest_of(AT_A_SPINE)


def test_a_file_of_before_forests_opens_and_a_job_with_two_aggregators_has_two_trees(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "s.db")
    (before,) = [at for at, it in enumerate(MIGRATIONS) if "rank_ports" in " ".join(it)]
    leaves = "(1, {0}, 'leaf{1}', {2}, {3}, {1}, 9, '{4}', 5, 64, 32, NULL, NULL, NULL, 1)"
    with sqlite3.connect(path) as db:
        for statements in MIGRATIONS[:before]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {before}")
        db.execute(
            "INSERT INTO jobs (number, name, state, epoch, world_size, first_slot, slots,"
            " reserved_slots, tenant, priority, window_packets, created_unix_s, token_hash,"
            " key_seed, mode, further_numbers)"
            " VALUES (1, 'j', 'running', 5, 4, 0, 0, 0, '', 0, 8, 0, x'', x'', 'shared', '7')"
        )
        for row in (
            "(1, 0, 'agg', NULL, 0, 0, 0, '', 0, 32, 32, NULL, NULL, NULL, 0)",
            "(1, 1, 'agg2', NULL, 0, 4, 22, '', 0, 32, 32, NULL, NULL, NULL, 0)",
            "(1, 2, 'spine', 0, 0, 3, 21, '', 5, 64, 32, NULL, NULL, NULL, 1)",
            leaves.format(3, 1, 2, 0, "0,1"),
            leaves.format(4, 2, 2, 1, "2,3"),
        ):
            db.execute(f"INSERT INTO nodes VALUES {row}")
    bare = over("spine")
    aggregators = [
        (Node("agg", (), ("spine",), (3,)), 21),
        (Node("agg2", (), ("spine",), (4,)), 22),
    ]
    forest = forest_of(*(with_aggregator(bare, root, port) for root, port in aggregators))
    with closing(open_file(path)) as store:
        for _ in range(2):  # as it was brought forward, and as it is written now
            (stored,) = store.load(0.0)
            assert stored.job.forest == forest
            assert stored.job.mapping.numbers == (1, 7)
            own, shared = SlotRange(0, 32, 32), SlotRange(5, 64, 32)
            assert stored.job.memory == {
                "agg": own, "agg2": own, "spine": shared, "leaf1": shared, "leaf2": shared
            }  # fmt: skip
            store.claim("test").save(stored.job)
