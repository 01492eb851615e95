"""Promises hold over trees in every interleaving of small cases; seeded faults break them.

A row of :data:`CASES` is a tree, what may happen in it, and how many states that has: with another
number the search goes where it did not before, or no longer where it did. The larger ones, of
:data:`LONG_CASES`, are for ``make test-long``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.protocol import slot_faults, switch_faults, tree_faults
from tests.protocol.search import Violation, search
from tests.protocol.tree_check import Tree, TreeSystem

RACK = (None, 0)  # a root and a rack
RACKS = (None, 0, 0)  # a root and two racks
THREE = (None, 0, 1, 1)  # two racks below a switch below the root
CHAIN = (None, 0, 1)  # three levels with a switch each
FOUR = (None, 0, 1, 2)

Arguments = Mapping[str, Any]


def on(
    parents: tuple[int | None, ...], workers: tuple[int, ...], chunks: int, **more: Any
) -> Arguments:
    """A system's: the switch above each switch, the first switch of each worker, and the rest."""
    return {"parents": parents, "workers": workers, "chunks": chunks, **more}


CASES: tuple[tuple[str, Arguments, int], ...] = (
    ("racks of 1 and 1", on(RACKS, (1, 2), 6), 87),
    ("racks of 2 and 1", on(RACKS, (1, 1, 2), 6), 217),
    ("racks of 2 and 2", on(RACKS, (1, 1, 2, 2), 6), 535),
    ("a rack of 1", on(RACK, (1,), 4), 13),
    ("a rack of 2 and a worker at the root", on(RACK, (1, 1, 0), 6), 162),
    ("and that worker's cable ends at the rack", on(RACK, (1, 1, 0), 6, behind={2: 1}), 162),
    ("three levels, racks of 2 and 2", on(THREE, (2, 2, 3, 3), 6), 541),
    ("three levels, a worker at each", on(CHAIN, (2, 1, 0), 6), 211),
    ("four levels, 2 workers below and one at the root", on(FOUR, (3, 3, 0), 6), 196),
    ("numbers pass 2^31", on(RACKS, (1, 1, 2), 6, first_seq=2**31 - 2), 217),
    ("window of 2, racks of 1 and 1", on(RACKS, (1, 2), 8, window=2), 3_249),
    ("window of 2, three levels, 1 and 1", on(THREE, (2, 3), 6, window=2), 2_025),
    ("restart, racks of 1 and 1", on(RACKS, (1, 2), 3, restart=True), 7_220),
    ("restart, a rack of 2, one at the root", on(RACK, (1, 1, 0), 2, restart=True), 4_634),
    ("restart, three levels, 1 and 1", on(THREE, (2, 3), 2, restart=True), 7_576),
    ("a reboot, racks of 2 and 1", on(RACKS, (1, 1, 2), 3, reboots=1), 2_164),
    ("a reboot, three levels, 1 and 1", on(THREE, (2, 3), 3, reboots=1), 768),
    ("2 reboots, racks of 1 and 1", on(RACKS, (1, 2), 3, reboots=2), 3_977),
)

LONG_CASES: tuple[tuple[str, Arguments, int], ...] = (
    (
        "a reboot in a restart, a rack of 1, one at the root: sums only",
        on(RACK, (1, 0), 2, restart=True, reboots=1, live=False),
        12_079,
    ),
    ("2 reboots, three levels, 1 and 1", on(THREE, (2, 3), 3, reboots=2), 6_469),
    ("3 reboots, racks of 1 and 1", on(RACKS, (1, 2), 3, reboots=3), 12_349),
    ("2 reboots, a rack of 2, one at the root", on(RACK, (1, 1, 0), 3, reboots=2), 12_585),
    ("2 reboots, racks of 2 and 1", on(RACKS, (1, 1, 2), 3, reboots=2), 21_979),
    ("restart, three levels, 2 and 1", on(THREE, (2, 2, 3), 2, restart=True), 41_642),
    (
        "restart, a rack of 2, one at the root, 3 chunks",
        on(RACK, (1, 1, 0), 3, restart=True),
        8_549,
    ),
    ("restart, racks of 2 and 1", on(RACKS, (1, 1, 2), 3, restart=True), 35_768),
    ("restart, racks of 1 and 1, 4 chunks", on(RACKS, (1, 2), 4, restart=True), 11_792),
    ("window of 2, racks of 2 and 1", on(RACKS, (1, 1, 2), 6, window=2), 10_000),
    ("2 reboots, three levels, 2 and 1", on(THREE, (2, 2, 3), 3, reboots=2), 30_099),
    ("restart, four levels, 2 and 1", on(FOUR, (3, 3, 0), 2, restart=True), 29_898),
    ("restart, racks of 2 and 2", on(RACKS, (1, 1, 2, 2), 2, restart=True), 92_320),
    ("window of 2, three levels, 2 and 1", on(THREE, (2, 2, 3), 6, window=2), 10_609),
    ("window of 2, racks of 2 and 2", on(RACKS, (1, 1, 2, 2), 6, window=2), 56_644),
    (
        "window of 2, restart, racks of 1 and 1",
        on(RACKS, (1, 2), 2, window=2, restart=True),
        60_040,
    ),
    ("restart, racks of 2 and 2, 3 chunks", on(RACKS, (1, 1, 2, 2), 3, restart=True), 166_292),
    ("restart, three levels, 2 and 2", on(THREE, (2, 2, 3, 3), 2, restart=True), 191_162),
    ("2 reboots, racks of 2 and 2", on(RACKS, (1, 1, 2, 2), 3, reboots=2), 98_367),
    ("a reboot, window of 2, racks of 1 and 1", on(RACKS, (1, 2), 5, window=2, reboots=1), 67_431),
    (
        "a reboot in a restart, racks of 1 and 1: sums only",
        on(RACKS, (1, 2), 2, restart=True, reboots=1, live=False),
        76_156,
    ),
    (
        "a reboot in a restart, one at the root: sums only",
        on(RACK, (1, 1, 0), 2, restart=True, reboots=1, live=False),
        71_244,
    ),
    ("2 reboots, three levels, 2 and 2", on(THREE, (2, 2, 3, 3), 3, reboots=2), 121_815),
    (
        "a reboot in a restart, racks of 2 and 1: sums only",
        on(RACKS, (1, 1, 2), 2, restart=True, reboots=1, live=False),
        486_427,
    ),
    (
        "2 reboots in a restart, racks of 1 and 1: sums only",
        on(RACKS, (1, 2), 2, restart=True, reboots=2, live=False),
        807_091,
    ),
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
    assert len(search(TreeSystem(Tree(**arguments))).states) == states


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(on(RACK, (1, 0), 2), id="a worker at the root", marks=pytest.mark.long),
        pytest.param(on(CHAIN, (2, 0), 1), id="three levels"),
        pytest.param(on(RACK, (1, 0), 1, reboots=1), id="a reboot"),
        pytest.param(on(RACK, (1,), 1, restart=True), id="a restart"),
    ],
)
def test_steps_that_only_add_packets_may_happen_at_once(arguments: Arguments) -> None:
    at_once, one_by_one = (TreeSystem(Tree(**arguments, eager=eager)) for eager in (True, False))
    assert set(map(at_once.seen, search(at_once).states)) == set(
        map(one_by_one.seen, search(one_by_one).states)
    )


SMALL = on(RACKS, (1, 1, 2), 4)
DEEP = on(THREE, (2, 2, 3), 3)
RESTART = on(RACKS, (1, 2), 2, restart=True)
REBOOT = on(RACKS, (1, 1, 2), 3, reboots=1)
BEHIND = on(RACK, (1, 1, 0), 4, behind={2: 1})

NO_PROGRESS = "no progress"
WRONG_SUM = "holds"
WRONG_HEADER = "says"
ASTRAY = r"reaches the workers|got what worker \d asked for"

SEEDED: tuple[tuple[str, Arguments, Arguments, str], ...] = (
    # Those of the first search, of the abstract model.
    ("a rack drops repeats", SMALL, {"inner_slot": slot_faults.NeverReplays}, NO_PROGRESS),
    ("open sums go up", SMALL, {"inner_slot": slot_faults.ReplaysOpenRound}, WRONG_SUM),
    ("one version", SMALL, {"slots": 1}, NO_PROGRESS),
    ("no tag in a rack", SMALL, {"inner_slot": slot_faults.OlderCounts}, WRONG_SUM),
    ("no tag at the root", SMALL, {"root_slot": slot_faults.OlderCounts}, WRONG_SUM),
    ("no bitmap at the root", SMALL, {"root_slot": slot_faults.NoBitmap}, WRONG_SUM),
    ("the root never replays", SMALL, {"root_slot": slot_faults.NeverReplays}, NO_PROGRESS),
    ("results are stored", REBOOT, {"switch_type": tree_faults.StoresResults}, WRONG_SUM),
    ("a worker takes any epoch", RESTART, {"worker_checks_epoch": False}, "took a result"),
    ("a reboot without a restart", REBOOT, {"remedy": False}, NO_PROGRESS),
    # The slot machine, elsewhere.
    ("no order of tags in a rack", SMALL, {"inner_slot": slot_faults.OlderTakesOver}, NO_PROGRESS),
    ("no order at the root", SMALL, {"root_slot": slot_faults.OlderTakesOver}, NO_PROGRESS),
    ("no bitmap in a rack", SMALL, {"inner_slot": slot_faults.NoBitmap}, WRONG_SUM),
    ("open rounds replayed", SMALL, {"root_slot": slot_faults.ReplaysOpenRound}, WRONG_SUM),
    ("no wrap in a rack", SMALL, {"inner_slot": slot_faults.ComparesPlainly}, NO_PROGRESS),
    ("no wrap at the root", SMALL, {"root_slot": slot_faults.ComparesPlainly}, NO_PROGRESS),
    # What goes up.
    ("signed as who asks", SMALL, {"switch_type": tree_faults.SignsAsTheAsker}, NO_PROGRESS),
    ("a packet's flags", SMALL, {"switch_type": tree_faults.KeepsThePacketsFlags}, WRONG_HEADER),
    ("its exponent", SMALL, {"switch_type": tree_faults.KeepsThePacketsExponent}, WRONG_HEADER),
    ("any sender", SMALL, {"switch_type": switch_faults.AdmitsAnySender}, WRONG_SUM),
    ("any epoch", RESTART, {"switch_type": switch_faults.AdmitsAnyEpoch}, "of another"),
    (
        "what passes through",
        BEHIND,
        {"fabric_type": tree_faults.TakesWhatPassesThrough},
        NO_PROGRESS,
    ),
    # The way back.
    ("the root replays to all", SMALL, {"switch_type": switch_faults.ReplaysToAll}, ASTRAY),
    ("REPLAY in a result to all", SMALL, {"switch_type": tree_faults.RootMarksAll}, ASTRAY),
    (
        "another child in the path",
        DEEP,
        {"switch_type": tree_faults.WritesAnotherChild},
        WRONG_HEADER,
    ),
    ("a path to nobody, to all", SMALL, {"switch_type": tree_faults.AstrayToAll}, ASTRAY),
    ("a replay, to all below", SMALL, {"switch_type": tree_faults.ReplaysToAllBelow}, ASTRAY),
    ("the path's level above", DEEP, {"switch_type": tree_faults.ReadsTheLevelAbove}, ASTRAY),
    ("the path's level below", DEEP, {"switch_type": tree_faults.ReadsTheLevelBelow}, ASTRAY),
    ("anyone's result", SMALL, {"switch_type": tree_faults.BelievesAnyResult}, WRONG_SUM),
    ("a child's", SMALL, {"switch_type": tree_faults.BelievesResultsOfChildren}, WRONG_SUM),
    ("an old epoch's", RESTART, {"switch_type": switch_faults.PassesOldResults}, "of another"),
)


@pytest.mark.parametrize(
    ("arguments", "fault", "broken"),
    [pytest.param(*row, id=name) for name, *row in SEEDED],
)
def test_seeded_faults_are_found(arguments: Arguments, fault: Arguments, broken: str) -> None:
    with pytest.raises(Violation, match=broken):
        search(TreeSystem(Tree(**arguments, **fault)))


@pytest.mark.parametrize("arguments", [SMALL, DEEP, RESTART, REBOOT, BEHIND])
def test_without_them_nothing_is(arguments: Arguments) -> None:
    assert search(TreeSystem(Tree(**arguments))).states
