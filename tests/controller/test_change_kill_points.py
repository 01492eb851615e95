"""A controller that dies anywhere in a change of a job over three switches: its successor goes on
with it, or calls it off; no switch is left with half of it, and no slot without an owner.

The ranks live on. They do what docs/resize.md says: ask when they hear of a change, say again what
was not answered, and go by the new mapping as soon as they may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from ina.controller import faults, retry
from ina.controller.change import Word
from ina.controller.jobs.changes import Told
from ina.p4 import names
from ina.trees.forest import Forest
from tests.worlds.fakes.changing import LEAF1, OVER_SPINE, S, epochs_on
from tests.worlds.fakes.racks import AGGREGATORS, NAMES, SLOTS, Racks
from tests.worlds.fakes.reaper import Reaper, bury

STEPS = (
    "remap",
    "remap_ask",
    "remap_decide",
    "remap_turn",
    "remap_free",
    "remap_over",
)
POINTS = [
    *(f"{step}.{when}" for step in STEPS for when in ("decided", "stored")),
    "install.epoch_marked",
    *(f"install.stage_{stage}" for stage in range(3)),
    *(f"remove.stage_{stage}" for stage in range(3)),
]
TIMES = (1, 2, 3)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(retry, "MAX_PAUSE_S", 0.001)
    yield
    faults.observer = None


@dataclass
class Rank:
    """What a worker keeps of changes, whichever controller it talks to."""

    rank: int
    uses: int
    """The newest mapping that it sends by."""
    knows: Told | None = None
    is_done: bool = False
    declines: bool = False
    used: list[tuple[int, int]] = field(default_factory=list)
    """Mappings that it has gone over to, and from which operation on."""

    def talk(self, racks: Racks) -> None:
        """One call, as a heartbeat or an event has it make."""
        job = racks.registry.get("j")
        to = racks.coordinator.changes.epoch_to(job, self.rank)
        if not to and self.knows is None:
            return
        epoch = 0 if self.knows is None else self.knows.mapping.epoch
        if not to and self.is_done and self.uses == epoch:
            epoch = 0  # it has heard all
        first, declined = 0, False
        if epoch and self.rank == 0 and self.knows and not self.knows.terms.first_operation:
            first, declined = (0, True) if self.declines else (S + len(self.used), False)
        word = Word(epoch, first, declined=declined, done=self.is_done and epoch != 0)
        told = racks.coordinator.changes.hear(job, self.rank, word)
        if told is None:  # called off, over, or not known here yet
            self.knows, self.is_done = None, False
            return
        self.knows = told
        if told.terms.first_operation:
            self.is_done = True  # it has all results of operations before, at once
            if not told.terms.waits and self.uses != told.mapping.epoch:
                self.uses = told.mapping.epoch
                self.used.append((told.mapping.epoch, told.terms.first_operation))


async def until_over(racks: Racks, ranks: list[Rank], change: asyncio.Task[None] | None) -> None:
    """Ranks talk until nothing changes any more."""
    while True:
        for rank in ranks:
            rank.talk(racks)
        await asyncio.sleep(0)
        job = racks.registry.get("j")
        is_begun = change is None or change.done()
        if is_begun and job.change is None and all(rank.knows is None for rank in ranks):
            return


@dataclass(frozen=True)
class Case:
    """A change, and what the job has when it has gone through."""

    leaves: tuple[int, ...]
    slots: int
    forest: Forest | None = None
    declines: bool = False
    modes: tuple[str, str] = (names.POOL, names.POOL)
    """Before and after."""
    aggregators: int = 0

    def racks(self) -> Racks:
        """Where it happens."""
        mode = names.SHARED if self.aggregators else names.POOL
        return Racks(mode, aggregators=self.aggregators)

    @property
    def targets(self) -> dict[str, int]:
        """Slots of its own by switch then."""
        if self.modes[1] == names.SHARED:
            ends = AGGREGATORS[: self.aggregators]
            return dict.fromkeys(ends, self.slots // len(ends))
        if self.leaves == (1, 1):
            forest = LEAF1 if self.forest is None else self.forest
            return dict.fromkeys(forest.switches, self.slots)
        return dict.fromkeys(NAMES, self.slots)


GROW = Case((1, 1, 2, 2), 32)
IN_PLACE = Case((1, 1, 2, 2), SLOTS - 8)
OTHER_TREE = Case((1, 1), 32, OVER_SPINE)
DECLINED = Case((1, 1, 2, 2), 32, declines=True)
TO_SHARED = Case((1, 1, 2, 2), 32, modes=(names.POOL, names.SHARED), aggregators=2)
TO_POOL = Case((1, 1, 2, 2), 32, modes=(names.SHARED, names.POOL), aggregators=2)
SHARED = Case((1, 1, 2, 2), 32, modes=(names.SHARED, names.SHARED), aggregators=1)


async def die_and_go_on(case: Case, point: str, times: int) -> bool:
    """Returns whether the first controller got to the point."""
    alive = asyncio.all_tasks()
    racks = case.racks()
    await racks.start()
    job = await racks.run("j", case.leaves, mode=case.modes[0])
    first, had = job.epoch, {name: slots for name, slots in racks.used().items() if slots}
    ranks = [Rank(rank, first, declines=case.declines) for rank in range(len(case.leaves))]
    faults.observer = reaper = Reaper(racks, point, times)
    to = (case.slots, case.forest, case.modes[1])
    change = asyncio.ensure_future(_change(racks, *to))
    try:
        life = until_over(racks, ranks, change)
        task = asyncio.ensure_future(life)
        while not (task.done() or reaper.is_dead):
            await asyncio.sleep(0)
    finally:
        faults.observer = None
    died = reaper.is_dead
    await bury(racks, alive)
    await racks.start()
    await asyncio.wait_for(until_over(racks, ranks, None), 5)
    await racks.until_idle()
    racks.assert_agrees()
    job = racks.registry.get("j")
    # All ranks send by the mapping that the job has, and none has ever gone over to another.
    assert {rank.uses for rank in ranks} == {job.mapping.epoch}
    expected = [] if job.mapping.epoch == first else [(job.mapping.epoch, job.first_operation)]
    assert [rank.used for rank in ranks] == [expected] * len(ranks)
    targets = case.targets if expected else had
    assert job.mode == case.modes[bool(expected)]
    assert racks.used() == dict.fromkeys(racks.names, 0) | targets
    for name in racks.names:
        is_here = name in job.memory
        assert epochs_on(racks, name, job) == ([job.mapping.epoch] if is_here else [])
    stored = racks.store.load(0.0)[0].job
    assert (stored.change, stored.mapping.epoch) == (None, job.mapping.epoch)
    assert (stored.mode, stored.forest, stored.memory) == (job.mode, job.forest, job.memory)
    assert stored.numbers == job.numbers
    await asyncio.gather(*racks.leave_all(job))
    await racks.until_idle()
    assert racks.registry.slots_used() == 0
    assert not any(session.of_jobs() for session in racks.sessions.values())
    assert racks.registry.numbers.are_free(range(1, 9))
    return died


async def _change(racks: Racks, slots: int, forest: Forest | None, mode: str) -> None:
    job, changes = racks.registry.get("j"), racks.coordinator.changes
    await changes.change(job, slots=slots, forest=forest, mode=mode, why="t")


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("point", POINTS)
async def test_a_successor_goes_on_or_calls_it_off(point: str, times: int) -> None:
    reached = await die_and_go_on(GROW, point, times)
    of_all = ("install", "remove")  # by each switch
    by_two = point.startswith("remap_free") and times < 3
    assert reached or not (point.startswith(of_all) or by_two or times == 1)


@pytest.mark.parametrize("point", [*POINTS, "remap_open.decided", "remap_open.stored"])
async def test_in_place(point: str) -> None:
    reached = await die_and_go_on(IN_PLACE, point, 1)
    assert reached


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", POINTS)
async def test_to_another_tree(point: str, times: int) -> None:
    reached = await die_and_go_on(OTHER_TREE, point, times)
    assert reached or times == 2 or point.startswith("remap_free")  # of one switch alone


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("case", [TO_SHARED, TO_POOL, SHARED], ids=lambda it: "-".join(it.modes))
async def test_to_another_mode_and_in_mode_shared(case: Case, point: str, times: int) -> None:
    reached = await die_and_go_on(case, point, times)
    assert reached or times == 2


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize(
    "point",
    [
        "remap_off.decided",
        "remap_off.stored",
        "remove.stage_2",
        "remove.stage_1",
        "remap_free.decided",
        "remap_free.stored",
        "remap_over.decided",
        "remap_over.stored",
    ],
)
async def test_while_it_is_called_off(point: str, times: int) -> None:
    await die_and_go_on(DECLINED, point, times)
