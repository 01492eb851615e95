"""What a job needs on each switch of a tree is what the conformance cases write for such a node."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.job import Job, JobSpec
from ina.controller.switches.plan import FIRST_GROUP, plan_job
from ina.p4 import names
from ina.protocol.addresses import mac_of
from ina.protocol.peer import Peer
from ina.protocol.spec import path_of
from ina.protocol.switch_model import Attachment, ModelJob, Parent
from ina.tables.values import Entry, Group
from ina.testing import state
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.slots import SlotRange
from ina.trees.tree import Node, Tree
from tests.selection import examples
from tests.worlds.fakes.switches import placed_over

NUMBER, EPOCH, SLOTS = 7, 0x0003_0009, 64
_OFFSET = FIRST_GROUP + NUMBER - state.job_group(NUMBER)


def racks(*sizes: int, at_root: int = 0) -> Tree:
    """A spine above racks of these sizes, with some workers at the spine itself."""
    ranks = iter(range(at_root, at_root + sum(sizes)))
    leaves = [
        Node(
            f"leaf{number}", tuple(next(ranks) for _ in range(size)), parent="spine", parent_port=9
        )
        for number, size in enumerate(sizes)
    ]
    below = tuple(leaf.switch for leaf in leaves)
    ports = tuple(range(100, 100 + len(leaves)))
    return Tree((Node("spine", tuple(range(at_root)), below, ports), *leaves))


def three_levels() -> Tree:
    return Tree(
        (
            Node("core", (), ("pod0", "pod1"), (1, 2)),
            Node("pod0", (0,), ("leaf0",), (5,), "core", 30),
            Node("pod1", (4, 5), (), (), "core", 31),
            Node("leaf0", (1, 2, 3), (), (), "pod0", 32),
        )
    )


TREES = [racks(2, 3), racks(1, 1), racks(4, 1, at_root=2), racks(*[1] * 32), three_levels()]


def job_over(tree: Tree) -> Job:
    ranks = sorted(rank for node in tree for rank in node.ranks)
    memory = {node.switch: SlotRange(64 * place, SLOTS, SLOTS) for place, node in enumerate(tree)}
    placed = placed_over(forest_of(tree), memory, NUMBER, EPOCH)
    job = Job(JobSpec("j", len(ranks)), NUMBER, 0.0, placed, epoch=EPOCH)
    for rank in ranks:
        job.members[rank] = Endpoint(
            Peer(IPv4Address("10.0.0.1") + rank, 4000 + rank), 1 + rank % 8
        )
    return job


def addresses(tree: Tree) -> dict[str, Peer]:
    found = {}
    for place, node in enumerate(tree):
        address = IPv4Address("10.9.0.1") + place
        found[node.switch] = Peer(address, 17760, mac_of(address))
    return found


def as_model(job: Job, switch: str) -> ModelJob:
    """The same node, as the reference model has it."""
    assert job.forest is not None
    (tree,) = job.forest
    node, where = tree[switch], addresses(tree)

    def at(name: str, port: int) -> Attachment:
        return Attachment(port, int(where[name].address), where[name].udp_port)

    workers = [
        Attachment(job.members[rank].switch_port, int(job.members[rank].peer.address), 4000 + rank)
        for rank in node.ranks
    ]
    workers += [at(name, port) for name, port in zip(node.nodes, node.ports, strict=True)]
    parent = None
    if node.parent is not None:
        above = at(node.parent, node.parent_port)
        parent = Parent.above(above, tree.way(node), tree.level(node), len(workers))
    first = job.memory[switch].first
    return ModelJob(NUMBER, EPOCH, first, SLOTS, tuple(workers), parent=parent)


def plain(item: object) -> object:
    """An entry or a group, but for MAC addresses, which the cases make up."""
    if isinstance(item, Group):
        return _ours(item.number), item.replicas
    assert isinstance(item, Entry)
    params = {name: value for name, value in item.params if name != "dst_mac"}
    if "group" in params:
        params["group"] = _ours(params["group"])
    return item.table, item.match, item.action, tuple(params.items())


def _ours(group: int) -> int:
    """The controller's number of a group, of which the cases have another."""
    return group if group >= FIRST_GROUP else group + _OFFSET


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{len(tree)} switches")
def test_every_node_gets_what_the_conformance_cases_write(tree: Tree) -> None:
    job = job_over(tree)
    for node in tree:
        plan = plan_job(job, node.switch, addresses(tree))
        ours = Counter(plain(item) for stage in plan.stages for item in stage)
        theirs = Counter(plain(item) for item in state.job_state(as_model(job, node.switch)))
        assert ours == theirs, node.switch
        assert tuple(plan.endpoints) == node.ranks


def test_members_come_last_and_neighbours_have_their_macs() -> None:
    tree = racks(2, 1)
    plan = plan_job(job_over(tree), "leaf0", addresses(tree))
    assert all(isinstance(it, Entry) and it.table == names.MEMBERS for it in plan.stages[-1])
    assert [dict(it.match)["kind"] for it in plan.switches] == [2]  # the parent's results
    (up,) = [
        dict(item.params)
        for item in plan.stages[0]
        if isinstance(item, Entry) and ("worker", 254) in item.match
    ]
    assert up["dst_mac"] == mac_of(IPv4Address("10.9.0.1"))


@settings(max_examples=examples(100))
@given(st.lists(st.integers(1, 32), min_size=2, max_size=32), st.integers(0, 0))
def test_each_rank_has_a_way_of_its_own(sizes: list[int], at_root: int) -> None:
    tree = racks(*sizes, at_root=at_root)
    ranks = [rank for node in tree for rank in node.ranks]
    paths = {tree.path(rank) for rank in ranks}
    assert len(paths) == len(ranks) == sum(sizes)
    for rank in ranks:
        leaf = tree.first_node(rank)
        assert tree.path(rank) == path_of((*tree.way(leaf), leaf.index_of_rank(rank)))
        assert tree.path(rank) & tree.path_mask(leaf) in tree.children_ways(leaf)
        above = tree.root
        assert tree.path(rank) & tree.path_mask(above) in tree.children_ways(above)
