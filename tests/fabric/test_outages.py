"""What of a graph is down, and how that changes."""

from __future__ import annotations

import pytest

from ina.fabric.errors import FabricError
from ina.fabric.outages import Down, Outage, Outages
from ina.fabric.shapes import leaf_spine

LINKS = (("leaf-1", "spine1"), ("leaf-1", "spine2"), ("spine1", "leaf-1"))


def outages(*down: str) -> Outages:
    """Of a leaf with a dash in its name, two spines and a cable that is there twice."""
    return Outages(("leaf-1", "spine1", "spine2"), LINKS, down)


def test_a_second_cable_is_no_part_of_its_own() -> None:
    assert outages().parts == ["leaf-1", "spine1", "spine2", "leaf-1-spine1", "leaf-1-spine2"]


@pytest.mark.parametrize("name", ["leaf-1-spine1", "spine1-leaf-1"])
def test_a_link_has_one_name_from_either_end(name: str) -> None:
    found = outages()
    outage = found.outage(name, is_down=True)
    assert outage == Outage("leaf-1-spine1", True, ("leaf-1", "spine1"))
    assert str(outage) == "leaf-1-spine1 is down"
    assert not found.names  # it is told, and not so yet
    found.put(outage)
    assert found.names == ["leaf-1-spine1"]
    assert found.down == Down(links=frozenset({frozenset({"leaf-1", "spine1"})}))
    assert found.outage(name, is_down=True) is None
    back = found.outage(name, is_down=False)
    assert str(back) == "leaf-1-spine1 is up again"


def test_what_is_wanted_down_is_all_that_is() -> None:
    found = outages("spine1", "leaf-1-spine2", "gone")
    assert found.names == ["leaf-1-spine2", "spine1"]
    changed = [str(it) for it in found.only(["spine2", "spine1"])]
    assert changed == ["spine2 is down", "leaf-1-spine2 is up again"]
    assert found.down == Down(frozenset({"spine1", "spine2"}))


def test_nothing_is_called_so() -> None:
    with pytest.raises(FabricError, match="no switch or link is called 'leaf-1-spine3'"):
        outages().outage("leaf-1-spine3", is_down=True)


def test_ways_lead_around_what_is_down() -> None:
    fabric = leaf_spine(2, 2, 1)
    assert fabric.path("leaf1", "leaf2") == ("leaf1", "spine1", "leaf2")
    link = fabric.around(Down(links=frozenset({frozenset({"spine1", "leaf2"})})))
    assert link.path("leaf1", "leaf2") == ("leaf1", "spine2", "leaf2")
    assert link.path("leaf1", "spine1") == ("leaf1", "spine1")
    spine = fabric.around(Down(frozenset({"spine1"})))
    assert spine.path("leaf1", "leaf2") == ("leaf1", "spine2", "leaf2")
    assert spine.path("leaf1", "spine1") == ()
    leaf = fabric.around(Down(frozenset({"leaf2"})))
    assert [place.switch for place in leaf.hosts.values()] == ["leaf1"]
