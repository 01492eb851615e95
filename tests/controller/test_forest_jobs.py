"""Jobs over a forest: soft switches that reach each other by their UDP ports, and real sessions."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from ina.controller.app import ControllerApp
from ina.controller.job import Job
from ina.host import Session
from ina.rpc import controller_pb2 as pb2
from ina.trees.forest import Forest, forest_of
from ina.trees.tree import Node, Tree
from tests.worlds.processes.controllers import coordinator
from tests.worlds.processes.two_racks import ask, together
from tests.worlds.processes.two_spines import CHUNK, HOSTS, LEAVES, PORT, Shown, over, two_spines

CHUNKS = 640
VALUES = CHUNKS * CHUNK


BOTH = Forest((over("spine1"), over("spine2")), (1, 3))
FIRST = forest_of(over("spine1"))
PAST_ITS_LEAF = Forest(
    (
        Tree(
            (
                Node("spine1", (0,), LEAVES, (PORT, PORT), rank_ports=(PORT,)),
                Node("leaf1", (1,), parent="spine1", parent_port=PORT),
                Node("leaf2", (2, 3), parent="spine1", parent_port=PORT),
            )
        ),
        over("spine2"),
    ),
    (1, 1),
)
"""Of its first tree rank 0's first node is the spine."""


def parts_of(seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    rng = np.random.default_rng(seed)
    return rng.integers(-(1 << 20), 1 << 20, (len(HOSTS), VALUES), np.int32)


async def test_each_tree_sums_its_share_of_the_lanes_and_leaves_are_in_both() -> None:
    parts = parts_of(7)
    wanted = parts.sum(0, np.int32)
    shown: list[pb2.TreeNode] = []
    hosts = list(HOSTS)
    async with two_spines(BOTH) as app:
        ask_now = Shown(app)

        def work(session: Session, rank: int) -> bool:
            equal = bool((session.all_reduce(parts[rank]) == wanted).all())
            if rank == 0:
                shown.extend(ask_now())
            trees = session.ticket.trees
            equal &= [(it.lanes_text, it.node) for it in trees] == [
                ("0-7", HOSTS[hosts[rank]]), ("8-31", HOSTS[hosts[rank]])
            ]  # fmt: skip
            return bool((session.all_reduce(parts[rank]) == wanted).all()) and equal

        assert await together(app, list(HOSTS), work) == [True] * len(HOSTS)
        after = await ask(app)
        assert {switch.slots_used for switch in after.switches} == {0}
    assert [(it.tree, it.share, it.switch, it.parent, it.first_slot, it.slots) for it in shown] == [
        (0, 1, "spine1", "", 0, 16),
        (0, 1, "leaf1", "spine1", 0, 16),
        (0, 1, "leaf2", "spine1", 0, 16),
        (1, 3, "spine2", "", 0, 48),
        (1, 3, "leaf1", "spine2", 16, 48),
        (1, 3, "leaf2", "spine2", 16, 48),
    ]
    one, other = (node for node in shown if not node.parent)
    assert one.results + other.results >= CHUNKS
    assert other.results == pytest.approx(3 * one.results, rel=0.1)
    assert other.contributions == pytest.approx(3 * one.contributions, rel=0.1)
    for node in shown:
        assert node.parent == "" or node.passed_down >= node.share * CHUNKS // 4


@pytest.mark.parametrize("loss", [pytest.param(0.0, marks=pytest.mark.long), 0.01])
def test_sums_stay_exact_while_the_forest_becomes_another_and_again_the_first(loss: float) -> None:
    asyncio.run(_changing(loss))


async def _changing(loss: float) -> None:
    parts = parts_of(3)
    wanted = parts.sum(0, np.int32)
    over_forests: list[Forest] = []
    async with two_spines(BOTH, loss) as app:
        changes, registry = coordinator(app).changes, coordinator(app).registry
        ended = threading.Event()

        def work(session: Session, rank: int) -> bool:
            equal = True
            while True:  # all stop after the same sum: rank 0's word is summed, too
                go_on = np.array([int(rank == 0 and not ended.is_set())], np.int32)
                equal &= bool((session.all_reduce(parts[rank]) == wanted).all())
                if not session.all_reduce(go_on)[0]:
                    return equal

        async def change() -> None:
            job = await _running(app)
            try:
                for forest in (FIRST, PAST_ITS_LEAF, BOTH):
                    await changes.change(job, forest=forest, why="a test")
                    while job.change is not None:
                        await asyncio.sleep(0.01)
                    over_forests.append(registry.get("sum").mapping.forest)
                    used = {it for it, has in registry.switches.items() if has.memory.used()}
                    assert used == set(forest.switches)
            finally:
                ended.set()

        changed = asyncio.ensure_future(change())
        assert await together(app, list(HOSTS), work) == [True] * len(HOSTS)
        await changed
        assert registry.slots_used() == 0
    assert over_forests == [FIRST, PAST_ITS_LEAF, BOTH]


async def _running(app: ControllerApp) -> Job:
    """Once it runs."""
    while True:
        for job in coordinator(app).registry:
            if job.state.value == "running":
                return job
        await asyncio.sleep(0.01)


async def test_a_worker_s_first_node_need_not_be_its_top_of_rack() -> None:
    parts = parts_of(5)
    shown: list[pb2.TreeNode] = []
    async with two_spines(PAST_ITS_LEAF) as app:
        ask_now = Shown(app)

        def work(session: Session, rank: int) -> bool:
            equal = session.all_reduce(parts[rank]) == parts.sum(0, np.int32)
            if rank == 0:
                shown.extend(ask_now())
            session.all_reduce(np.zeros(1, np.int32))  # it is asked before anybody leaves
            return bool(equal.all())

        assert await together(app, list(HOSTS), work) == [True] * len(HOSTS)
    by_node = {(it.tree, it.switch): it for it in shown}
    assert list(by_node[0, "spine1"].ranks) == [0]
    half = CHUNKS // 2
    assert by_node[0, "spine1"].contributions == pytest.approx(3 * half, rel=0.1)
    assert by_node[0, "leaf1"].contributions == pytest.approx(half, rel=0.1)
    assert by_node[1, "leaf1"].contributions == pytest.approx(2 * half, rel=0.1)
