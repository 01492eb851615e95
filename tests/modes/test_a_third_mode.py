"""A mode that nobody knows of goes through the controller: what it says is done, and nothing else.

A branch on a mode's name anywhere on the way finds none that it knows, and what is asserted here is
not so any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from ina import modes
from ina.controller.errors import JobConflictError
from ina.controller.job import JobSpec
from ina.controller.jobs.admission import usage
from ina.controller.service.show import jobs_on, show_job, show_switch
from ina.controller.service.show_tree import show_tree
from ina.controller.watch.failure_detector import FailureDetector
from ina.modes import rows
from ina.modes.rows import Place
from ina.modes.site import Asking, Site
from ina.p4 import names
from ina.tables.values import Count, Counter, Entry, Item, Match, PortDrop, PortState
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.tree import Tree
from tests.worlds.fakes.racks import JOB_SLOTS, NAMES, Racks
from tests.worlds.fakes.sessions import SlowSession

ADMIT_TOY = "PoolIngress.admission.admit_toy_job"
ADMIT_TOY_MEMBER = "PoolIngress.admission.admit_toy_member"


class Toy(modes.Mode):
    """Its slots are its own at the root, and shared below."""

    name = "toy"
    is_sized = False
    is_striped = False
    shared_admissions = (ADMIT_TOY,)

    def runs_on(self, *, program: str, shares_slots: bool) -> bool:
        return shares_slots

    def forest(self, asking: Asking, over: Forest, site: Site) -> Forest:
        """Refuses what the placement finds at one switch."""
        if over.has_one_switch:
            raise JobRequestError(f"job {asking.job!r}: mode 'toy' wants two switches")
        root, *below = over.trees[0]
        return forest_of(Tree((root, *(replace(it, is_shared=True) for it in below))))

    def bare(self, over: Forest, site: Site) -> Forest:
        return forest_of(Tree(tuple(replace(it, is_shared=False) for it in over.trees[0])))

    def admission(self, at: Place) -> Entry:
        if not at.node.is_shared:
            return super().admission(at)
        return rows.admission(at, ADMIT_TOY, **at.above(), claimable=at.memory.reserved)

    def member(self, at: Place, index: int) -> Entry:
        return rows.member(at, index, ADMIT_TOY_MEMBER, not_bit=1 << 31 - index)


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    modes.register(Toy())
    yield
    modes.forget(Toy.name)


class Telling(SlowSession):
    """Which has counted nothing, and has no ports."""

    async def read_entries(self, table: str = "") -> list[Entry]:
        entries = [it for it in self.there.values() if isinstance(it, Entry)]
        return [it for it in entries if table in ("", it.table)]

    async def read_ports(self) -> list[PortState]:
        return []

    async def read_port_drops(self) -> list[PortDrop]:
        return []

    async def read_counts(self, counters: Sequence[Counter]) -> list[Count]:
        return [Count(0, 0) for _ in counters]

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        return []


async def sharing() -> Racks:
    """Switches whose program has slots that jobs share."""
    racks = Racks(names.SHARED)
    racks.sessions = {name: Telling() for name in NAMES}
    await racks.start()
    return racks


def actions(items: Sequence[Item], table: str) -> set[str]:
    """Of a table's rows."""
    return {it.action for it in items if isinstance(it, Entry) and it.table == table}


async def test_a_job_of_it_has_the_trees_slots_and_rows_that_it_says() -> None:
    racks = await sharing()
    beside = await racks.run("beside")
    of_pool = {name: list(session.of_jobs()) for name, session in racks.sessions.items()}
    job = await racks.run(mode=Toy.name)
    assert job.mode == Toy.name
    assert [(it.switch, it.is_shared) for it in job.mapping.forest.trees[0]] == [
        ("spine", False), ("leaf1", True), ("leaf2", True),
    ]  # fmt: skip
    lanes = JOB_SLOTS // 2
    assert {name: taken.reserved for name, taken in job.mapping.memory.items()} == {
        "spine": JOB_SLOTS, "leaf1": lanes, "leaf2": lanes,
    }  # fmt: skip
    assert usage([job]).slots == 2 * lanes  # of policies' none, of those that it may claim all
    assert {it.action for it in racks.sessions["leaf1"].rows_of(job.number)} == {ADMIT_TOY}
    assert {it.action for it in racks.sessions["spine"].rows_of(job.number)} == {names.ADMIT_JOB}
    for name, session in racks.sessions.items():
        new = [it for it in session.of_jobs() if it not in of_pool[name]]
        found = actions(new, names.MEMBERS)
        assert found - {names.ADMIT_PARENT} == {ADMIT_TOY_MEMBER}
        assert len(session.of_jobs()) == len(of_pool[name]) + len(new)
    racks.assert_agrees()
    assert beside.mode != job.mode


async def test_it_is_shown_kept_changed_and_taken_off() -> None:
    racks = await sharing()
    job = await racks.run(mode=Toy.name)
    shown = show_job(job, FailureDetector(racks.coordinator, 10.0))
    assert (shown.mode, shown.state) == (Toy.name, "running")
    assert [(it.switch, it.shared) for it in show_tree(job, [], {}, {})] == [
        ("spine", False), ("leaf1", True), ("leaf2", True),
    ]  # fmt: skip
    leaf = racks.coordinator.switches["leaf1"]
    entries = (await show_switch(racks.coordinator, leaf)).entries
    (row,) = [it for it in entries if "toy_job" in it.action]
    assert (row.job, row.foreign) == (job.name, False)
    assert jobs_on(racks.coordinator, leaf) == {job.number: job}
    await racks.start()  # another controller finds it in the store
    job = racks.registry.get(job.name)
    assert job.mode == Toy.name
    assert {it.action for it in racks.sessions["leaf1"].rows_of(job.number)} == {ADMIT_TOY}
    racks.assert_agrees()
    await racks.coordinator.changes.change(job, mode=names.POOL, why="a test")
    both = actions(racks.sessions["leaf1"].of_jobs(), names.JOBS)
    assert both == {ADMIT_TOY, names.ADMIT_INNER_JOB}
    await asyncio.gather(*racks.leave_all(job))
    await racks.until_idle()
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]
    assert {name: it.used() for name, it in racks.registry.switches.items()} == dict.fromkeys(
        NAMES, 0
    )


async def test_what_it_refuses_is_refused() -> None:
    racks = await sharing()
    with pytest.raises(JobRequestError, match="mode 'toy' wants two switches"):
        await racks.run("one", (1, 1), mode=Toy.name)
    with pytest.raises(JobRequestError, match=r"no mode 'toys': use pool or .* or toy"):
        await racks.run("none", mode="toys")
    await racks.coordinator.create(JobSpec("one", 2, mode=Toy.name), 0.0)
    with pytest.raises(JobConflictError, match="has mode 'toy', not 'pool'"):
        await racks.coordinator.create(JobSpec("one", 2, mode=names.POOL), 0.0)
    of_pool = Racks()
    await of_pool.start()
    with pytest.raises(JobRequestError, match="runs the program of mode 'pool'"):
        await of_pool.run(mode=Toy.name)
