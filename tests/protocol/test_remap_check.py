"""Changes of a running job's mapping, every way they can go: sums stay right, and all ends well.

A row is what there is, and how many states that has, as in ``test_tree_check``. The larger ones are
for ``make test-long``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.protocol.remap_check import System
from tests.protocol.search import Violation, search

Arguments = Mapping[str, Any]
BESIDE, IN_PLACE = (0, 2), (0, 0)


def long(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


CASES = [
    ({"operations": 2, "places": BESIDE}, 3_555),
    ({"operations": 1, "places": (0, 0, 2)}, 4_058),
    long({"operations": 2, "places": IN_PLACE}, 4_152),
    long({"operations": 3, "places": BESIDE}, 8_646),
    long({"operations": 3, "places": IN_PLACE}, 8_613),
    long({"operations": 1, "places": (0, 2, 0)}, 5_994),
    long({"operations": 2, "places": (0, 2, 4)}, 17_946),
    long({"operations": 2, "places": (0, 2, 0)}, 22_042),
    long({"operations": 2, "places": (0, 0, 2)}, 20_676),
    long({"operations": 2, "places": (0, 0, 0)}, 27_992),
    long({"operations": 1, "places": (0, 0, 0, 0)}, 15_120),
]


@pytest.mark.parametrize(("arguments", "states"), CASES, ids=str)
def test_promises_hold(arguments: Arguments, states: int) -> None:
    assert len(search(System(**arguments)).states) == states


@pytest.mark.parametrize(
    ("bug", "more"),
    [
        ("what was sent by the former mapping stays there", {}),
        ("done when all is sent", {}),
        ("S is the last that was sent", {"slack": (0,)}),
        ("all mappings have one epoch", {"places": IN_PLACE}),
        ("slots are shared without a barrier", {"places": IN_PLACE}),
        ("the former mapping goes when one is done", {}),
        ("each goes over by itself", {}),
        long("rank 0 goes on by the former mapping", {}),
        long("told is heard", {"operations": 2, "places": (0, 0, 2)}),
    ],
)
def test_a_seeded_bug_is_found(bug: str, more: Arguments) -> None:
    system = System(**{"operations": 3, "places": BESIDE, "bug": bug, **more})
    with pytest.raises(Violation):
        search(system)
