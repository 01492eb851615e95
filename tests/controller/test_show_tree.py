"""What operators see of a job over several switches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ina.controller.job import JobSpec
from ina.controller.service import show_tree
from ina.controller.service.show import jobs_on, show_job, show_member
from ina.controller.watch.failure_detector import FailureDetector
from ina.p4 import names
from ina.tables.values import Count, Counter, Match
from tests.worlds.fakes.racks import JOB_SLOTS, NAMES, Racks
from tests.worlds.fakes.sessions import SlowSession


class CountingSession(SlowSession):
    """Which counts a packet for every row, and so many of each of a job's counters."""

    def __init__(self, packets: int) -> None:
        super().__init__()
        self.packets = packets

    async def read_counts(self, counters: Sequence[Counter]) -> list[Count]:
        await self._some(())
        return [Count(self.packets, 0) for _ in counters]

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        rows = await self.read_entries(table)
        return [(row.match, Count(1, 0)) for row in rows]


async def counting() -> Racks:
    racks = Racks()
    racks.sessions = {name: CountingSession(n) for n, name in enumerate(NAMES, 1)}
    await racks.start()
    return racks


async def test_a_job_is_shown_with_its_tree_and_what_each_node_counts() -> None:
    racks = await counting()
    job = await racks.run()
    switches = [racks.coordinator.switches[name] for name in job.memory]
    counters, unread = await show_tree.read_counters({it: {job.number: job} for it in switches})
    tree = show_tree.show_tree(job, counters, unread, {})
    assert [(it.switch, it.parent, it.level, list(it.ranks), list(it.children)) for it in tree] == [
        ("spine", "", 2, [], ["leaf1", "leaf2"]),
        ("leaf1", "spine", 1, [0, 1], []),
        ("leaf2", "spine", 1, [2, 3], []),
    ]
    assert {(it.first_slot, it.slots, it.unread) for it in tree} == {(0, JOB_SLOTS, "")}
    alias = names.JOB_CONTRIBUTIONS.rpartition(".")[2]
    counted = {it.switch: it.packets for it in counters if it.name == alias}
    assert counted == {"leaf1": 1, "leaf2": 2, "spine": 3}
    from_whom = {
        name: [it.label for it in counters if (it.name, it.switch) == ("member_packets", name)]
        for name in NAMES
    }
    assert from_whom == {
        "leaf1": ["job j rank 0", "job j rank 1", "job j its parent"],
        "leaf2": ["job j rank 2", "job j rank 3", "job j its parent"],
        "spine": ["job j switch leaf1", "job j switch leaf2"],
    }
    detector = FailureDetector(racks.coordinator, 10.0)
    shown = show_job(job, detector)
    assert (shown.switch, sorted(shown.switches)) == ("spine", sorted(NAMES))
    assert [show_member(job, rank, detector).switch for rank in (0, 3)] == ["leaf1", "leaf2"]
    for switch in switches:
        assert jobs_on(racks.coordinator, switch) == {job.number: job}


async def test_a_job_that_is_not_placed_has_no_tree_yet() -> None:
    racks = await counting()
    job = await racks.coordinator.create(JobSpec("j", 4), 0.0)
    assert show_tree.show_tree(job, [], {}, {}) == []
    assert show_job(job, FailureDetector(racks.coordinator, 10.0)).slots == 0


async def test_a_switch_that_does_not_answer_costs_its_own_counters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(show_tree, "COUNTERS_S", 0.05)

    racks = await counting()
    job = await racks.run()
    racks.sessions["leaf1"].gate.clear()
    racks.sessions["spine"].lost = True
    switches = [racks.coordinator.switches[name] for name in job.memory]
    counters, unread = await show_tree.read_counters({it: {job.number: job} for it in switches})
    assert {it.switch for it in counters} == {"leaf2"}
    assert unread == {
        "spine": "switch s: no answer",
        "leaf1": "switch leaf1:9559: no answer within 0.05 s",
    }
    tree = {it.switch: it.unread for it in show_tree.show_tree(job, counters, unread, {})}
    assert tree == {**unread, "leaf2": ""}
    racks.sessions["leaf1"].gate.set()
    await asyncio.sleep(0)
