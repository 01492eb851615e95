"""The promises of shapes other than SUM hold in every interleaving of small cases; seeded faults
break them.

A row of :data:`CASES` is a job, and how many states it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ina.protocol.spec import Shape
from tests.protocol import shape_faults, slot_faults, switch_faults
from tests.protocol.search import Violation, search
from tests.protocol.shape_check import Rounds, Shaped, ShapedFabric, ShapedSystem

STAR = (None,)
RACK = (None, 0)  # a root and a rack
RACKS = (None, 0, 0)  # a root and two racks
THREE_LEVELS = (None, 0, 0, 2)  # a root, a rack, and one below a switch

SUM, SCATTER, GATHER = Shape.SUM, Shape.SCATTER, Shape.GATHER
Arguments = Mapping[str, Any]


def turns(workers: int, rounds: int, *shapes: Shape) -> Rounds:
    """Chunks of these shapes, owners by turns."""
    return tuple(
        (shapes[chunk % len(shapes)], chunk // len(shapes) % workers) for chunk in range(rounds)
    )


def on(
    parents: tuple[int | None, ...], workers: tuple[int, ...], rounds: Rounds, **more: Any
) -> Arguments:
    """A system's: the switch above each switch, the first switch of each worker, its rounds."""
    place = {"parents": parents, "workers": workers, "fabric_type": ShapedFabric}
    return {**place, "rounds": rounds, "chunks": len(rounds), **more}


def star(workers: int, rounds: int, *shapes: Shape, **more: Any) -> Arguments:
    """One switch."""
    return on(STAR, (0,) * workers, turns(workers, rounds, *shapes), **more)


CASES: tuple[tuple[str, Arguments, int], ...] = (
    ("scatter, 2 workers", star(2, 6, SCATTER), 47),
    ("gather, 2 workers", star(2, 6, GATHER), 47),
    ("scatter, 3 workers", star(3, 5, SCATTER), 119),
    ("gather, 3 workers", star(3, 5, GATHER), 119),
    ("all shapes by turns, 3 workers", star(3, 6, SUM, SCATTER, GATHER), 145),
    ("a gather behind sums, 2 workers", star(2, 6, SUM, SUM, GATHER), 47),
    ("one root, 3 workers", on(STAR, (0, 0, 0), ((GATHER, 2), (SCATTER, 2)) * 3), 145),
    ("2 lanes, both directions", star(2, 6, GATHER, SCATTER, window=2), 529),
    ("restart, 2 workers", star(2, 3, SCATTER, GATHER, restart=True), 444),
    ("racks of 1 and 1", on(RACKS, (1, 2), turns(2, 5, SCATTER, GATHER)), 72),
    ("racks of 2 and 1", on(RACKS, (1, 1, 2), turns(3, 4, SCATTER, GATHER)), 139),
    (
        "racks of 2 and 1, the owner one of two",
        on(RACKS, (1, 1, 2), ((SCATTER, 1), (GATHER, 1), (SCATTER, 0), (GATHER, 0))),
        139,
    ),
    ("a rack of 2, a worker at the root", on(RACK, (1, 1, 0), turns(3, 4, SCATTER, GATHER)), 104),
    ("three levels", on(THREE_LEVELS, (1, 3), turns(2, 4, SCATTER, GATHER)), 72),
    ("reboots, 2 workers", star(2, 4, SCATTER, GATHER, reboots=2), 933),
    ("restart, racks", on(RACKS, (1, 2), turns(2, 2, SCATTER, GATHER), restart=True), 3_764),
    ("a reboot, racks", on(RACKS, (1, 2), turns(2, 3, SCATTER, GATHER), reboots=1), 615),
)

LONG_CASES: tuple[tuple[str, Arguments, int], ...] = (
    ("restart, 3 workers", star(3, 4, SCATTER, GATHER, restart=True), 5_072),
    ("racks of 2 and 2", on(RACKS, (1, 1, 2, 2), turns(4, 4, GATHER, SCATTER)), 337),
    ("2 lanes, racks", on(RACKS, (1, 1, 2), turns(3, 6, GATHER, SCATTER), window=2), 10_000),
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
    assert len(search(ShapedSystem(Shaped(**arguments))).states) == states


def test_steps_that_only_add_packets_may_happen_at_once() -> None:
    arguments = star(2, 3, SCATTER, GATHER)
    at_once, one_by_one = (
        ShapedSystem(Shaped(**arguments, eager=eager)) for eager in (True, False)
    )
    assert set(map(at_once.seen, search(at_once).states)) == set(
        map(one_by_one.seen, search(one_by_one).states)
    )


SCATTERED, GATHERED, MIXED = star(2, 4, SCATTER), star(2, 4, GATHER), star(2, 4, SUM, GATHER)
THREE, GATHERED_BY_THREE = star(3, 4, SCATTER), star(3, 4, GATHER)
TREE = on(RACKS, (1, 2), turns(2, 4, SCATTER))
GATHERED_IN_TREE = on(RACKS, (1, 1, 2), ((GATHER, 1), (GATHER, 2), (GATHER, 0)))
SCATTERED_IN_TREE = on(RACKS, (1, 1, 2), ((SCATTER, 1), (SCATTER, 2)))
RESTART = star(2, 3, SCATTER, GATHER, restart=True)

NO_PROGRESS = "no progress"
WRONG = "holds"
SAYS = "says"
FOR_NOTHING = "gets values"

CLEARS_NOT, EXPANDS_NOT = shape_faults.DoesNotClear, shape_faults.DoesNotExpand


def rows(fabric: type[ShapedFabric]) -> Arguments:
    """The fault that the controller writes these."""
    return {"fabric_type": fabric}


SEEDED: tuple[tuple[str, Arguments, Arguments, str], ...] = (
    ("one version", SCATTERED, {"slots": 1}, NO_PROGRESS),
    ("no tag", GATHERED, {"root_slot": slot_faults.OlderCounts}, SAYS),
    ("no replay", SCATTERED, {"root_slot": slot_faults.NeverReplays}, NO_PROGRESS),
    (
        "open rounds are answered",
        GATHERED_BY_THREE,
        {"root_slot": slot_faults.ReplaysOpenRound},
        SAYS,
    ),
    ("who completes a gather is not expanded", GATHERED, {"switch_type": EXPANDS_NOT}, WRONG),
    ("nor the owner that completes a scatter", SCATTERED, {"switch_type": EXPANDS_NOT}, WRONG),
    ("who begins does not clear", MIXED, {"root_slot": CLEARS_NOT}, WRONG),
    (
        "a repeat without values is answered so",
        GATHERED,
        {"switch_type": shape_faults.AnswersWithoutValues},
        WRONG,
    ),
    (
        "replays never have values",
        SCATTERED,
        {"switch_type": shape_faults.ReplaysWithoutValues},
        WRONG,
    ),
    ("the owner gives, too", SCATTERED, {"owner_gives": True}, WRONG),
    (
        "a gather is complete with its owner's packet",
        GATHERED_BY_THREE,
        {"switch_type": shape_faults.CompleteWithItsOwner},
        SAYS,
    ),
    ("an inner switch drops repeats", TREE, {"inner_slot": slot_faults.NeverReplays}, NO_PROGRESS),
    ("gathers go up without values", GATHERED_IN_TREE, rows(shape_faults.UpWithoutValues), WRONG),
    ("scatters do", SCATTERED_IN_TREE, rows(shape_faults.ScattersUpWithoutValues), WRONG),
    ("one index is compared", SCATTERED_IN_TREE, rows(shape_faults.LastIndexAlone), WRONG),
    (
        "gathers go not down the owner's way",
        GATHERED_IN_TREE,
        rows(shape_faults.NotDownTheOwnersWay),
        WRONG,
    ),
    # Costs bytes alone.
    ("all get all of a scatter", THREE, rows(shape_faults.ToAll), FOR_NOTHING),
    ("all get all of a gather", GATHERED, rows(shape_faults.ToAll), FOR_NOTHING),
    ("the others get it", SCATTERED, rows(shape_faults.ToTheOthers), WRONG),
    # More of a switch below another.
    ("a rack does not clear", GATHERED_IN_TREE, {"inner_slot": CLEARS_NOT}, WRONG),
    ("a rack is not expanded", SCATTERED_IN_TREE, {"switch_type": EXPANDS_NOT}, WRONG),
    ("any epoch", RESTART, {"switch_type": switch_faults.AdmitsAnyEpoch}, "of another"),
    ("a worker takes any epoch", RESTART, {"worker_checks_epoch": False}, "took a result"),
)


@pytest.mark.parametrize(
    ("arguments", "fault", "broken"),
    [pytest.param(*row, id=name) for name, *row in SEEDED],
)
def test_seeded_faults_are_found(arguments: Arguments, fault: Arguments, broken: str) -> None:
    with pytest.raises(Violation, match=broken):
        search(ShapedSystem(Shaped(**{**arguments, **fault})))


@pytest.mark.parametrize(
    "arguments",
    [
        SCATTERED,
        GATHERED,
        MIXED,
        THREE,
        GATHERED_BY_THREE,
        TREE,
        GATHERED_IN_TREE,
        SCATTERED_IN_TREE,
        RESTART,
    ],
)
def test_without_them_nothing_is(arguments: Arguments) -> None:
    assert search(ShapedSystem(Shaped(**arguments))).states
