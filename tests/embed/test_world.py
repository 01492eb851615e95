"""Embeddings in virtual time: what is read and learned is right, whatever the network does."""

from __future__ import annotations

import numpy as np
import pytest

from ina.extension.embed import Optimizer, Rule, TableSpec
from tests.embed.world import Faults, Plan, World, draw

SHORT = 40
LONG = 10_000


@pytest.mark.parametrize("first", range(0, SHORT, 10))
def test_no_sum_is_wrong_and_nobody_hangs(first: int) -> None:
    for seed in range(first, first + 10):
        assert World(draw(seed)).run().wrong == [], seed


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, LONG, 1000))
def test_no_sum_is_wrong_in_many_seeds(first: int) -> None:
    for seed in range(first, first + 1000):
        assert World(draw(seed)).run().wrong == [], seed


def plan_of(faults: Faults, rule: Rule, seed: int = 5) -> Plan:
    tables = [
        TableSpec(rows=50, dim=16, first_owner=0, owners=3),
        TableSpec(rows=20, dim=64, first_owner=2, owners=1),
    ]
    return Plan(seed, 3, tables, 4, faults, Optimizer(rule=rule))


@pytest.mark.parametrize("rule", [Rule.ADAGRAD, Rule.ROWWISE_ADAGRAD])
def test_losses_change_no_bit(rule: Rule) -> None:
    worlds = [
        World(plan_of(faults, rule), rate=0.1).run()
        for faults in (Faults(), Faults(loss=0.2, copies=0.1, late=0.1))
    ]
    for world in worlds:
        assert world.wrong == []
    assert sorted(worlds[0].read) == sorted(worlds[1].read)
    for host in range(3):
        for table in range(2):
            one, other = (world.rows(host, table) for world in worlds)
            assert np.array_equal(one, other)


@pytest.mark.parametrize("rule", [Rule.ADAGRAD, Rule.ROWWISE_ADAGRAD])
def test_rows_that_become_hot_or_cease_to_be_keep_what_the_optimizer_knows(rule: Rule) -> None:
    """Hot rows add up host by host, others message by message: sums differ by rounding alone."""
    never, always = (plan_of(Faults(), rule) for _ in range(2))
    always.refresh_steps = 1
    worlds = [World(plan, rate=0.1).run() for plan in (never, always)]
    for host in range(3):
        for table in range(2):
            cold, hot = (world.rows(host, table) for world in worlds)
            np.testing.assert_allclose(hot, cold, rtol=1e-5, atol=1e-5)


def test_who_is_lost_is_named_by_all_others() -> None:
    world = World(plan_of(Faults(dies=(1, 2)), Rule.SGD)).run()
    assert world.wrong == []
    assert set(world.lost) == {0, 2}
    assert all(text.startswith("host 1 ") for text in world.lost.values())


def test_flipped_bits_are_seen() -> None:
    world = World(plan_of(Faults(flips=0.2), Rule.SGD)).run()
    assert world.wrong == []
    assert sum(node.damaged for node in world.nodes) > 0


def test_hosts_that_disagree_about_the_rate_give_up() -> None:
    world = World(plan_of(Faults(), Rule.SGD))
    nodes = world.nodes
    for host, node in enumerate(nodes):
        node.end_step(0, 0.5 if host == 2 else 1.0)
    for _ in range(4):
        for host, node in enumerate(nodes):
            node.poll(0)
            for to, packet in node.take_packets(0):
                nodes[to].receive(host, packet, 0)
    assert {node.fault for node in nodes} == {
        "step 0: hosts 0 and 2 disagree about the learning rate"
    }
