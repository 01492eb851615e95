"""Mode `stream`'s promises hold in every interleaving of small cases; seeded faults break them.

A row of :data:`CASES` is a job, and how many states it has. The first eight, and the first nine
faults, are those that the mode was designed by; then come trees of switches, and several lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.protocol import slot_faults, stream_faults, switch_faults, tree_faults
from tests.protocol.search import Violation, search
from tests.protocol.stream_check import Blocks, Stream, StreamSystem

STAR = (None,)
RACK = (None, 0)  # a root and a rack
RACKS = (None, 0, 0)  # a root and two racks
THREE = (None, 0, 1, 1)  # two racks below a switch below the root

Arguments = Mapping[str, Any]


def on(
    parents: tuple[int | None, ...],
    workers: tuple[int, ...],
    holds: Iterable[Iterable[int]],
    lanes: int = 1,
    **more: Any,
) -> Arguments:
    """A system's: the switch above each switch, the first switch of each worker, and its blocks
    that are not zero."""
    blocks = Blocks(tuple(map(frozenset, holds)), lanes)
    return {
        **{"parents": parents, "workers": workers, "blocks": blocks},
        **{"chunks": blocks.rounds, "window": lanes, **more},
    }


def star(*holds: Iterable[int], **more: Any) -> Arguments:
    """One switch."""
    return on(STAR, (0,) * len(holds), holds, **more)


TWO = ([1, 3, 5], [2, 3])
THREE_OF_THEM = ([1, 4], [2, 4], [0, 5])

CASES: tuple[tuple[str, Arguments, int], ...] = (
    ("2 workers, some blocks shared", star(*TWO), 39),
    ("2 workers, nothing shared", star([1, 4], [2, 5]), 39),
    ("2 workers, one has nothing", star([1, 2, 5], []), 31),
    ("2 workers, all zero", star([], []), 7),
    ("2 workers, dense", star(range(5), range(5)), 39),
    ("3 workers", star(*THREE_OF_THEM), 119),
    ("3 workers, one has all", star([0, 1, 2, 3], [3], []), 93),
    ("restart, 2 workers", star(*TWO, restart=True), 1_084),
    ("racks of 1 and 1", on(RACKS, (1, 2), TWO), 72),
    ("racks of 2 and 1", on(RACKS, (1, 1, 2), THREE_OF_THEM), 178),
    ("a rack without anything", on(RACKS, (1, 1, 2), ([], [], [1, 2])), 100),
    ("a rack of 2 and a worker at the root", on(RACK, (1, 1, 0), THREE_OF_THEM), 133),
    ("three levels, 1 and 1", on(THREE, (2, 3), TWO), 77),
    ("restart, racks of 1 and 1", on(RACKS, (1, 2), ([1], [2]), restart=True), 7_220),
    ("a reboot, racks of 1 and 1", on(RACKS, (1, 2), ([1], [2]), reboots=1), 615),
    ("2 lanes", star([2, 5], [3, 6], lanes=2), 529),
    ("2 lanes, racks of 1 and 1", on(RACKS, (1, 2), ([2], [3]), lanes=2), 729),
)

LONG_CASES: tuple[tuple[str, Arguments, int], ...] = (
    ("restart, 3 workers", star(*THREE_OF_THEM, restart=True), 7_204),
    ("racks of 2 and 2", on(RACKS, (1, 1, 2, 2), ([1], [2, 3], [], [1, 3])), 337),
    ("restart, racks of 2 and 1", on(RACKS, (1, 1, 2), ([1], [], [2]), restart=True), 35_768),
    ("restart, three levels, 1 and 1", on(THREE, (2, 3), ([1], [2]), restart=True), 16_110),
    ("2 reboots, racks of 2 and 1", on(RACKS, (1, 1, 2), ([1], [], [2]), reboots=2), 21_979),
    ("2 lanes, racks of 2 and 1", on(RACKS, (1, 1, 2), ([2, 5], [3], [4]), lanes=2), 10_000),
)


@pytest.mark.parametrize(
    ("arguments", "states"),
    [
        *(pytest.param(arguments, states, id=name) for name, arguments, states in CASES),
        *(
            pytest.param(arguments, states, id=name, marks=pytest.mark.long)
            for name, arguments, states in LONG_CASES
        ),
    ],
)
def test_promises_hold(arguments: Arguments, states: int) -> None:
    assert len(search(StreamSystem(Stream(**arguments))).states) == states


@pytest.mark.parametrize(
    "arguments",
    [star([1], [2]), pytest.param(on(RACK, (1, 0), ([1], [2])), marks=pytest.mark.long)],
    ids=["a switch", "a tree"],
)
def test_steps_that_only_add_packets_may_happen_at_once(arguments: Arguments) -> None:
    at_once, one_by_one = (
        StreamSystem(Stream(**arguments, eager=eager)) for eager in (True, False)
    )
    assert set(map(at_once.seen, search(at_once).states)) == set(
        map(one_by_one.seen, search(one_by_one).states)
    )


SMALL = star(*TWO)
RESTART = star(*TWO, restart=True)
TREE = on(RACKS, (1, 1, 2), ([1], [2], [1, 3]))
TREE_RESTART = on(RACKS, (1, 2), ([1], [2]), restart=True)

NO_PROGRESS = "no progress"
WRONG = "holds"  # values that are not the block's, or a minimum that is not the next
SAYS = "says"

KEEPS, LAST = stream_faults.KeepsTheLeast, stream_faults.BelievesTheLast
CLEARS_NOT, EXPANDS_NOT = stream_faults.DoesNotClear, stream_faults.DoesNotExpand

SEEDED: tuple[tuple[str, Arguments, Arguments, str], ...] = (
    ("one version", SMALL, {"slots": 1}, NO_PROGRESS),
    ("no tag", SMALL, {"root_slot": slot_faults.OlderCounts}, WRONG),
    ("no replay", SMALL, {"root_slot": slot_faults.NeverReplays}, NO_PROGRESS),
    ("the minimum outlives its round", SMALL, {"root_slot": KEEPS}, WRONG),
    ("the last one's next, not the least", SMALL, {"root_slot": LAST}, WRONG),
    ("a packet without values does not clear", SMALL, {"root_slot": CLEARS_NOT}, WRONG),
    ("one that completes is not expanded", SMALL, {"switch_type": EXPANDS_NOT}, WRONG),
    (
        "zero blocks are not answered",
        SMALL,
        {"switch_type": stream_faults.AddsTheSilent, "is_answered": False},
        NO_PROGRESS,
    ),
    ("a worker takes any epoch", RESTART, {"worker_checks_epoch": False}, "took a result"),
    # More of one switch.
    ("the first one's next", SMALL, {"root_slot": stream_faults.BelievesTheFirst}, WRONG),
    ("next is added up", SMALL, {"root_slot": stream_faults.AddsTheNumbers}, WRONG),
    ("next has a sign", SMALL, {"root_slot": stream_faults.ComparesSigned}, WRONG),
    ("no bitmap", SMALL, {"root_slot": slot_faults.NoBitmap}, SAYS),
    ("open rounds replayed", SMALL, {"root_slot": slot_faults.ReplaysOpenRound}, SAYS),
    ("any sender", SMALL, {"switch_type": switch_faults.AdmitsAnySender}, WRONG),
    ("any epoch", RESTART, {"switch_type": switch_faults.AdmitsAnyEpoch}, "of another"),
    # Of a switch below another.
    ("a rack's minimum outlives its round", TREE, {"inner_slot": KEEPS}, WRONG),
    ("the last one's next in a rack", TREE, {"inner_slot": LAST}, WRONG),
    ("the first one's", TREE, {"inner_slot": stream_faults.BelievesTheFirst}, WRONG),
    ("next is added up in a rack", TREE, {"inner_slot": stream_faults.AddsTheNumbers}, WRONG),
    ("next has a sign in a rack", TREE, {"inner_slot": stream_faults.ComparesSigned}, WRONG),
    ("a rack does not clear", TREE, {"inner_slot": CLEARS_NOT}, WRONG),
    ("the root does not clear", TREE, {"root_slot": CLEARS_NOT}, WRONG),
    ("what goes up says one packet's next", TREE, {"switch_type": stream_faults.SaysItsOwn}, WRONG),
    ("not expanded in a tree", TREE, {"switch_type": EXPANDS_NOT}, WRONG),
    ("a rack drops repeats", TREE, {"inner_slot": slot_faults.NeverReplays}, NO_PROGRESS),
    ("no tag in a rack", TREE, {"inner_slot": slot_faults.OlderCounts}, WRONG),
    ("a packet's flags", TREE, {"switch_type": tree_faults.KeepsThePacketsFlags}, SAYS),
    ("an old epoch's", TREE_RESTART, {"switch_type": switch_faults.PassesOldResults}, "of another"),
)


@pytest.mark.parametrize(
    ("arguments", "fault", "broken"),
    [pytest.param(*row, id=name) for name, *row in SEEDED],
)
def test_seeded_faults_are_found(arguments: Arguments, fault: Arguments, broken: str) -> None:
    with pytest.raises(Violation, match=broken):
        search(StreamSystem(Stream(**arguments, **fault)))


@pytest.mark.parametrize("arguments", [SMALL, RESTART, TREE, TREE_RESTART])
def test_without_them_nothing_is(arguments: Arguments) -> None:
    assert search(StreamSystem(Stream(**arguments))).states
