"""Jobs over two leaves and a spine: on all of their switches or on none, each by itself."""

from __future__ import annotations

import asyncio
import re

import pytest

from ina.controller.errors import JobPipesError, NoRoomError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.adoption import adoptable
from ina.controller.memory import FirstFit
from ina.controller.store import StoredJob
from ina.controller.switches.plan import epoch_mark
from ina.controller.watch.failure_detector import FailureDetector, explain
from ina.controller.watch.leases import Member
from ina.controller.watch.stalls import Stall
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import forest_of
from ina.trees.slots import SlotRange
from ina.trees.tree import single
from tests.worlds.fakes.racks import JOB_SLOTS, NAMES, SLOTS, TIMEOUT_S, Racks, host
from tests.worlds.fakes.switches import placed_over

pytestmark = pytest.mark.usefixtures("quick_retries")


async def test_a_job_is_on_all_of_its_switches_with_one_epoch_and_the_smallest_window() -> None:
    racks = Racks()
    await racks.start()
    racks.registry.switches["leaf2"].max_window = 4
    spare = await racks.run("spare", (1,))
    job = await racks.run()
    assert [node.switch for node in (job.forest.trees[0] if job.forest else ())] == [
        "spine",
        "leaf1",
        "leaf2",
    ]
    assert (job.state, job.window, job.lanes) == (JobState.RUNNING, 4, JOB_SLOTS // 2)
    assert job.epoch == spare.epoch + 1
    for name in NAMES:
        assert racks.sessions[name].mark == job.epoch, name
    assert racks.used() == {"leaf1": 2 * JOB_SLOTS, "leaf2": JOB_SLOTS, "spine": JOB_SLOTS}
    racks.assert_agrees()
    actions = {
        name: {item.action for item in racks.sessions[name].rows_of(job.number)} for name in NAMES
    }
    inner = {names.ADMIT_INNER_JOB}
    assert actions == {"leaf1": inner, "leaf2": inner, "spine": {names.ADMIT_JOB}}
    await asyncio.gather(*racks.leave_all(job))
    await asyncio.gather(*racks.leave_all(spare))
    await racks.until_idle()
    assert set(racks.used().values()) == {0}
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]


@pytest.mark.parametrize("refusing", NAMES)
async def test_where_one_switch_refuses_the_job_is_on_none(refusing: str) -> None:
    racks = Racks()
    await racks.start()
    calls = await racks.join_all("j", (1, 1, 2, 2))
    racks.sessions[refusing].lost = True
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [SwitchError] * 4
    racks.sessions[refusing].lost = False
    await racks.until_idle()
    assert len(racks.registry) == 0
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]
    assert set(racks.used().values()) == {0}


@pytest.mark.parametrize("full", NAMES)
async def test_where_one_switch_has_no_room_all_ranks_hear_which(full: str) -> None:
    racks = Racks()
    await racks.start()
    racks.registry.switches[full].memory.take("somebody's", SLOTS - 8)
    before = racks.used()
    answers = await asyncio.gather(*await racks.join_all("j", (1, 1, 2, 2)), return_exceptions=True)
    said = (
        f"job 'j': no slots left on 1 of 3 switches that would sum it: switch {full}: no"
        f" {JOB_SLOTS} free ones are side by side ({SLOTS - 8} of {SLOTS} are in use)"
    )
    assert [type(answer) for answer in answers] == [NoRoomError] * 4
    assert {str(answer) for answer in answers} == {said}
    assert racks.used() == before
    assert len(racks.registry) == 0
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]


async def test_whoever_is_pushed_out_frees_room_on_every_switch_that_has_none() -> None:
    racks = Racks()
    await racks.start()
    fills = {"near": (1,), "far": (2,)}
    filling = [await racks.run(name, at, slots=SLOTS) for name, at in fills.items()]
    job = await racks.run("j", (1, 2), slots=SLOTS, priority=3)
    assert [it.state for it in filling] == [JobState.GONE, JobState.GONE]
    assert racks.used() == dict.fromkeys(NAMES, SLOTS)
    await racks.until_idle()
    racks.assert_agrees()
    ends = [e for e in racks.coordinator.events.history("far") if e.kind == pb2.JOB_EVICTED]
    assert ends[0].reason == "evicted: job 'j' is more important and needs its slots"
    assert job.state is JobState.RUNNING


async def test_nobody_is_pushed_out_where_that_is_of_no_use() -> None:
    racks = Racks()
    await racks.start()
    humble = await racks.run("humble", (1,), slots=SLOTS)
    proud = await racks.run("proud", (2,), slots=SLOTS, priority=9)
    answers = await asyncio.gather(
        *await racks.join_all("j", (1, 2), slots=SLOTS, priority=3), return_exceptions=True
    )
    assert {str(answer).partition(": switch")[0] for answer in answers} == {
        "job 'j': no slots left on 2 of 3 switches that would sum it"
    }
    assert (humble.state, proud.state) == (JobState.RUNNING, JobState.RUNNING)


async def test_a_switch_that_hangs_holds_up_nobody_but_its_own_jobs() -> None:
    racks = Racks()
    await racks.start()
    racks.sessions["leaf2"].gate.clear()
    held_up = await racks.join_all("held up", (1, 2))
    await asyncio.sleep(0)
    near = await racks.run("near", (1, 1))  # on a switch of the one that waits
    await asyncio.gather(*racks.leave_all(near))
    await racks.run("near", (1, 1))
    await racks.reconcile("leaf1")  # the one that waits is left as it is there
    await racks.reconcile("spine")
    assert not any(call.done() for call in held_up)
    racks.sessions["leaf2"].gate.set()
    job = (await asyncio.gather(*held_up))[0]
    assert job.state is JobState.RUNNING
    await racks.until_idle()
    racks.assert_agrees()


async def test_a_switch_that_is_away_keeps_the_slots_of_no_other() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    racks.sessions["spine"].lost = True
    leaving = racks.leave_all(job)
    await asyncio.gather(*leaving, return_exceptions=True)
    while racks.used() != {"leaf1": 0, "leaf2": 0, "spine": JOB_SLOTS}:
        await asyncio.sleep(0)
    assert job.state is JobState.LEAVING
    other = await racks.run("other", (1, 1), slots=SLOTS)
    # A successor knows what is where.
    await racks.coordinator.close()
    await racks.start(reconcile=("leaf1", "leaf2"))
    assert racks.used() == {"leaf1": SLOTS, "leaf2": 0, "spine": JOB_SLOTS}
    racks.sessions["spine"].lost = False
    await racks.reconcile("spine")
    await racks.until_idle()
    assert [it.name for it in racks.registry] == [other.name]
    assert racks.used() == {"leaf1": SLOTS, "leaf2": 0, "spine": 0}
    racks.assert_agrees()


@pytest.mark.parametrize("restarted", NAMES)
async def test_a_switch_that_lost_its_registers_ends_the_jobs_that_use_it_alone(
    restarted: str,
) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    near, far = await racks.run("near", (1, 1)), await racks.run("far", (2, 2))
    racks.sessions[restarted].restart()
    racks.sessions[restarted].lost = False
    await racks.reconcile(restarted, fresh=True)
    await racks.until_idle()
    gone = {"leaf1": {"j", "near"}, "leaf2": {"j", "far"}, "spine": {"j"}}[restarted]
    assert {it.name for it in (job, near, far) if it.state is JobState.GONE} == gone
    (end,) = (e for e in racks.coordinator.events.history("j") if e.fatal)
    said = f"switch '{restarted}' has lost its registers"
    assert (end.kind, end.reason) == (pb2.SWITCH_LOST, said)
    racks.assert_agrees()
    again = await racks.run()
    assert again.epoch > far.epoch


async def test_nothing_is_installed_on_a_switch_whose_epochs_are_not_known() -> None:
    racks = Racks()
    newest = 2_000_000_000  # than what the clock says
    await racks.sessions["spine"].insert([epoch_mark(newest)])
    await racks.start(reconcile=("leaf1", "leaf2"))
    answers = await asyncio.gather(*await racks.join_all("j", (1, 2)), return_exceptions=True)
    assert {str(answer) for answer in answers} == {"switch spine:9559: it has not been reached yet"}
    await racks.until_idle()
    await racks.reconcile("spine")
    assert (await racks.run()).epoch == newest + 1  # one counter for all


async def test_a_successor_goes_on_with_trees_as_they_were() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await racks.coordinator.leave("j", 3, job.epoch)
    before = {name: dict(session.there) for name, session in racks.sessions.items()}
    used = racks.used()
    await racks.coordinator.close()
    await racks.start()
    (found,) = racks.registry
    assert (found.forest, found.memory, found.window) == (job.forest, job.memory, job.window)
    assert racks.used() == used
    assert {name: session.there for name, session in racks.sessions.items()} == before
    await asyncio.gather(*racks.leave_all(found))
    await racks.until_idle()
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]


async def test_a_job_on_a_switch_that_the_file_has_no_more_ends_and_is_taken_off_the_others() -> (
    None
):
    racks = Racks()
    await racks.start()
    await racks.run()
    near = await racks.run("near", (1, 1))
    await racks.coordinator.close()
    await racks.start(reconcile=("leaf1", "spine"), known=("leaf1", "spine"))
    await racks.until_idle()
    assert [job.name for job in racks.registry] == [near.name]
    assert racks.used() == {"leaf1": JOB_SLOTS, "spine": 0}
    (end,) = (e for e in racks.coordinator.events.history("j") if e.fatal)
    assert "it is on switch 'leaf2', and the configuration has none of that name" in end.reason
    racks.assert_agrees()


def test_a_job_that_waits_for_workers_goes_with_a_fabric_that_came_or_went() -> None:
    job = Job(JobSpec("j", 2), 1, 0.0)
    (found,) = adoptable([StoredJob(job, {})], ["s"], is_early=True)
    assert found.is_gone
    (found,) = adoptable([StoredJob(job, {})], ["s"], is_early=False)
    assert not found.lost
    at = placed_over(forest_of(single("old", 1)), {"old": SlotRange(0, 2, 2)}, 2, 0)
    placed = Job(JobSpec("k", 1), 2, 0.0, at)
    (found,) = adoptable([StoredJob(placed, {})], ["new"], is_early=True)
    assert (found.lost, placed.switch, list(placed.memory)) == ("", "new", ["new"])
    (found,) = adoptable([StoredJob(placed, {})], ["new"], is_early=False)
    assert found.lost == "its switches are a fabric now: join again"
    placed.state = JobState.RUNNING  # where it is has been settled
    (found,) = adoptable([StoredJob(placed, {})], ["new"], is_early=False)
    assert not found.lost


async def test_who_hangs_up_while_others_are_pushed_out_may_come_again() -> None:
    racks = Racks()
    await racks.start()
    await racks.run("filling", (1,), slots=SLOTS)
    racks.sessions["leaf1"].gate.clear()  # it takes a while to be taken off
    calls = await racks.join_all("j", (1, 2), priority=3)
    while not any(e.kind == pb2.JOB_EVICTED for e in racks.coordinator.events.history("filling")):
        await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.gather(calls[1], return_exceptions=True)
    racks.sessions["leaf1"].gate.set()
    await racks.until_idle()
    job = racks.registry.get("j")
    assert (job.state, job.missing(), job.memory) == (JobState.JOINING, [1], {})
    at = Endpoint(Peer(host(2, 7), 4000), 7, switch="leaf2")
    assert (await racks.coordinator.join("j", 1, at, TIMEOUT_S)).state is JobState.RUNNING
    assert (await calls[0]).epoch == job.epoch
    racks.assert_agrees()


async def test_what_cannot_be_placed_ends_for_all_with_one_line() -> None:
    racks = Racks()
    await racks.start()
    racks.registry.switches["leaf2"].values = 256
    await _refused(racks, JobRequestError, "different numbers of values a packet (spine 64,")
    racks.registry.switches["leaf2"].values = 64
    racks.registry.switches["spine"].pipe_of = lambda port: port % 2
    await _refused(racks, JobPipesError, "switch leaf1 behind port 1 (pipe 1), switch leaf2")
    racks.registry.switches["spine"].pipe_of = lambda port: 0
    racks.registry.switches["spine"].memory = FirstFit(8, 8)
    await _refused(racks, JobRequestError, "64 slots: the switch has 8", slots=64)
    assert len(racks.registry) == 0


async def _refused(racks: Racks, kind: type[Exception], says: str, slots: int = 0) -> None:
    calls = await racks.join_all("j", (1, 2), slots=slots)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [kind, kind]
    assert all(re.search(re.escape(says), str(answer)) for answer in answers), answers


@pytest.mark.parametrize("world_size", [0, 1025])
async def test_a_tree_sums_1_to_1024(world_size: int) -> None:
    racks = Racks()
    await racks.start()
    says = f"job 'j': {world_size} workers: a tree of switches sums 1 to 1024"
    with pytest.raises(JobRequestError, match=says):
        await racks.coordinator.create(JobSpec("j", world_size), 0.0)


async def test_who_is_missing_is_named_with_the_rack() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    stall = Stall(8, 3, (1, 3), (0, 2), 100.0)
    assert explain(job, stall, 103.0) == (
        "rank 1 (leaf1, 10.0.1.2:4000), rank 3 (leaf2, 10.0.2.4:4000) have not sent sequence"
        " number 8 (slot 3 of spine): ranks 0, 2 waited for 3.0 s"
    )
    wide = await racks.run("wide", [1] * 20 + [2] * 20)
    lost = Stall(8, 3, tuple(range(18, 40)), tuple(range(18)), 100.0)
    assert explain(wide, lost, 103.0) == (
        "ranks 18, 19 (leaf1), ranks 20-39 (leaf2) have not sent sequence number 8 (slot 3 of"
        " spine): ranks 0-17 waited for 3.0 s"
    )


@pytest.mark.parametrize("away", NAMES)
async def test_a_switch_that_nobody_hears_ends_the_jobs_that_use_it_by_its_name(away: str) -> None:
    racks = Racks()
    await racks.start()
    job, near = await racks.run(), await racks.run("near", (1, 1))
    racks.coordinator.switches[away].unreachable_s = lambda: 11.0
    detector = FailureDetector(racks.coordinator, 10.0, clock=lambda: 100.0)
    silent = pb2.Progress(in_flight=1, silent_s=11.0, lane_seqs=[8, 9], lanes_waiting=b"\x01")
    for running in (job, near):
        for rank in list(running.members):
            detector.heard(Member(running.epoch, rank), silent if running is job else None)
    detector.check()
    (end,) = (e for e in racks.coordinator.events.history("j") if e.fatal)
    assert (end.kind, end.reason) == (
        pb2.SWITCH_LOST,
        f"switch {away!r} is lost: the controller has not reached it for 11 s, rank 0 has had"
        " no result for 11 s",
    )
    assert near.state is JobState.RUNNING  # it hears results
    await racks.until_idle()
