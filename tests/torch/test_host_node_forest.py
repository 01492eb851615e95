"""A job with nodes on its hosts is summed over two trees: what a host adds up goes up in both."""

from __future__ import annotations

import asyncio

import numpy as np

from ina.host import Session
from ina.rpc import controller_pb2 as pb2
from ina.trees.forest import Forest, forest_of
from tests.torch.host_group import HOSTS, Group
from tests.worlds.processes.controllers import coordinator
from tests.worlds.processes.two_racks import TIMEOUT_S
from tests.worlds.processes.two_spines import Shown, over, two_spines

RACKS = ((0, 2), (3,))
"""Of who sends to switches: ranks 0 and 3 run their hosts' nodes, and 2 is alone."""
BOTH = Forest((over("spine1", RACKS), over("spine2", RACKS)), (1, 3))
SECOND = forest_of(over("spine2", RACKS))
SUMS = 40


async def test_hosts_of_several_ranks_follow_from_one_forest_to_another() -> None:
    parts = np.random.default_rng(2).integers(-(1 << 20), 1 << 20, (len(HOSTS), 9000), np.int32)
    want = parts.sum(0, np.int32)
    shown: list[pb2.TreeNode] = []
    async with two_spines(BOTH) as app:
        loop, show = asyncio.get_running_loop(), Shown(app)
        changes, registry = coordinator(app).changes, coordinator(app).registry

        async def change(forest: Forest) -> None:
            job = registry.get("job")
            assert job.forest is not None
            assert {rank: at.node is None for rank, at in job.senders.items()} == {
                0: False, 2: True, 3: False
            }  # fmt: skip
            await changes.change(job, forest=forest, why="a test")

        def is_over() -> bool:
            return registry.get("job").change is None

        def work(session: Session, rank: int) -> int:
            wrong = 0
            for number, forest in enumerate((None, SECOND, BOTH)):
                if rank == 0 and forest is not None:
                    asyncio.run_coroutine_threadsafe(change(forest), loop).result(TIMEOUT_S)
                for _ in range(SUMS):
                    wrong += int((session.all_reduce(parts[rank]) != want).any())
                over_now = np.zeros(1, np.int32)
                while not over_now[0]:  # rank 0 says when
                    over_now = session.all_reduce(np.array([rank == 0 and is_over()], np.int32))
                if rank == 0 and number == 0:
                    shown.extend(show())
            return wrong

        answers = await asyncio.wait_for(Group(HOSTS).together(app, work), 2 * TIMEOUT_S)
        assert registry.slots_used() == 0
    assert answers == [0] * len(HOSTS)
    nodes = [(it.tree, it.switch, it.parent) for it in shown if it.switch.startswith("host")]
    assert [(tree, parent) for tree, _, parent in nodes] == [
        (0, "leaf1"), (0, "leaf2"), (1, "leaf1"), (1, "leaf2")
    ]  # fmt: skip
    assert {it.unread for it in shown if it.tree and it.switch.startswith("host")} == {
        "counted in the first tree"
    }
