"""Hosts' nodes below a tree of switches: where they are put, what is refused, what is stored."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from finsy.proto import p4r

from ina.controller.change import Step
from ina.controller.job import Job, JobSpec, JobState, who_sends_to_switches
from ina.controller.jobs import remapping
from ina.controller.store.rows import get_jobs, put_job
from ina.controller.store.schema import TABLES
from ina.controller.switches.plan import host_entities, plan_job
from ina.p4 import compiled, names
from ina.protocol.addresses import mac_of
from ina.protocol.peer import Peer
from ina.protocol.spec import Kind, path_of
from ina.tables.entities import entities_of
from ina.tables.values import Entry
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import forest_of
from ina.trees.host_nodes import check_nodes, with_host_nodes
from ina.trees.slots import SlotRange
from ina.trees.tree import HostNode, Node, Tree, single
from tests.worlds.fakes.registries import make_registry
from tests.worlds.fakes.switches import placed_over

HOST = IPv4Address("10.0.0.7")
NODE = HostNode(1, Peer(HOST, 4433, mac_of(HOST)), switch_port=9, uplink_port=1)


def alone(rank: int) -> Endpoint:
    return Endpoint(Peer(IPv4Address("10.0.0.20") + rank, 5000 + rank), 3)


def below(node: HostNode, number: int) -> Endpoint:
    return Endpoint(Peer(IPv4Address("127.64.0.0") + number, number), 2, node=node)


MEMBERS = {0: alone(0), 1: below(NODE, 1), 2: alone(2), 3: below(NODE, 2)}
SWITCHES = Tree(
    (
        Node("spine", nodes=("leaf1", "leaf2"), ports=(1, 2)),
        Node("leaf1", (0, 1), parent="spine", parent_port=8),
        Node("leaf2", (2,), parent="spine", parent_port=8),
    )
)


def job_of(tree: Tree) -> Job:
    memory = {node.switch: SlotRange(64, 32, 32) for node in tree.switches}
    placed = placed_over(forest_of(tree), memory, 5, 3)
    return Job(
        JobSpec("j", 4, verify="off"), 5, 0.0, placed, epoch=3, members=dict(MEMBERS),
        state=JobState.RUNNING, created_unix_s=1.0,
    )  # fmt: skip


def test_to_switches_a_host_s_node_is_one_sender() -> None:
    senders = who_sends_to_switches(MEMBERS)
    assert list(senders) == [0, 1, 2]
    assert (senders[1].peer, senders[1].switch_port) == (Peer(HOST, 4433, mac_of(HOST)), 9)


def test_its_ranks_are_below_it_and_it_is_below_their_switch() -> None:
    tree = with_host_nodes(SWITCHES, MEMBERS)
    assert [(node.switch, node.ranks, node.nodes, node.ports) for node in tree] == [
        ("spine", (), ("leaf1", "leaf2"), (1, 2)),
        ("leaf1", (0,), ("host 10.0.0.7:4433",), (9,)),
        ("leaf2", (2,), (), ()),
        ("host 10.0.0.7:4433", (1, 3), (), ()),
    ]
    assert tree.switches == tree.nodes[:3]
    assert tree.path(3) == path_of((0, 1, 1), (2, 1, 1))
    assert [tree.rack(rank) for rank in range(4)] == ["leaf1", "leaf1", "leaf2", "leaf1"]
    assert with_host_nodes(SWITCHES, {rank: alone(rank) for rank in range(3)}) is SWITCHES


def test_both_sides_of_its_link_know_each_other() -> None:
    job = job_of(with_host_nodes(SWITCHES, MEMBERS))
    where = {
        name: Peer(IPv4Address("10.9.0.1") + number, 17760, number)
        for number, name in enumerate(("spine", "leaf1", "leaf2"))
    }
    leaf, host = (plan_job(job, name, where) for name in ("leaf1", NODE.name))
    (child,) = (
        dict(it.match) for it in leaf.switches if dict(it.match)["kind"] == Kind.CONTRIBUTION
    )
    assert (child["ingress_port"], child["src_addr"], child["src_port"]) == (9, int(HOST), 4433)
    (parent,) = (dict(it.match) for it in host.switches)
    assert parent["kind"] == Kind.RESULT
    assert (parent["ingress_port"], parent["src_addr"]) == (1, int(where["leaf1"].address))
    (admit,) = host.stages[1]
    assert admit.action == names.ADMIT_INNER_JOB  # type: ignore[union-attr]
    params = dict(admit.params)  # type: ignore[union-attr]
    assert (params["first_slot"], params["slots"], params["own_level"]) == (0, 32, 1)


def test_who_sends_to_a_node_that_nobody_runs_is_told() -> None:
    other = replace(NODE, peer=Peer(HOST, 1))
    for at, runs in ((alone(1), "none"), (below(other, 1), "another")):
        with pytest.raises(JobRequestError) as refused:
            check_nodes("j", {**MEMBERS, 1: at})
        assert str(refused.value) == (
            "job 'j': rank 3 sends to a node at 10.0.0.7:4433 that rank 1 is to run, and that one"
            f" runs {runs}"
        )


def test_a_job_at_one_switch_gets_its_hosts_nodes_with_the_last_rank() -> None:
    jobs = make_registry()
    jobs.create(JobSpec("j", 4, contributions=3), 0.0)
    for rank in (0, 2, 1, 3):
        job = jobs.join("j", rank, MEMBERS[rank])
    jobs.place(job)
    assert job.state is JobState.STARTING
    assert job.forest is not None
    assert [node.ranks for node in job.forest.trees[0]] == [(0, 2), (1, 3)]
    assert job.verify == "accidents"  # one of them sends over a link
    assert list(job.memory) == [job.switch]
    assert job.rack_of(3) == ""
    assert (job.dependent(1), job.dependent(3)) == ((3,), ())


def test_at_one_switch_alone_a_worker_s_index_is_its_rank_whoever_came_first() -> None:
    jobs = make_registry()
    jobs.create(JobSpec("j", 3), 0.0)
    for rank in (2, 0, 1):
        job = jobs.join("j", rank, alone(rank))
    jobs.place(job)
    assert job.forest == forest_of(single(job.switch, 3))


def test_hosts_that_add_up_make_room_for_more_than_32_workers() -> None:
    jobs = make_registry()
    with pytest.raises(JobRequestError, match="64 workers: one switch sums 1 to 32"):
        jobs.create(JobSpec("j", 64), 0.0)
    with pytest.raises(JobRequestError, match="33 contributions of hosts: one switch sums 1 to 32"):
        jobs.create(JobSpec("j", 64, contributions=33), 0.0)
    with pytest.raises(JobRequestError, match="3 contributions of 2 workers: at most one of each"):
        jobs.create(JobSpec("j", 2, contributions=3), 0.0)
    jobs.create(JobSpec("j", 64, contributions=2), 0.0)
    nodes = [replace(NODE, rank=first, peer=Peer(HOST, 1 + first)) for first in (0, 32)]
    for rank in range(64):
        job = jobs.join("j", rank, below(nodes[rank // 32], rank))
    jobs.place(job)
    assert job.forest is not None
    assert [node.fan_in for node in job.forest.trees[0]] == [2, 32, 32]


def test_too_many_at_a_node_are_told_when_all_have_come() -> None:
    jobs = make_registry()
    job = jobs.create(JobSpec("j", 34, contributions=2), 0.0)
    node = replace(NODE, rank=0)
    for rank in range(33):
        jobs.join("j", rank, below(node, rank))
    jobs.join("j", 33, alone(33))
    with pytest.raises(JobRequestError, match=r"'host 10\.0\.0\.7:4433' would add up 33 contrib"):
        jobs.place(job)


def test_a_host_s_node_gets_what_another_mapping_needs_beside_the_one_it_has() -> None:
    jobs = make_registry(slots=1 << 15, job_slots=2048)
    jobs.create(JobSpec("j", 4, contributions=3), 0.0)
    for rank in range(4):
        job = jobs.join("j", rank, MEMBERS[rank])
    jobs.place(job)
    jobs.installed(job)
    where = {job.switch: Peer(IPv4Address("10.9.0.1"), 17760, 1)}
    known = entities_of(compiled(64).p4info)
    first, had = 0, job.slots
    # Beside, behind and before one another; then there is no room on the host for both.
    for slots, expected in ((4096, 2048), (1024, 0), (7000, 1024), (4096, 0)):
        change = remapping.begin(jobs, job, slots, None, "a test")
        assert change.other.host_first == expected
        assert change.in_place == (first < expected + slots and expected < first + had)
        entities = host_entities(job, NODE, where, 64, beside=change.other)
        rows = [known.decode(p4r.Entity.FromString(it)) for it in entities]
        entries = [row for row in rows if isinstance(row, Entry)]
        assert [row.table for row in entries] == [names.JOBS, *[names.MEMBERS] * 3]
        params = dict(entries[0].params)
        assert (params["first_slot"], params["slots"]) == (expected, slots)
        assert params["epoch"] == change.other.epoch
        change.on(Step.INSTALLED)
        change.decide("j", 1)
        remapping.turn(job)
        remapping.end(jobs, job)
        first, had = expected, slots


def test_the_store_keeps_where_they_are() -> None:
    db = sqlite3.connect(":memory:")
    for statement in TABLES:
        db.execute(statement)
    for tree in (SWITCHES, with_host_nodes(SWITCHES, MEMBERS)):  # ranks of a switch may change
        put_job(db, job_of(tree))
        (found,) = get_jobs(db, 0.0)
        assert found.forest == forest_of(tree)
        assert found.memory == job_of(tree).memory
