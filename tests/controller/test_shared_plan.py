"""What a job of mode shared needs on each node of its tree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from ina.controller.job import Job, JobSpec
from ina.controller.switches.plan import plan_job
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.protocol.shared_model import Claims
from ina.protocol.switch_model import ModelJob
from ina.tables.values import Entry
from ina.testing import state
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import forest_of
from ina.trees.host_nodes import with_host_nodes
from ina.trees.mapping import Mapping, Part
from ina.trees.slots import SlotRange
from ina.trees.tree import HostNode, Node, Tree, below_itself, single, with_aggregator
from tests.worlds.fakes.placed import addresses, as_model, job_over, plain, racks
from tests.worlds.fakes.switches import placed_over

AGE_US = 7000


def below(tree: Tree, name: str = "aggregator") -> Tree:
    """With an aggregator above it, behind port 20 of its former root."""
    return with_aggregator(tree, Node(name, (), (tree.root.switch,), (3,)), 20)


TREES = [
    below(single("only", 3)),
    below(single("only", 32)),
    below(racks(2, 3)),
    below(racks(2, 2, at_root=2)),
    below_itself(racks(2, 2, at_root=1)),
]


def shared_job(tree: Tree, claimable: int = 12) -> Job:
    job = job_over(tree)
    job.mapping.mode = names.SHARED
    for node in tree:
        if node.is_shared:
            job.memory[node.switch] = replace(job.memory[node.switch], reserved=claimable)
    return job


def model_of(job: Job, name: str) -> ModelJob:
    assert job.forest is not None
    (tree,) = job.forest
    node = tree[name]
    sets = {node.index_of_node(it) for it in node.nodes if tree[it].is_shared}
    memory = job.memory[name]
    claims = Claims(memory.slots // 2 - 1, memory.reserved, 2 * AGE_US, AGE_US)
    return replace(
        as_model(job, name),
        bits=tuple(tree.child_bits(node)),
        sets=frozenset(sets),
        claims=claims if node.is_shared else None,
    )


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{len(tree)} nodes")
def test_every_node_gets_what_the_conformance_cases_write(tree: Tree) -> None:
    job = shared_job(tree)
    for node in tree:
        plan = plan_job(job, node.switch, addresses(tree), age_us=AGE_US)
        ours = Counter(plain(item) for item in plan.items)
        theirs = Counter(plain(item) for item in state.job_state(model_of(job, node.switch)))
        assert ours == theirs, node.switch


@pytest.mark.parametrize("at_root", [0, 2])
def test_of_lanes_that_are_dealt_each_part_has_what_a_job_of_its_own_would_have(
    at_root: int,
) -> None:
    bare = racks(2, 2, at_root=at_root)
    roots = [(Node(name, (), (bare.root.switch,), (3,)), 20 + at) for at, name in enumerate("ab")]
    forest = forest_of(*(with_aggregator(bare, root, port) for root, port in roots))
    job = shared_job(forest.trees[0])
    memory = {name: SlotRange(8, 64, 13) for name in forest.switches}
    memory |= {name: SlotRange(8, 32, 32) for name in "ab"}
    job.placed = placed_over(forest, memory, job.number, job.epoch, mode=names.SHARED)
    where = addresses(forest.trees[0]) | addresses(forest.trees[1])
    for switch in forest.switches:
        whole = plan_job(job, switch, where, age_us=AGE_US)
        parts = [it for it in job.mapping.parts if switch in it.tree]
        assert len(parts) == (1 if switch in "ab" else 2)
        of_parts = [
            item
            for part in parts
            for item in plan_job(job, switch, where, age_us=AGE_US, by=alone(job, part)).items
            if len(parts) == 1 or not isinstance(item, Entry) or item.table != names.OWNERS
        ]
        assert Counter(whole.items) == Counter(of_parts)
        assert len(set(whole.items)) == len(of_parts)
        rows = [*whole.switches, *(row for own in whole.members.values() for row in own)]
        assert Counter(rows) == Counter(whole.stages[-1])


def alone(job: Job, part: Part) -> Mapping:
    """Of a job that had this part of its lanes, and no other."""
    return Mapping(
        *(job.epoch, (part.number,), forest_of(part.tree), dict(part.memory), 1), mode=job.mode
    )


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{len(tree)} nodes")
def test_a_worker_has_one_bit_that_is_the_same_everywhere(tree: Tree) -> None:
    ranks = sorted(rank for node in tree for rank in node.ranks)
    for node in tree:
        bits = tree.child_bits(node)
        for rank in node.ranks:
            assert bits[node.index_of_rank(rank)] == 1 << rank
        for name in node.nodes:
            assert bits[node.index_of_node(name)] == sum(tree.child_bits(tree[name]))
    assert sum(tree.child_bits(tree.root)) == tree.full_bitmap == (1 << len(ranks)) - 1


def test_a_node_on_a_host_is_one_contributor_and_believed_no_more_than_a_worker() -> None:
    at = HostNode(1, Peer(IPv4Address("10.0.0.9"), 4433, 5), switch_port=7, uplink_port=1)
    members = {rank: Endpoint(Peer(IPv4Address("10.0.0.1") + rank, 4000), 1) for rank in range(4)}
    for rank in (1, 3):
        members[rank] = replace(members[rank], node=at)
    placed = below(Tree((Node("only", (0, 1, 2)),)))
    tree = with_host_nodes(placed, members)
    assert tree["only"].ranks == (0, 2)
    assert tree[at.name].ranks == (1, 3)
    assert tree.child_bits(tree["only"]) == (1, 4, 2)
    assert tree.child_bits(tree[at.name]) == (1, 2)  # its own business
    assert tree.full_bitmap == 7
    memory = {"only": SlotRange(0, 64, 32), "aggregator": SlotRange(0, 64, 64)}
    mapping = placed_over(forest_of(tree), memory, 7, 9, mode=names.SHARED)
    job = Job(JobSpec("j", 4), 7, 0.0, mapping, epoch=9, members=members)
    where = addresses(tree)
    members_of_switch = plan_job(job, "only", where, age_us=AGE_US).stages[-1]
    rows = [it for it in members_of_switch if isinstance(it, Entry)]
    admitted = {(it.action, *(value for _, value in it.params)) for it in rows}
    assert admitted == {
        (names.ADMIT_MEMBER, 1), (names.ADMIT_MEMBER, 2), (names.ADMIT_MEMBER, 4),
        (names.ADMIT_PARENT,),
    }  # fmt: skip
    (own,) = plan_job(job, at.name, where).stages[1]
    assert isinstance(own, Entry)
    assert own.action == names.ADMIT_INNER_JOB


def test_an_aggregator_on_a_host_is_the_parent_of_the_switch_and_has_sets_below() -> None:
    at = HostNode(0, Peer(IPv4Address("10.0.0.9"), 4433, 5), switch_port=20, uplink_port=1)
    top = Tree((Node("only", (0, 1)),))
    tree = with_aggregator(top, Node(at.name, (), ("only",), (1,), host=at), 20)
    assert (tree.has_one_switch, [it.switch for it in tree.switches]) == (True, ["only"])
    assert (tree.rack(1), tree.depth(tree["only"]), tree.level(tree.root)) == ("only", 1, 2)
    members = {rank: Endpoint(Peer(IPv4Address("10.0.0.1") + rank, 4000), 1) for rank in range(2)}
    memory = {"only": SlotRange(8, 64, 32)}
    placed = placed_over(forest_of(tree), memory, 7, 9, mode=names.SHARED)
    job = Job(JobSpec("j", 2), 7, 0.0, placed, epoch=9, members=members)
    assert (job.switch, job.island, job.slots, job.lanes) == ("only", "only", 64, 32)
    assert job.dependent(0) == ()  # they are not dead with it, but their job ends
    where = addresses(Tree((Node("only"),)))
    plan = plan_job(job, "only", where, age_us=AGE_US)
    parent = {dict(it.match)["src_addr"] for it in plan.switches}
    assert parent == {int(at.peer.address)}
    (root,) = plan_job(job, at.name, where).stages[1]
    assert isinstance(root, Entry)
    assert (root.action, dict(root.params)["slots"]) == (names.ADMIT_JOB, 64)
    (below_it,) = plan_job(job, at.name, where).stages[2]
    assert isinstance(below_it, Entry)
    assert (below_it.action, below_it.params) == (names.ADMIT_SET, (("worker_bits", 3),))


def test_more_contributors_than_bits_are_refused_in_one_line() -> None:
    with pytest.raises(JobRequestError, match=r"^33 contributions .* use mode 'pool'$"):
        below(racks(30, 3))
