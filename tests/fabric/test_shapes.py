"""Generated fabrics."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from ina.fabric.errors import FabricError
from ina.fabric.graph import Place
from ina.fabric.shapes import Rates, fat_tree, island, leaf_spine, racks, star
from ina.trees.nearest import Nearest


@pytest.mark.parametrize("k", [2, 4, 8, 16])
def test_a_fat_tree_has_what_its_ports_allow(k: int) -> None:
    fabric = fat_tree(k)
    assert len(fabric.hosts) == k**3 // 4
    assert len(fabric.switches) == 5 * k**2 // 4
    ports: dict[str, set[object]] = {name: set() for name in fabric.switches}
    for link in fabric.links:
        for name, port in zip(link.switches, link.ports, strict=True):
            assert port not in ports[name]
            ports[name].add(port)
    for place in fabric.hosts.values():
        assert place.port not in ports[place.switch]
        ports[place.switch].add(place.port)
    assert {len(it) for it in ports.values()} == {k}


def test_pods_of_a_fat_tree_are_joined_by_every_core() -> None:
    fabric = fat_tree(4)
    assert fabric.hops("edge0-0", "edge0-1") == 2
    assert fabric.hops("edge0-0", "edge3-1") == 4
    assert {fabric.hops(f"core{group}-{it}", "edge2-0") for group in (0, 1) for it in (0, 1)} == {2}


def test_every_leaf_is_joined_to_every_spine() -> None:
    fabric = leaf_spine(2, 3, 4, Rates(host=1e9, up=4e9))
    assert len(fabric.hosts) == 12
    assert {link.switches for link in fabric.links} == {
        (f"leaf{leaf}", f"spine{spine}") for leaf in (1, 2, 3) for spine in (1, 2)
    }
    assert {link.rate_bits_per_s for link in fabric.links} == {4e9}
    assert {place.rate_bits_per_s for place in fabric.hosts.values()} == {1e9}


@pytest.mark.parametrize("k", [0, 3, 66, -2])
def test_a_fat_tree_of_so_many_ports_is_refused(k: int) -> None:
    with pytest.raises(FabricError, match=f"fat-tree: k {k}: want an even number, 2 to 64"):
        fat_tree(k)


def test_a_leaf_spine_of_nothing_is_refused() -> None:
    with pytest.raises(FabricError, match="leaf-spine: spines 0: want 1 or more"):
        leaf_spine(0, 2, 2)


def test_hosts_of_a_star_are_around_one_switch() -> None:
    fabric = star(3)
    assert fabric.switches == ("s1",)
    assert [(str(at), it.port) for at, it in fabric.hosts.items()] == [
        *(("10.0.0.1", 1), ("10.0.0.2", 2), ("10.0.0.3", 3))
    ]
    with pytest.raises(FabricError, match="star: hosts 0: want 1 or more"):
        star(0)


@pytest.mark.parametrize(
    ("pod", "ways"),
    [(0, [("l1", "s1", "l3")] * 2), (2, [("l1", "a1", "s1", "a2", "l3"), ("l1", "a1", "l2")])],
)
def test_racks_are_below_one_root(pod: int, ways: list[tuple[str, ...]]) -> None:
    fabric = racks([1, 2, 1], pod)
    assert [place.switch for place in fabric.hosts.values()] == ["l1", "l2", "l2", "l3"]
    assert [fabric.path(way[0], way[-1]) for way in ways] == ways
    with pytest.raises(FabricError, match="racks: hosts 0: want 1 or more"):
        racks([1, 0], pod)


def test_an_island_is_a_fabric_of_one_switch() -> None:
    known = IPv4Address("10.0.0.7")
    fabric = island("s1", {known: Place("s1", 3)}, 9)
    assert fabric.path("s1", "s1") == ("s1",)
    nearest = Nearest(fabric)
    assert nearest.port_to("s1", known) == 3
    assert nearest.port_to("s1", IPv4Address("10.0.0.8")) == 9
