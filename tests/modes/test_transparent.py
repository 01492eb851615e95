"""Mode transparent has a program, a reference and cases; no job can have it yet, and all say so."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ina import modes
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.p4.catalogue import PROGRAMS
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.tree import Node, Tree

MODE = modes.of(names.TRANSPARENT)
ASKING = Asking("train", 0, (), None, True, cast(Any, None))


def summed_at(*nodes: Node) -> Forest:
    return forest_of(Tree(nodes))


def test_hosts_are_not_said_to_speak_it() -> None:
    assert names.TRANSPARENT not in modes.names()
    assert MODE in modes.every()


def test_no_controller_writes_its_rows() -> None:
    of_it = [can for it, can in PROGRAMS.items() if it.mode == names.TRANSPARENT]
    assert [MODE.is_written_to(can) for can in of_it] == [False] * 3
    assert MODE.runs_on(program=names.TRANSPARENT, shares_slots=False)
    assert not MODE.runs_on(program=names.ROCE, shares_slots=False)


def test_one_switch_sums() -> None:
    alone = summed_at(Node("leaf1", (0, 1)))
    assert MODE.forest(ASKING, alone, cast(Site, None)) is alone
    racks = summed_at(
        Node("spine", (), ("leaf1", "leaf2"), (1, 2)),
        Node("leaf1", (0,), parent="spine", parent_port=9),
        Node("leaf2", (1,), parent="spine", parent_port=9),
    )
    with pytest.raises(JobRequestError) as refused:
        MODE.forest(ASKING, racks, cast(Site, None))
    assert str(refused.value) == (
        "job 'train': mode 'transparent' sums at one switch that all workers are behind, and these"
        " want 3: spine, leaf1, leaf2"
    )
