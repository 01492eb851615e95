"""Several trees for a job: their shares of lanes, and of the slots of switches that are in some."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.controller.errors import NoRoomError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.placement import check_room, slots_by_switch, window
from ina.controller.memory import FirstFit
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.plan import FIRST_GROUP, plan_job
from ina.controller.windows.uses import UsedLink, link_uses
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.tables.values import Entry
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.host_nodes import with_host_nodes
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange
from ina.trees.tree import HostNode, Node, Tree, single
from tests.controller.forests import (
    AT_A_SPINE,
    LEAVES,
    ONE_TO_THREE,
    SECOND_SPINE,
    forests,
    over,
)
from tests.worlds.fakes.placed import addresses
from tests.worlds.fakes.racks import fabric, host

SLOTS = 64


def mapping_of(forest: Forest, slots: int = SLOTS, first: int = 0) -> Mapping:
    memory = {}
    for name in forest.switches:
        taken = forest.slots_at(name, slots)
        memory[name] = SlotRange(first, taken, taken)
    return Mapping(9, tuple(range(5, 5 + len(forest))), forest, memory, slots // 2)


def job_over(forest: Forest) -> Job:
    by = mapping_of(forest, first=8)
    job = Job(JobSpec("j", 4), by.numbers[0], 0.0, by, epoch=by.epoch)
    for rank in range(4):
        group = IPv4Address("239.192.0.1")  # for which two trees have no use
        job.members[rank] = Endpoint(Peer(host(1 + rank // 2, 1 + rank), 4000), 1, group)
    return job


def where(forest: Forest) -> dict[str, object]:
    return {name: at for tree in forest for name, at in addresses(tree).items()}


def test_shares_are_as_small_as_they_can_be_and_a_power_of_two_together() -> None:
    one, other = ONE_TO_THREE
    assert Forest((one, other), (4, 12)) == ONE_TO_THREE
    assert hash(Forest((one, other), (4, 12))) == hash(ONE_TO_THREE)
    assert Forest((one,), (3,)) == forest_of(one)
    for shares in ((1, 2), (1, 0), (1,), (1, 31), (-1, 2)):
        with pytest.raises(JobRequestError, match=r"parts of the lanes|of the lanes: each wants"):
            Forest((one, other), shares)
    with pytest.raises(JobRequestError):
        Forest((), ())
    with pytest.raises(JobRequestError, match="a worker is in one tree and not in another"):
        forest_of(one, single("leaf1", 2))


def test_what_callers_ask_of_it() -> None:
    assert ONE_TO_THREE.switches == ("spine", *LEAVES, SECOND_SPINE)
    assert [it.switch for it in ONE_TO_THREE.roots] == ["spine", SECOND_SPINE]
    assert {name: ONE_TO_THREE.parts_at(name) for name in ONE_TO_THREE.switches} == {
        "spine": 1, "leaf1": 4, "leaf2": 4, SECOND_SPINE: 3
    }  # fmt: skip
    assert ("leaf1" in ONE_TO_THREE, "leaf9" in ONE_TO_THREE) == (True, False)
    assert (ONE_TO_THREE.is_shared, ONE_TO_THREE.has_one_switch) == (False, False)
    mixed = forest_of(AT_A_SPINE, over(SECOND_SPINE))
    assert [it.switch for it in mixed.first_nodes(0)] == ["spine", "leaf1"]


def test_slots_are_a_lane_for_each_part_or_a_job_is_refused() -> None:
    assert [ONE_TO_THREE.divisible("j", slots) for slots in (8, 22, 64)] == [8, 16, 64]
    with pytest.raises(
        JobRequestError,
        match=r"^job 'j': 6 slots for 2 trees with 4 parts of the lanes between them: at least 8$",
    ):
        ONE_TO_THREE.divisible("j", 6)
    assert forest_of(over("spine")).divisible("j", 2) == 2


def test_parts_of_two_trees_are_side_by_side_where_both_are() -> None:
    mapping = mapping_of(ONE_TO_THREE, first=8)
    one, other = mapping.parts
    assert (mapping.slots, one.number, other.number) == (SLOTS, 5, 6)
    assert (one.lanes, other.lanes) == (range(8), range(8, 32))
    assert one.memory == {name: SlotRange(8, 16, 16) for name in ("spine", *LEAVES)}
    assert other.memory == {
        **{name: SlotRange(24, 48, 48) for name in LEAVES},
        SECOND_SPINE: SlotRange(8, 48, 48),
    }


@given(forests(), st.integers(0, 3), st.integers(0, 100))
def test_each_switch_s_parts_are_disjoint_and_cover_its_range(
    forest: Forest, doubled: int, first: int
) -> None:
    slots = 2 * forest.parts << doubled
    mapping = mapping_of(forest, slots, first)
    assert mapping.slots == slots
    parts = mapping.parts
    lanes = [lane for part in parts for lane in part.lanes]
    assert lanes == list(range(slots // 2))
    for name, taken in mapping.memory.items():
        here = [part for part in parts if name in part.tree]
        at = taken.first
        for part in here:
            its = part.memory[name]
            assert (its.first, its.slots) == (at, 2 * len(part.lanes))
            at = its.end
        assert at == taken.end
    on_hosts = [slot for it in parts for slot in range(it.on_hosts.first, it.on_hosts.end)]
    assert on_hosts == list(range(slots))


def test_a_leaf_in_two_trees_has_entries_of_two_jobs() -> None:
    job = job_over(ONE_TO_THREE)
    plan = plan_job(job, "leaf1", where(ONE_TO_THREE))  # type: ignore[arg-type]
    rows = [item for item in plan.items if isinstance(item, Entry)]
    jobs = {dict(it.match)["job"]: dict(it.params) for it in rows if it.table == names.JOBS}
    assert {number: (it["first_slot"], it["slots"]) for number, it in jobs.items()} == {
        5: (8, 16), 6: (24, 48)
    }  # fmt: skip
    assert {number: it["parent_port"] for number, it in jobs.items()} == {5: 9, 6: 10}
    assert [it.number for it in plan.groups] == [FIRST_GROUP + 5, FIRST_GROUP + 6]
    # Each copy is for one worker: of two trees none comes by IP multicast.
    assert {it.replicas for it in plan.groups} == {((1, 1), (1, 2))}
    for rank in (0, 1):
        assert [dict(it.match)["job"] for it in plan.members[rank]] == [5, 6]
    assert {dict(it.match)["ingress_port"] for it in plan.switches} == {9, 10}
    assert len(set(plan.items)) == len(plan.items)
    for name, number, slots in (("spine", 5, 16), (SECOND_SPINE, 6, 48)):
        root = plan_job(job, name, where(ONE_TO_THREE))  # type: ignore[arg-type]
        (admit,) = root.stages[1]
        assert isinstance(admit, Entry)
        assert (admit.action, dict(admit.match)["job"]) == (names.ADMIT_JOB, number)
        assert dict(admit.params)["slots"] == slots


def test_a_worker_past_its_top_of_rack_is_expected_where_its_packets_arrive() -> None:
    job = job_over(forest_of(AT_A_SPINE))
    job.members[0] = replace(job.members[0], switch_port=7)
    plan = plan_job(job, "spine", addresses(AT_A_SPINE))
    for rank in (0, 1):
        (row,) = plan.members[rank]
        found = dict(row.match)
        assert (found["ingress_port"], found["src_addr"]) == (
            1,
            int(job.members[rank].peer.address),
        )
    assert plan.groups[0].replicas == ((1, 1), (1, 2), (2, 3))  # none by IP multicast


def test_ranks_past_their_top_of_rack_may_be_summed_on_their_host() -> None:
    at = HostNode(0, Peer(IPv4Address("10.0.1.1"), 4433, 5), switch_port=7, uplink_port=1)
    members = {rank: Endpoint(Peer(IPv4Address("10.0.1.1"), 4000 + rank), 1) for rank in range(5)}
    top = Tree((Node("spine", (0, 2), ("leaf2",), (2,), rank_ports=(4, 6)),
                Node("leaf2", (3,), parent="spine", parent_port=9)))  # fmt: skip
    for rank in (0, 1):
        members[rank] = replace(members[rank], node=at)
    node = with_host_nodes(top, members).root
    assert (node.ranks, node.rank_ports) == ((2,), (6,))
    assert (node.nodes, node.ports) == (("leaf2", at.name), (2, 4))


def capacities() -> dict[str, Capacity]:
    return {name: Capacity(FirstFit(64, 32)) for name in ("spine", *LEAVES, SECOND_SPINE)}


def test_each_switch_wants_room_for_the_trees_that_it_is_in() -> None:
    switches = capacities()
    usual = slots_by_switch("j", 0, ONE_TO_THREE, switches)
    assert usual == {"spine": 8, "leaf1": 32, "leaf2": 32, SECOND_SPINE: 24}
    switches["spine"].memory.take("other", 56)
    check_room("j", 32, ONE_TO_THREE, switches)
    with pytest.raises(NoRoomError, match=r"on 1 of 4 switches .*: switch spine: no 16 free"):
        check_room("j", 64, ONE_TO_THREE, switches)


def test_a_window_is_what_the_queues_of_each_tree_bear() -> None:
    switches, memory = capacities(), mapping_of(ONE_TO_THREE).memory
    assert window(ONE_TO_THREE, memory, switches) == 32
    switches["spine"].max_window = 3  # of the quarter of the packets that pass it
    assert window(ONE_TO_THREE, memory, switches) == 12
    switches[SECOND_SPINE].max_window = 3
    assert window(ONE_TO_THREE, memory, switches) == 4


def test_a_link_carries_the_shares_of_the_trees_over_it() -> None:
    job = job_over(forest_of(AT_A_SPINE, over("spine")))
    uses = link_uses(fabric(), job.mapping, job.members)
    assert uses[UsedLink("leaf1", "spine")] == 0.5 * 2 + 0.5 * 1  # two parts, and a sum
    assert uses[UsedLink("spine", "leaf1")] == 0.5 * 2 + 0.5 * 1
    assert uses[UsedLink("leaf2", "spine")] == 1
    assert uses[UsedLink(str(host(1, 1)), "leaf1")] == 1


def test_where_switches_route_what_passes_them_each_is_sent_to_by_its_own_mac_address() -> None:
    job, spine_mac = job_over(ONE_TO_THREE), 0x02_00_00_00_0A_01
    by_mac = plan_job(job, "leaf1", where(ONE_TO_THREE))  # type: ignore[arg-type]
    plan = plan_job(job, "leaf1", where(ONE_TO_THREE), routers={9: spine_mac})  # type: ignore[arg-type]
    changed = [new for old, new in zip(by_mac.items, plan.items, strict=True) if old != new]
    (row,) = changed  # behind port 9 the first tree's root is, or is what leads to it
    assert isinstance(row, Entry)
    assert row.table == names.RECEIVERS
    assert dict(row.params)["dst_mac"] == spine_mac
