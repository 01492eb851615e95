"""Placement ``nearest``: trees over fabrics drawn by hand, and over random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.fabric.errors import FabricError
from ina.fabric.graph import Fabric, Link, Place
from ina.protocol.peer import Peer
from ina.protocol.spec import MAX_LEVELS, MAX_WORKERS, MAX_WORLD_SIZE
from ina.trees.errors import JobRequestError
from ina.trees.forest import forest_of
from ina.trees.nearest import Nearest, tree_over
from ina.trees.tree import Node, Tree, single
from tests.selection import examples


@dataclass(frozen=True)
class At:
    """A worker's endpoint, as far as placement looks at it."""

    address: IPv4Address
    switch: str = ""

    @property
    def peer(self) -> Peer:
        return Peer(self.address, 4000)


def fabric(links: str, hosts: Mapping[str, str] | None = None) -> Fabric:
    """``"l1-s l2-s"``: each switch numbers its ports from 1 in the order of its links."""
    ports: dict[str, int] = {}
    made = []
    for text in links.split():
        one, other = text.split("-")
        for end in (one, other):
            ports[end] = ports.get(end, 0) + 1
        made.append(Link((one, other), (ports[one], ports[other])))
    places = {
        IPv4Address(address): Place(switch, 100 + number)
        for number, (address, switch) in enumerate((hosts or {}).items())
    }
    return Fabric(tuple(ports), made, places)


LEAF_SPINE = "leaf1-spine leaf2-spine leaf3-spine"


def test_two_racks_meet_in_the_spine() -> None:
    tree = tree_over(fabric(LEAF_SPINE), {"leaf1": [0, 1, 2], "leaf2": [3, 4]})
    assert tree == Tree(
        (
            Node("spine", (), ("leaf1", "leaf2"), (1, 2)),
            Node("leaf1", (0, 1, 2), parent="spine", parent_port=1),
            Node("leaf2", (3, 4), parent="spine", parent_port=1),
        )
    )


TWO_SPINES = "leaf1-spine1 leaf2-spine1 leaf1-spine2 leaf2-spine2"


@pytest.mark.parametrize(
    ("away", "root"),
    [
        ((), "spine1"),
        (("spine1",), "spine2"),
        (("spine2",), "spine1"),
        (("spine1", "spine2"), "spine1"),  # there is no way around: who joins hears why
        (("leaf1", "spine1"), "spine2"),  # a rack has no other top
    ],
)
def test_trees_go_around_switches_that_are_away(away: tuple[str, ...], root: str) -> None:
    hosts = {"10.0.0.1": "leaf1", "10.0.0.2": "leaf2"}
    placed = Nearest(fabric(TWO_SPINES, hosts), is_reached=lambda switch: switch not in away)
    ranks = {number: At(IPv4Address(address)) for number, address in enumerate(hosts)}
    (tree,) = placed.forest("j", ranks)
    assert [node.switch for node in tree.switches] == [root, "leaf1", "leaf2"]
    port = int(root[-1])
    assert [node.parent_port for node in tree.switches[1:]] == [port, port]


def test_trees_come_back_once_switches_do() -> None:
    hosts = {"10.0.0.1": "leaf1", "10.0.0.2": "leaf2"}
    away = {"spine1"}
    placed = Nearest(fabric(TWO_SPINES, hosts), is_reached=lambda switch: switch not in away)
    ranks = {number: At(IPv4Address(address)) for number, address in enumerate(hosts)}
    assert placed.forest("j", ranks).root.switch == "spine2"
    away.clear()
    assert placed.forest("j", ranks).root.switch == "spine1"
    away.add("spine1")
    assert placed.forest("j", ranks).root.switch == "spine2"


def test_who_shares_memory_with_a_switch_is_below_that_one() -> None:
    placed = Nearest(fabric(LEAF_SPINE, {"10.0.0.2": "leaf2"}))
    shm, listed = IPv4Address("127.64.0.7"), IPv4Address("10.0.0.2")
    (tree,) = placed.forest("j", {0: At(shm, "leaf1"), 1: At(listed, "leaf2")})
    assert [tree.first_node(rank).switch for rank in (0, 1)] == ["leaf1", "leaf2"]
    for address, switch in ((shm, ""), (shm, "leaf9"), (IPv4Address("10.0.0.9"), "leaf1")):
        with pytest.raises(JobRequestError, match="rank 0 sends from"):
            placed.forest("j", {0: At(address, switch), 1: At(listed, "leaf2")})


def test_one_rack_is_one_switch_whose_indices_are_the_ranks() -> None:
    assert tree_over(fabric(LEAF_SPINE), {"leaf2": [2, 0, 1]}) == single("leaf2", 3)


def test_a_rack_of_one_adds_nothing_up() -> None:
    tree = tree_over(fabric(LEAF_SPINE), {"leaf1": [0, 3], "leaf2": [1], "leaf3": [2]})
    assert tree == Tree(
        (
            Node("spine", (1, 2), ("leaf1",), (1,)),
            Node("leaf1", (0, 3), parent="spine", parent_port=1),
        )
    )
    assert tree.first_node(1).switch == "spine"


def test_a_worker_that_is_alone_may_keep_its_top_of_rack() -> None:
    tree = tree_over(fabric(LEAF_SPINE), {"leaf1": [0, 2], "leaf2": [1]}, keep_tops=True)
    assert [(node.switch, node.ranks) for node in tree] == [
        ("spine", ()),
        ("leaf1", (0, 2)),
        ("leaf2", (1,)),
    ]


def test_a_worker_at_the_root() -> None:
    tree = tree_over(fabric(LEAF_SPINE), {"spine": [2], "leaf1": [0, 1], "leaf3": [3, 4]})
    assert tree.root == Node("spine", (2,), ("leaf1", "leaf3"), (1, 3))


def test_three_levels_and_a_switch_that_has_one_part_only() -> None:
    pods = fabric("l1-s1 l2-s1 l3-s2 l4-s2 s1-core s2-core")
    tree = tree_over(pods, {"l1": [0, 1], "l2": [2, 3], "l3": [4, 5], "l4": [6]})
    assert [(it.switch, it.parent, it.parent_port, it.ranks, tree.level(it)) for it in tree] == [
        ("core", None, 0, (), 3),
        ("s1", "core", 3, (), 2),
        ("l1", "s1", 1, (0, 1), 1),
        ("l2", "s1", 1, (2, 3), 1),
        ("s2", "core", 3, (6,), 2),
        ("l3", "s2", 1, (4, 5), 1),
    ]
    without_l2_and_l4 = tree_over(pods, {"l1": [0, 1], "l3": [2, 3]})
    assert [(it.switch, it.parent, it.parent_port, it.ports) for it in without_l2_and_l4] == [
        ("core", None, 0, (1, 2)),  # its ports towards s1 and s2, which forward
        ("l1", "core", 1, ()),
        ("l3", "core", 1, ()),
    ]


def test_of_two_spines_the_first_in_the_file() -> None:
    both = "leaf1-spine2 leaf2-spine2 leaf1-spine1 leaf2-spine1"
    tree = tree_over(fabric(both), {"leaf1": [0, 1], "leaf2": [2, 3]})
    assert tree.root.switch == "spine2"


def test_a_host_is_found_by_any_of_its_addresses() -> None:
    nearest = Nearest(fabric(LEAF_SPINE, {"10.0.1.1": "leaf1", "10.0.2.1": "leaf2"}))
    unknown, known = IPv4Address("192.168.0.1"), IPv4Address("10.0.2.1")
    assert nearest.switch_of([unknown, known]) == "leaf2"
    assert nearest.port_to("leaf2", known) == 101
    assert nearest.port_to("spine", known) == 2
    assert nearest.port_to("leaf1", known) == 1
    with pytest.raises(JobRequestError, match=r"a host at 192\.168\.0\.1 is behind no switch"):
        nearest.switch_of([unknown])
    with pytest.raises(JobRequestError, match=r"two switches, at 10\.0\.1\.1 behind 'leaf1' and"):
        nearest.switch_of([IPv4Address("10.0.1.1"), known])


def test_behind_the_only_switch_are_all_whom_nobody_lists() -> None:
    address = IPv4Address("10.0.0.7")
    nearest = Nearest(Fabric(["switch"], data_ports={"switch": 5}))
    assert nearest.switch_of([address]) == "switch"
    assert nearest.port_to("switch", address) == 5
    assert nearest.forest("job", {0: At(address), 1: At(address)}) == forest_of(single("switch", 2))


def test_names_of_ports_are_looked_up_at_their_switch() -> None:
    panel = Fabric(["a", "b"], [Link(("a", "b"), ("1/0", 7))], {IPv4Address(1): Place("a", "2/0")})
    asked = []

    def number(switch: str, port: int | str) -> int:
        asked.append((switch, port))
        return 300 if isinstance(port, str) else port

    tree = tree_over(panel, {"a": [0, 1], "b": [2, 3]}, number)
    assert (tree.root.switch, tree.root.ports) == ("a", (300,))
    assert asked == [("a", "1/0"), ("b", 7)]
    with pytest.raises(FabricError, match="port 2/0 of switch 'a' is a name"):
        Nearest(panel).port_to("a", IPv4Address(1))


def refusal(links: str, racks: Mapping[str, Sequence[int]]) -> str:
    """What placing a job of workers at these switches is answered with."""
    each = {IPv4Address(rank): switch for switch, ranks in racks.items() for rank in ranks}
    place = fabric(links, {str(address): switch for address, switch in each.items()})
    with pytest.raises(JobRequestError) as caught:
        Nearest(place).forest("big", {int(address): At(address) for address in each})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_racks_that_no_path_joins_are_named_with_a_rank_each() -> None:
    assert refusal("a-b c-d", {"a": [0, 2], "c": [1, 3]}) == (
        "job 'big': rank 0 is behind switch 'a' and rank 1 behind 'c': no path of links joins them"
    )


def test_more_children_than_a_switch_takes_are_counted() -> None:
    said = refusal(LEAF_SPINE, {"leaf1": range(33), "leaf2": [33, 34]})
    assert said.startswith("job 'big': switch 'leaf1' would add up 33 contributions: ")
    many = " ".join(f"l{number}-s" for number in range(33))
    said = refusal(many, {f"l{number}": [2 * number, 2 * number + 1] for number in range(33)})
    assert "switch 's' would add up 33 contributions" in said


def test_a_tree_that_is_too_deep_is_refused() -> None:
    """Every switch of a chain has two workers, and the root is in its middle."""
    chain = " ".join(f"s{number}-s{number + 1}" for number in range(8))
    racks = {f"s{number}": [2 * number, 2 * number + 1] for number in range(9)}
    assert "switch 's0' would be 4 levels below the root 's4'" in refusal(chain, racks)


def test_more_workers_than_a_packet_can_tell_apart() -> None:
    assert "1025 workers: at most 1024" in refusal("a-b", {"a": range(MAX_WORLD_SIZE + 1)})


def test_a_rank_that_sends_from_an_unknown_address() -> None:
    nearest = Nearest(fabric(LEAF_SPINE, {"10.0.1.1": "leaf1"}))
    with pytest.raises(
        JobRequestError, match=r"'job': rank 1 sends from 10\.0\.9\.9, which is beh"
    ):
        nearest.forest("job", {0: At(IPv4Address("10.0.1.1")), 1: At(IPv4Address("10.0.9.9"))})


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Up to 12 switches that are joined, by a tree of links and some more."""
    count = draw(st.integers(1, 12))
    pairs = [(draw(st.integers(0, child - 1)), child) for child in range(1, count)]
    for _ in range(draw(st.integers(0, 8)) if count > 1 else 0):
        one, other = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        if one != other:
            pairs.append((one, other))
    pairs = draw(st.permutations(pairs))
    names = draw(st.permutations([f"s{number}" for number in range(count)]))
    used = dict.fromkeys(names, 0)
    links = []
    for pair in pairs:
        ends = (names[pair[0]], names[pair[1]])
        for end in ends:
            used[end] += 1
        links.append(Link(ends, (used[ends[0]], used[ends[1]])))
    return Fabric(names, links)


@settings(max_examples=examples(60), deadline=None)
@given(fabrics())
def test_ways_are_shortest_and_the_same_back_and_in_parts(drawn: Fabric) -> None:
    joined = {frozenset(link.switches): link for link in reversed(drawn.links)}
    # Floyd and Warshall's, which shares nothing with what is judged.
    far = {
        (a, b): 0 if a == b else 1 if frozenset((a, b)) in joined else 99
        for a in drawn.switches
        for b in drawn.switches
    }
    for via in drawn.switches:
        for a, b in far:
            far[a, b] = min(far[a, b], far[a, via] + far[via, b])
    for (a, b), hops in far.items():
        path = drawn.path(a, b)
        assert len(path) - 1 == hops == drawn.hops(a, b)
        assert drawn.path(b, a) == path[::-1]
        for index, here in enumerate(path[:-1]):
            assert drawn.path(here, b) == path[index:]
            link = joined[frozenset(path[index : index + 2])]
            assert drawn.port_towards(here, b) == link.port_of(here)


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), fabrics())
def test_trees_over_random_fabrics(data: st.DataObject, drawn: Fabric) -> None:
    sizes = data.draw(
        st.dictionaries(st.sampled_from(drawn.switches), st.integers(1, 40), min_size=1)
    )
    ranks = data.draw(st.permutations(range(sum(sizes.values()))))
    racks, first = {}, 0
    for switch, size in sizes.items():
        racks[switch] = ranks[first : first + size]
        first += size
    crowded = max(sizes.values()) + len(sizes) > MAX_WORKERS
    deep = max(len(drawn.path(a, b)) for a in racks for b in racks) > MAX_LEVELS
    keep = data.draw(st.booleans())
    try:
        tree = tree_over(drawn, racks, keep_tops=keep)
    except JobRequestError:
        if not (crowded or deep):
            raise
        return
    assert tree == tree_over(drawn, dict(reversed(racks.items())), keep_tops=keep)
    judge(tree, drawn, racks, keep=keep)


def judge(tree: Tree, drawn: Fabric, racks: Mapping[str, Sequence[int]], *, keep: bool) -> None:
    """What holds of every tree."""
    everybody = sorted(rank for ranks in racks.values() for rank in ranks)
    assert sorted(rank for node in tree for rank in node.ranks) == everybody
    assert len({tree.path(rank) for rank in everybody}) == len(everybody)
    for node in tree:
        # Where fewer meet, nothing is added up.
        least = 1 if len(everybody) == 1 or (keep and node.switch in racks) else 2
        assert least <= node.fan_in <= MAX_WORKERS
        assert tree.depth(node) < MAX_LEVELS
        assert [tree[child].parent for child in node.nodes] == [node.switch] * len(node.nodes)
        for child, port in zip(node.nodes, node.ports, strict=True):
            assert port == drawn.port_towards(node.switch, child)
            assert tree[child].parent_port == drawn.port_towards(child, node.switch)
    root = tree.root.switch
    for switch, ranks in racks.items():
        up = drawn.path(switch, root)
        nodes_on_the_way = [step for step in up if step in tree]
        for rank in ranks:
            node = tree.first_node(rank)
            assert node.switch == nodes_on_the_way[0]
            assert node.switch == switch or not keep
            seen = [node.switch]
            while node.parent is not None:
                node = tree[node.parent]
                seen.append(node.switch)
            assert seen == nodes_on_the_way
    total = sum(len(drawn.path(switch, root)) for switch in racks)
    assert total == min(sum(len(drawn.path(s, it)) for s in racks) for it in drawn.switches)
