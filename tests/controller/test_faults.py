"""``kill -9`` of a real controller at each of its named points, beside a job that runs all along.

After each, a successor must find what the store promised, the switch must have exactly what the
store says, nothing of the bystander may be touched, and a new job of the same name must run.

Where a point is does not depend on the store, and that a store of each kind has all of a
transaction or nothing is proven beside (test_store, test_postgres): so in ``make test`` PostgreSQL
has seven points, each with another state to be found; of those that tests in one process hold
store and switch to each other at, SQLite has these and some more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ina.controller import faults
from ina.controller.app import ControllerApp
from ina.controller.job import Job, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.switches.reconcile import Difference, compare
from ina.host import Session, WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.controller.conftest import NewStore
from tests.selection import LONG
from tests.worlds.fakes.switches import of_jobs, only
from tests.worlds.fakes.workers import Workers, workers_of
from tests.worlds.processes.killed import HANG_S, VICTIM, Place, until

BESIDE, IN_PLACE = 64, 7600
"""Slots that are free beside those of the victim and the bystander, and that are not."""
NO_SUCH_PORT = 600  # v1model's ports have 9 bits


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, new_store: NewStore) -> Iterator[Place]:
    with SoftSwitch([UdpPort(1)]) as switch, contextlib.ExitStack() as undo:
        folder = tmp_path_factory.mktemp("faults")
        place = Place(switch, folder, new_store(folder))

        def begin(_: ControllerApp) -> None:
            place.bystander = undo.enter_context(
                Session.join(place.address, "bystander", 0, 1, WorkerOptions(timeout_s=HANG_S))
            )

        place.in_this_process(begin)
        yield place
        place.in_this_process(lambda _: undo.close())


def live(workers: Workers) -> None:
    """A job's whole life."""
    epoch = workers.run_job(VICTIM, 2).epoch
    workers.leave(VICTIM, 0, epoch, pb2.Progress(operations_submitted=4, operations_done=3))
    workers.leave(VICTIM, 1, epoch)


def be_evicted(workers: Workers) -> None:
    workers.run_job(VICTIM, 2)
    workers.evict(VICTIM, "room is needed")


def die(workers: Workers) -> None:
    epoch = workers.run_job(VICTIM, 2).epoch
    with workers.watch(VICTIM, 0, epoch) as events:
        with workers.watch(VICTIM, 1, epoch):
            pass
        for _ in events:  # until the controller has gone too
            pass


def lack_multicast(workers: Workers) -> None:
    epoch = workers.run_job(VICTIM, 2, takes_shared_results=True).epoch
    workers.heartbeat(VICTIM, 0, epoch, pb2.Progress(shared_results_missing=True))


def hang_up(workers: Workers) -> None:
    workers.create(VICTIM, 3)
    request = pb2.JoinRequest(name=VICTIM, host="127.0.0.1", udp_port=4000, timeout_s=HANG_S)
    first = workers.stub.Join.future(request)
    request.rank, request.udp_port = 1, 4001
    second = workers.stub.Join.future(request)
    until(lambda: len(workers.jobs()[-1].joined) == 2)
    first.cancel()  # type: ignore[no-untyped-call]
    second.result()  # breaks with the controller


def be_refused(workers: Workers) -> None:
    workers.create(VICTIM, 1)
    request = pb2.JoinRequest(
        name=VICTIM, host="127.0.0.1", udp_port=4000, timeout_s=HANG_S, switch_port=NO_SUCH_PORT
    )
    workers.stub.Join(request)


def change(workers: Workers) -> None:
    """To more slots than there are beside those that it has: in place."""
    epoch = workers.run_job(VICTIM, 2).epoch
    for operation, slots in enumerate((BESIDE, IN_PLACE), 1):
        workers.resize(VICTIM, slots)
        workers.follow_change(VICTIM, 2, epoch, operation)
        until(lambda: not workers.show_job(VICTIM).job.HasField("remapping"))


def be_called_off(workers: Workers) -> None:
    epoch = workers.run_job(VICTIM, 2).epoch
    workers.resize(VICTIM, BESIDE)
    told = workers.remap(VICTIM, 1, epoch)
    assert told is not None
    workers.remap(VICTIM, 1, epoch, told.epoch, declined=True)


def nothing(_: Workers) -> None:
    pass


SCENARIOS: dict[str, Callable[[Workers], None]] = {
    "own_results": lack_multicast,
    "evict": be_evicted,
    "lost": die,
    "withdraw": hang_up,
    "fail": be_refused,
    "restore": nothing,
    "epoch": nothing,
    **{step: change for step in faults.STEPS if step.startswith("remap")},
    "remap_off": be_called_off,
}
"""By step; all other points are in a job's normal life."""

JOINING = {"create.stored", "join.decided", "join.stored", "start.decided", "restore.decided"} | {
    "withdraw.decided",
    "withdraw.stored",
    "restore.stored",
}
UP = {
    "run.stored": [0, 1],  # its workers will never know: their leases end
    "leave.decided": [0, 1],
    "leave.stored": [1],
    "leave.member_removed": [1],
    "own_results.decided": [0, 1],
    "own_results.stored": [0, 1],
    "own_results.group_modified": [0, 1],
    "evict.decided": [0, 1],
    "lost.decided": [0, 1],
    **{point: [0, 1] for point in faults.OF_CHANGES},
}
"""Who is still in the job, where it goes on."""


ALSO_WITH_POSTGRESQL = {
    "start.decided",  # the store is a step behind
    "start.stored",  # the switch is
    "install.stage_1",  # in the middle of the switch
    "leave.stored",  # one of two is still there
    "removed.decided",  # the switch is a step ahead
    "epoch.stored",
    "remap_turn.stored",  # the switch has both mappings, the store has gone over
}


SOON = {("ina.controller.watch.leases", name): 0.1 for name in ("BROKEN_S", "MAX_HEARTBEAT_S")}
"""A worker whose stream breaks is dead after so many seconds without a heartbeat, or with twice as
many between two of them."""
ONE_SWITCH = [point for point in faults.POINTS if point not in faults.OF_TREES]
ELSEWHERE = ("create", "join", "start", "run.", "leave", "removed", "install", "remove.", "remap")
"""test_tree_kill_points and test_change_kill_points hold store and switches to each other at each
point of these steps, in one process; here what the store has is seen where it has just got it."""
PROMISES = {f"{step}.stored" for step in ("create", "join", "run", "removed")}
LONG_POINTS = {it for it in ONE_SWITCH if it.startswith(ELSEWHERE)} - (
    ALSO_WITH_POSTGRESQL | PROMISES
)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=[pytest.mark.long] if point in LONG_POINTS else [])
        for point in ONE_SWITCH
    ],
)
def test_a_successor_makes_store_and_switch_agree(place: Place, point: str) -> None:
    if place.store_url.startswith("postgresql") and not (LONG or point in ALSO_WITH_POSTGRESQL):
        pytest.skip("make test-long runs this point with PostgreSQL")
    step = point.partition(".")[0]
    if step == "restore":
        place.in_this_process(leave_behind)
    place.until_killed(point, SCENARIOS.get(step, live), SOON if step == "lost" else None)
    place.assert_bystander_works()
    place.in_this_process(lambda app: check(place, app, point))


def leave_behind(app: ControllerApp) -> None:
    """A job that still joins."""
    with workers_of(app.listen_addr) as workers:
        workers.create(VICTIM, 2)


def check(place: Place, app: ControllerApp, point: str) -> None:
    assert app._supervisor is not None
    assert app._supervisor.term is not None
    coordinator = app._supervisor.term.coordinator
    with workers_of(app.listen_addr) as workers:
        until(
            lambda: all(job.members or job.state is JobState.JOINING for job in jobs(coordinator))
        )
        there = {job.name: job for job in jobs(coordinator)}
        assert there.pop("bystander").state is JobState.RUNNING
        if point in JOINING:
            assert (there[VICTIM].state, there[VICTIM].members) == (JobState.JOINING, {})
        elif point in UP:
            assert sorted(there[VICTIM].members) == UP[point]
            left = there[VICTIM].departures.items()
            said = {0: (4, 3)} if UP[point] == [1] else {}
            assert {rank: (last.submitted, last.finished) for rank, last in left} == said
        else:
            assert there == {}
        assert disagreement(place, coordinator) == Difference()
        place.assert_bystander_works()
        if there:
            workers.evict(VICTIM)
        assert workers.show().slots_used == 512  # the bystander's
        sum_with_two_workers(place)
        epoch = coordinator.registry.epochs.last
        assert epoch > place.newest_epoch
        place.newest_epoch = epoch
        assert len(of_jobs(workers.show())) == 4  # the bystander's


def jobs(coordinator: Coordinator) -> list[Job]:
    return sorted(coordinator.registry, key=lambda job: job.number)


def disagreement(place: Place, coordinator: Coordinator) -> Difference:
    """Between the store, as a fresh reader finds it, and the switch."""

    async def look() -> Difference:
        state = await only(coordinator).writer.read_state()
        return compare(
            {job.number: only(coordinator).wanted(job) for job in jobs(coordinator)}, state
        )

    return asyncio.run_coroutine_threadsafe(look(), place.loop).result(HANG_S)


def sum_with_two_workers(place: Place) -> None:
    def work(rank: int) -> None:
        with Session.join(
            place.address, VICTIM, rank, 2, WorkerOptions(timeout_s=HANG_S)
        ) as session:
            total = session.all_reduce(np.full(1000, rank + 1, np.int32))
            np.testing.assert_array_equal(np.asarray(total), np.full(1000, 3))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
