"""Promises of mode `shared` hold in every interleaving of small cases; seeded faults break them.

A row of :data:`CASES` is some jobs, what may happen, and how many states that has: with another
number the search goes where it did not before, or no longer where it did. The larger ones, of
:data:`LONG_CASES`, are for ``make test-long``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ina.protocol.switch_model import Departure, SwitchModel
from tests.protocol import shared_faults, slot_faults, switch_faults, tree_faults
from tests.protocol.search import Violation, search
from tests.protocol.shared_check import Shared, SharedSystem
from tests.protocol.shared_faults import Share
from tests.protocol.shared_moves import Kinds
from tests.protocol.shared_tenants import Tenant

ONE = (None, 0)  # an aggregator, and a switch
CHAIN = (None, 0, 1)  # a switch below the switch
RACKS = (None, 0, 1, 1)  # two racks below a switch
DEEP = (None, 0, 1, 2)  # four levels

Jobs = tuple[Tenant, ...]
Arguments = Mapping[str, Any]


def of(*ranks_of: int, chunks: int = 2, **more: Any) -> Jobs:
    """Jobs of so many workers at one switch, all lanes on its first slots."""
    return tuple(Tenant(ONE, (1,) * ranks, chunks, **more) for ranks in ranks_of)


def resized(ranks: int, chunks: int, **more: Any) -> Jobs:
    """A job that gets its second mapping while it runs."""
    return (Tenant(ONE, (1,) * ranks, chunks, change="resize", **more),)


def aggregators(chunks: int, *, same: bool) -> Jobs:
    """A job of 2 workers and 2 lanes with an aggregator each; on the switch they have one slot, or
    two."""
    first, second = (1, 0) if same else (0, 0)
    return (
        Tenant(ONE, (1, 1), chunks, window=2, first=first, lanes=(0,)),
        Tenant(ONE, (1, 1), chunks, window=2, first=second, lanes=(1,), same_epoch=True),
    )


LOST: Arguments = {"resets": 1, "live": False}
"""Of slots of a job's own, once. Then resends may not end it: it needs another epoch."""

CASES: tuple[tuple[str, Jobs, Arguments, int], ...] = (
    ("2 workers and 1", of(2, 1), {}, 1_321),
    ("2 and 1, more chunks", (*of(2, chunks=3), *of(1)), {}, 2_507),
    ("3 workers", of(3), {}, 909),
    ("2 and 2", (*of(2), *of(2, chunks=1)), {}, 3_059),
    ("3 and 2, whose sums are put out", of(3, 2, chunks=1), {}, 13_577),
    ("2 and 2, packets without values", (*of(2, silent=(1,)), *of(2, chunks=1)), {}, 3_059),
    ("2 and 1, reboots, strangers", of(2, 1), {"strangers": True, "reboots": True}, 1_351),
    ("a lane without a slot", of(2, chunks=3, window=2, claimable=1), {"reboots": True}, 1_421),
    ("two aggregators, lanes that meet", aggregators(2, same=True), {"reboots": True}, 1_180),
    ("restart, reboots", of(2, chunks=1, change="restart"), {"reboots": True}, 4_148),
    ("restart of 1 beside 1", (*of(1, change="restart"), *of(1, chunks=1)), {}, 3_108),
    ("resize in place, reboots", resized(2, 2, moves_at=1), {"reboots": True}, 6_992),
    ("resize of 1 beside 1", (*resized(1, 3, moves_at=2), *of(1)), {"reboots": True}, 3_359),
    (
        "from slots of its own to shared ones",
        resized(2, 2, own=(1,), to_own=(), moves_at=1),
        {},
        1_690,
    ),
    ("and back", resized(2, 2, to_own=(1,), moves_at=1), {}, 3_195),
    ("the aggregator's slots are lost: sums only", of(2), LOST, 1_874),
    ("racks of 1 and 1, reboots", (Tenant(RACKS, (2, 3), 2),), {"reboots": True}, 4_027),
    ("a worker and a rack of 1", (Tenant(CHAIN, (2, 1), 2),), {"reboots": True}, 893),
    ("four levels", (Tenant(DEEP, (3, 2), 1),), {"reboots": True}, 5_202),
    (
        "a host's node of 2 and 1",
        (Tenant(CHAIN, (2, 2, 1), 3, own=(2,)),),
        {"reboots": True},
        1_101,
    ),
    ("and another job", (Tenant(CHAIN, (2, 2, 1), 2, own=(2,)), *of(1)), {}, 3_307),
    ("two hosts' nodes", (Tenant(RACKS, (2, 2, 3, 3), 2, own=(2, 3)),), {"reboots": True}, 1_375),
    ("a host's node below a rack", (Tenant(DEEP, (3, 3, 2), 1, own=(3,)),), {}, 1_331),
)

LONG_CASES: tuple[tuple[str, Jobs, Arguments, int], ...] = (
    ("2 and 1, 3 chunks each", of(2, 1, chunks=3), {"reboots": True}, 3_816),
    ("3 and 2, a chunk each", of(3, 2, chunks=1), {"reboots": True}, 14_252),
    ("2, 1 and 1", (*of(2), *of(1, 1, chunks=1)), {"reboots": True}, 2_583),
    ("3 and 1", of(3, 1), {"reboots": True}, 20_461),
    ("2 and 2, as many chunks", of(2, 2), {"reboots": True}, 8_085),
    (
        "from slots of its own, 3 chunks",
        resized(2, 3, own=(1,), to_own=(), moves_at=1),
        {"reboots": True},
        5_923,
    ),
    ("and back, 3 chunks", resized(2, 3, to_own=(1,), moves_at=2), {"reboots": True}, 10_216),
    (
        "two aggregators, 4 chunks, lanes that meet",
        aggregators(4, same=True),
        {"reboots": True},
        8_085,
    ),
    (
        "restart of 2 beside 1",
        (*of(2, chunks=1, change="restart"), *of(1, chunks=1)),
        {"reboots": True},
        15_372,
    ),
    ("resize in place, 3 chunks", resized(2, 3, moves_at=2), {"reboots": True}, 16_861),
    (
        "resize of 2 beside 1",
        (*resized(2, 2, moves_at=1), *of(1, chunks=1)),
        {"reboots": True},
        24_804,
    ),
    ("the aggregator's slots are lost, 3 chunks: sums only", of(2, chunks=3), LOST, 8_242),
    (
        "a host's node below a rack, registers lost",
        (Tenant(DEEP, (3, 3, 2), 1, own=(3,)),),
        {"reboots": True},
        24_514,
    ),
    (
        "racks of 1 and 1 beside a job above",
        (Tenant(RACKS, (2, 3), 2), *of(1, chunks=1)),
        {"reboots": True},
        14_319,
    ),
    ("2 jobs in 2 racks each", (Tenant(RACKS, (2, 3), 1), Tenant(RACKS, (2, 3), 1)), {}, 28_225),
    ("restart, 2 chunks", of(2, change="restart"), {"reboots": True}, 29_171),
    ("restart of 3", of(3, chunks=1, change="restart"), {"reboots": True}, 362_262),
    (
        "lanes of 2 jobs that meet",
        (*of(2, chunks=3, window=2), *of(1, chunks=1, first=1)),
        {"reboots": True},
        51_156,
    ),
    ("a worker and a rack of 2", (Tenant(CHAIN, (2, 2, 1), 1),), {"reboots": True}, 60_124),
    ("racks of 2 and 1", (Tenant(RACKS, (2, 2, 3), 1),), {"reboots": True}, 180_372),
    ("racks of 2 and 2", (Tenant(RACKS, (2, 2, 3, 3), 1),), {}, 51_597),
    (
        "restart, a host's node",
        (Tenant(CHAIN, (2, 2, 1), 1, own=(2,), change="restart"),),
        {"reboots": True},
        70_141,
    ),
    ("4 workers", of(4, chunks=1), {"reboots": True}, 259_472),
    ("four levels, 2 chunks", (Tenant(DEEP, (3, 2), 2),), {}, 16_005),
    ("3 and 2, 2 chunks each", of(3, 2), {"reboots": True}, 106_141),
    ("resize from 1 lane to 2", resized(2, 3, to=(0, 2), moves_at=1), {}, 228_577),
    ("resize from 2 lanes to 1", resized(2, 3, window=2, to=(1, 1), moves_at=2), {}, 212_991),
    ("restart, the aggregator's slots are lost: sums only", of(2, change="restart"), LOST, 438_033),
    (
        "restart, a worker and a rack of 1",
        (Tenant(CHAIN, (2, 1), 1, change="restart"),),
        {},
        47_738,
    ),
    (
        "resize, a worker and a rack of 1",
        (Tenant(CHAIN, (2, 1), 2, change="resize", moves_at=1),),
        {},
        91_173,
    ),
    (
        "3 and a lane without a slot, beside 1",
        (*of(3, window=2, claimable=1), *of(1, chunks=1)),
        {},
        49_365,
    ),
    ("resize of 3 at once, registers lost", resized(3, 1), {"reboots": True}, 50_897),
)


@pytest.mark.parametrize(
    ("jobs", "arguments", "states"),
    [
        *(pytest.param(*row, id=name) for name, *row in CASES),
        *(pytest.param(*row, id=name, marks=pytest.mark.long) for name, *row in LONG_CASES),
    ],
)
def test_promises_hold(jobs: Jobs, arguments: Arguments, states: int) -> None:
    assert len(search(SharedSystem(Shared(jobs, **arguments))).states) == states


@pytest.mark.parametrize(
    ("jobs", "arguments"),
    [
        pytest.param(of(2, chunks=1), {"reboots": True}, id="2 workers"),
        pytest.param(of(2, 1, chunks=1), {}, id="and another job", marks=pytest.mark.long),
        pytest.param(of(2), {}, id="2 chunks", marks=pytest.mark.long),
        pytest.param((Tenant(CHAIN, (2, 1), 1),), {}, id="a rack", marks=pytest.mark.long),
        pytest.param((Tenant(CHAIN, (2, 2), 1, own=(2,)),), {}, id="a host's node"),
    ],
)
def test_leaving_steps_out_adds_and_loses_no_state(jobs: Jobs, arguments: Arguments) -> None:
    fewer, all_of_them = (
        SharedSystem(Shared(jobs, **arguments, exact=exact)) for exact in (False, True)
    )
    assert set(map(fewer.seen, search(fewer).states)) == set(
        map(all_of_them.seen, search(all_of_them).states)
    )


@pytest.mark.parametrize(
    ("share", "most"),
    [
        pytest.param(None, 1, id="right"),
        # It costs no more than that, so no search finds it.
        pytest.param(shared_faults.numbers_are_compared_plainly, 3, id="compared plainly"),
    ],
)
def test_without_trouble_one_sum_of_each_chunk_goes_up(
    share: Share | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if share is not None:
        monkeypatch.setattr("ina.protocol.switch_model.share", share)
    gone_up = SharedSystem(Shared(of(3, chunks=4), marks=False)).undisturbed()
    assert sorted(gone_up) == list(range(4))  # past where numbers wrap around
    assert max(gone_up.values()) == most


PAIR = (*of(2, chunks=3), *of(1))  # and another's worker beside it
THREE = of(3)
RESTART = of(2, chunks=1, change="restart")
RACK = (Tenant(CHAIN, (2, 2, 1), 1),)
NODES = (Tenant(RACKS, (2, 2, 3, 3), 1, own=(2, 3)),)  # of two hosts

NO_PROGRESS = "no progress"
WRONG_SUM = "holds"
WRONG_HEADER = "says"
PINNED = "pinned"
STAMP = "stamp"


def slots(**kinds: Any) -> Arguments:
    """``root_slot``, ``own_slot``, ``shared_slot``: with a fault."""
    return {"kinds": Kinds(**kinds)}


def switches(kind: type[SwitchModel]) -> Arguments:
    """With a fault, all of them."""
    return {"kinds": Kinds(switch=kind)}


NO_SUPERSETS = slots(root_slot=shared_faults.KnowsNoSupersets)
UNMARKED: Arguments = {"marks": False}
STRANGERS: Arguments = {"strangers": True}

SEEDED: tuple[tuple[str, Jobs, Arguments, Share | None, str], ...] = (
    # Those of the first search, of the abstract model. What is put out of a slot has a test of its
    # own; a second pass over the values the reference model has not.
    ("no tags", PAIR, slots(root_slot=slot_faults.OlderCounts), None, WRONG_SUM),
    ("overlaps add", PAIR, slots(root_slot=shared_faults.AddsWhatOverlaps), None, WRONG_SUM),
    ("one version", PAIR, {"versions": 1}, None, NO_PROGRESS),
    ("no replay", PAIR, slots(root_slot=slot_faults.NeverReplays), None, NO_PROGRESS),
    ("flushed, but open", THREE, NO_SUPERSETS, shared_faults.leaves_the_round_open, NO_PROGRESS),
    ("a flush names its sender", PAIR, {}, shared_faults.names_its_sender_only, WRONG_SUM),
    ("RESEND like any other", NODES, UNMARKED, shared_faults.resend_is_no_different, NO_PROGRESS),
    ("taking over adds", PAIR, slots(shared_slot=shared_faults.TakingOverAdds), None, WRONG_SUM),
    ("late ones join", PAIR, {}, shared_faults.late_ones_join, WRONG_SUM),
    ("any epoch's slot", PAIR, UNMARKED, shared_faults.epochs_are_not_compared, WRONG_SUM),
    ("it answers itself", THREE, switches(shared_faults.AnswersByItself), None, NO_PROGRESS),
    ("neither flush nor supersets", THREE, NO_SUPERSETS, shared_faults.without_flush, NO_PROGRESS),
    ("slots do not age", PAIR, {}, shared_faults.slots_do_not_age, PINNED),
    # Who holds a slot, and until when.
    ("resends keep a slot", PAIR, {}, shared_faults.resends_are_heard, STAMP),
    ("the clock's wrap", PAIR, {}, shared_faults.clocks_do_not_wrap, PINNED),
    ("results free nothing", PAIR, switches(shared_faults.ReleasesNothing), None, STAMP),
    ("results free others' slots", PAIR, switches(shared_faults.ReleasesForOthers), None, STAMP),
    ("closed, put out again", PAIR, {}, shared_faults.puts_closed_rounds_out, WRONG_SUM),
    ("closed, flushed again", PAIR, {}, shared_faults.flushes_closed_rounds, WRONG_SUM),
    ("collisions untold", PAIR, switches(shared_faults.KeepsCollisions), None, WRONG_HEADER),
    # Who is told that others want a slot.
    ("nobody is told", PAIR, {}, shared_faults.nobody_is_told, "told of others"),
    ("resends tell", PAIR, {}, shared_faults.resends_tell, "told of others"),
    ("late ones tell", PAIR, {}, shared_faults.own_late_ones_tell, "told of others"),
    ("who comes is told", PAIR, switches(shared_faults.TellsWhoComes), None, "told wrongly"),
    ("told for ever", PAIR, slots(shared_slot=shared_faults.RemembersOthers), None, "forgets"),
    ("so is the aggregator", PAIR, slots(root_slot=shared_faults.RemembersOthers), None, "forgets"),
    ("what is wanted is taken", PAIR, {}, shared_faults.taken_at_once, "wants changes"),
    # Whose parts.
    ("workers are believed", PAIR, switches(shared_faults.BelievesWorkers), None, WRONG_SUM),
    ("switches are not", PAIR, switches(shared_faults.BelievesNoSwitch), None, WRONG_SUM),
    ("bits by index", RACK, switches(shared_faults.BitsByIndex), None, "names"),
    (
        "overlaps add in a rack",
        RACK,
        slots(shared_slot=shared_faults.AddsWhatOverlaps),
        None,
        WRONG_SUM,
    ),
    (
        "a node's copies",
        NODES,
        {**UNMARKED, **switches(shared_faults.LooksAtFlagsOnly)},
        None,
        NO_PROGRESS,
    ),
    ("a node drops repeats", NODES, slots(own_slot=slot_faults.NeverReplays), None, NO_PROGRESS),
    ("a node's open sums", NODES, slots(own_slot=slot_faults.ReplaysOpenRound), None, WRONG_SUM),
    # The aggregator, elsewhere.
    ("open replays", PAIR, slots(root_slot=slot_faults.ReplaysOpenRound), None, WRONG_SUM),
    ("older take over", PAIR, slots(root_slot=slot_faults.OlderTakesOver), None, NO_PROGRESS),
    ("no wrap", PAIR, slots(root_slot=slot_faults.ComparesPlainly), None, NO_PROGRESS),
    # Who is admitted, and the way back.
    ("any sender", PAIR, {**STRANGERS, **switches(switch_faults.AdmitsAnySender)}, None, WRONG_SUM),
    (
        "anyone's result",
        PAIR,
        {**STRANGERS, **switches(tree_faults.BelievesAnyResult)},
        None,
        WRONG_SUM,
    ),
    ("any epoch", RESTART, switches(switch_faults.AdmitsAnyEpoch), None, "is admitted"),
    ("old results", RESTART, switches(switch_faults.PassesOldResults), None, "is admitted"),
    ("replays to all", PAIR, switches(switch_faults.ReplaysToAll), None, "reaches the workers"),
    ("and below", PAIR, switches(shared_faults.PassesAllDown), None, "reaches|asked for"),
)


@pytest.mark.parametrize(
    ("jobs", "arguments", "share", "broken"),
    [pytest.param(*row, id=name) for name, *row in SEEDED],
)
def test_seeded_faults_are_found(
    jobs: Jobs,
    arguments: Arguments,
    share: Share | None,
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if share is not None:
        monkeypatch.setattr("ina.protocol.switch_model.share", share)
    with pytest.raises(Violation, match=broken):
        search(SharedSystem(Shared(jobs, **arguments)))


@pytest.mark.parametrize(
    ("put_out", "broken"),
    [
        pytest.param(shared_faults.names_the_newcomer, WRONG_SUM, id="names the newcomer"),
        pytest.param(shared_faults.puts_out_as_the_newcomer, WRONG_SUM, id="under its number"),
        pytest.param(shared_faults.says_what_the_newcomer_says, WRONG_HEADER, id="as it says"),
        pytest.param(shared_faults.asks_for_a_result, WRONG_HEADER, id="by its path"),
        pytest.param(shared_faults.says_nothing_of_others, "told wrongly", id="untold"),
    ],
)
def test_seeded_faults_of_what_is_put_out_of_a_slot_are_found(
    put_out: Callable[..., Departure], broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ina.protocol.switch_model._evicted", put_out)
    with pytest.raises(Violation, match=broken):
        search(SharedSystem(Shared(of(3, 2, chunks=1))))


@pytest.mark.parametrize(
    ("arguments", "share"),
    [
        pytest.param({}, shared_faults.without_flush, id="no flush: as Tofino 1"),
        pytest.param({}, shared_faults.leaves_the_round_open, id="rounds stay open"),
        pytest.param(NO_SUPERSETS, None, id="no supersets"),
    ],
)
def test_one_of_closed_rounds_and_supersets_is_enough(
    arguments: Arguments, share: Share | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if share is not None:
        monkeypatch.setattr("ina.protocol.switch_model.share", share)
    assert search(SharedSystem(Shared(THREE, **arguments))).states
