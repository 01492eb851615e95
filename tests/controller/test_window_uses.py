"""What jobs use of links and slots, and the caps that follow."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from ina.controller.config.rules import WindowsConfig
from ina.controller.windows.caps import MaxMinCaps, NoCaps, Use
from ina.controller.windows.uses import (
    OwnSlots,
    SharedPool,
    link_rates,
    link_uses,
    packet_bits,
    slot_uses,
)
from ina.controller.windows.uses import UsedLink as Way
from ina.fabric.graph import Fabric, Link, Place
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange
from ina.trees.tree import HostNode, Node, Tree, single

GBIT = 1e9
H1, H2, H3 = (IPv4Address(f"10.0.0.{i}") for i in (1, 2, 3))
FABRIC = Fabric(
    ["l1", "l2", "root"],
    [Link(("l1", "root"), (9, 1), 10 * GBIT), Link(("l2", "root"), (9, 2))],
    {
        H1: Place("l1", 1, rate_bits_per_s=10 * GBIT),
        H2: Place("l1", 2, rate_bits_per_s=10 * GBIT),
        H3: Place("l2", 1),
    },
)
TREE = Tree(
    (
        Node("root", (), ("l1", "l2"), (1, 2)),
        Node("l1", (0, 1, 2), parent="root", parent_port=9),
        Node("l2", (3,), parent="root", parent_port=9),
    )
)


def mapping(tree: Tree, slots: int = 64) -> Mapping:
    memory = {node.switch: SlotRange(0, slots, slots) for node in tree.switches}
    return Mapping(7, (1,), forest_of(tree), memory, slots // 2)


def at(address: IPv4Address, port: int, group: IPv4Address | None = None) -> Endpoint:
    return Endpoint(Peer(address, 4000 + port), port, results_group=group)


def test_only_links_whose_rate_is_known_are_limited_each_way_by_itself() -> None:
    assert link_rates(FABRIC) == {
        Way(begin, end): 10 * GBIT
        for one, other in ((str(H1), "l1"), (str(H2), "l1"), ("l1", "root"))
        for begin, end in ((one, other), (other, one))
    }


def test_each_rank_uses_its_hosts_link_and_each_switch_the_one_to_its_parent() -> None:
    members = {0: at(H1, 1), 1: at(H2, 2), 2: at(H2, 2), 3: at(H3, 1)}
    assert link_uses(FABRIC, mapping(TREE), members) == {
        Way(str(H1), "l1"): 1, Way("l1", str(H1)): 1,
        Way(str(H2), "l1"): 2, Way("l1", str(H2)): 2,
        Way("l1", "root"): 1, Way("root", "l1"): 1,
        Way(str(H3), "l2"): 1, Way("l2", str(H3)): 1,
        Way("l2", "root"): 1, Way("root", "l2"): 1,
    }  # fmt: skip


def test_ranks_behind_one_port_that_share_results_get_them_once() -> None:
    group = IPv4Address("239.192.0.1")
    members = {0: at(H1, 1, group), 1: at(H2, 2, group), 2: at(H2, 2, group), 3: at(H3, 1)}
    uses = link_uses(FABRIC, mapping(TREE), members)
    assert uses[Way(str(H2), "l1")] == 2
    assert uses[Way("l1", str(H2))] == 1


def test_what_a_host_adds_up_is_one_part_and_a_job_at_one_far_switch_passes_the_way_there() -> None:
    node = HostNode(1, Peer(H2, 5000, 0), 2, 1)
    tree = Tree(
        (
            Node("l1", (0,), (node.name,), (2,)),
            Node(node.name, (1, 2), parent="l1", parent_port=1, host=node),
        )
    )
    members = {0: at(H1, 1), 1: at(H2, 2), 2: at(H2, 2)}
    assert link_uses(FABRIC, mapping(tree), members) == {
        Way(str(H1), "l1"): 1, Way("l1", str(H1)): 1,
        Way(str(H2), "l1"): 1, Way("l1", str(H2)): 1,
    }  # fmt: skip
    far = link_uses(FABRIC, mapping(single("l2", 1)), {0: at(H1, 1)})
    assert set(far) == {
        Way(str(H1), "l1"), Way("l1", "root"), Way("root", "l2"),
        Way("l2", "root"), Way("root", "l1"), Way("l1", str(H1)),
    }  # fmt: skip


def test_who_is_not_in_the_file_or_has_left_uses_nothing_that_is_known() -> None:
    stranger = at(IPv4Address("10.9.9.9"), 3)
    assert link_uses(FABRIC, mapping(single("l1", 2)), {0: stranger}) == {}


def test_a_packet_in_flight_has_a_slot_at_each_switch_that_shares_them() -> None:
    tree = Tree(
        (
            Node("agg", (), ("l1",), (1,)),
            Node("l1", (0, 1), parent="agg", is_shared=True),
        )
    )
    assert slot_uses(mapping(tree), "job", 8000, 1e-3) == {
        OwnSlots("job"): 1e-3 / 8000,
        SharedPool("l1"): 1e-3 / 8000,
    }


BITS = packet_bits(256)
UP = Way(str(H1), "l1")


def use(job: str, *, weight: float = 1.0, window: int = 512, trip_s: float = 1e-3) -> Use:
    slots = slot_uses(mapping(single("l1", 1)), job, BITS, trip_s) if trip_s else {}
    return Use(job, weight, {UP: 1.0}, slots, window, BITS, trip_s)


def caps(*uses: Use, slack: float = 2.0, least: int = 8) -> dict[str, int]:
    config = WindowsConfig(caps="max-min", slack=slack, least_packets=least)
    found = MaxMinCaps(config).caps(uses, {UP: BITS * 100e3})  # 100 packets a millisecond
    return {job: cap.most_packets for job, cap in found.items()}


def test_a_cap_is_the_share_times_the_round_trip_and_slack() -> None:
    assert caps(use("a"), use("b")) == {"a": 100, "b": 100}
    assert caps(use("a"), use("b"), slack=1.0) == {"a": 50, "b": 50}
    assert caps(use("a", weight=3), use("b")) == {"a": 150, "b": 50}
    assert caps(use("a", trip_s=2e-3), use("b")) == {"a": 200, "b": 100}


def test_who_is_alone_or_of_unknown_round_trip_or_held_by_its_own_slots_has_no_cap() -> None:
    assert caps(use("a")) == {"a": 0}
    assert caps(use("a", trip_s=0), use("b")) == {"a": 0, "b": 100}
    # Of 100 packets a round trip it has 20: the other has the rest.
    assert caps(use("a", window=20), use("b")) == {"a": 0, "b": 160}


def test_a_cap_is_not_below_the_least_and_none_from_w_on() -> None:
    assert caps(use("a", weight=0.01), use("b")) == {"a": 8, "b": 199}
    assert caps(use("a", window=100), use("b", window=101)) == {"a": 0, "b": 100}


def test_without_caps_there_are_none() -> None:
    found = NoCaps(WindowsConfig()).caps([use("a"), use("b")], {UP: 1.0})
    assert [cap.most_packets for cap in found.values()] == [0, 0]


def test_shares_tell_the_bottleneck() -> None:
    config = WindowsConfig(caps="max-min")
    found = MaxMinCaps(config).caps([use("a", window=20), use("b")], {UP: BITS * 100e3})
    assert [str(cap.bottleneck) for cap in found.values()] == [
        "the slots of a", "10.0.0.1 > l1",
    ]  # fmt: skip
    assert found["b"].share_bits_per_s == pytest.approx(BITS * 80e3)
