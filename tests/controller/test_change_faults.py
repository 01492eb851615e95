"""``kill -9`` of a real controller in a change of slots, under workers that reduce all the time.

Whatever became of the change: no sum is wrong or late for ever, the successor goes on with it or
has called it off, and the next change goes through.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import grpc
import numpy as np
import pytest

from ina.controller import faults
from ina.host import Session, WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.selection import LONG
from tests.worlds.fakes.workers import Workers, workers_of
from tests.worlds.processes.killed import HANG_S, VICTIM, Place, until

RANKS = 2
HAS, BESIDE, IN_PLACE = 512, 2048, 8000
SHORT = {
    ("remap_ask.stored", BESIDE),  # nobody was told
    ("remap_decide.decided", BESIDE),  # rank 0 alone knows S
    ("remap_decide.stored", BESIDE),
    ("remap_turn.stored", BESIDE),  # all use the new mapping, the switch has both
    ("remap_open.decided", IN_PLACE),  # all wait
    ("remap_open.stored", IN_PLACE),
}
"""In ``make test``."""
POINTS = [
    pytest.param(point, slots, marks=() if (point, slots) in SHORT or LONG else pytest.mark.long)
    for slots in (BESIDE, IN_PLACE)
    for point in faults.OF_CHANGES
    if not point.startswith(("remap_off", "remap_free"))
    and (slots == IN_PLACE or not point.startswith("remap_open"))
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with SoftSwitch([UdpPort(1)]) as switch:
        folder = tmp_path_factory.mktemp("changes")
        place = Place(switch, folder, f"sqlite:///{folder / 'store.db'}")
        text = place.config.read_text()
        place.config.write_text(f'{text}sizing = "asked"\nslots = {HAS}\n')
        yield place


class Reducing:
    """A job whose ranks sum something all the time, in step."""

    def __init__(self, address: str) -> None:
        self.done = [0] * RANKS
        self.stop = threading.Event()
        self._pool = ThreadPoolExecutor(RANKS)
        self._ends = [self._pool.submit(self._work, address, rank) for rank in range(RANKS)]

    def _work(self, address: str, rank: int) -> None:
        with Session.join(address, VICTIM, rank, RANKS, WorkerOptions(timeout_s=HANG_S)) as session:
            last = False
            while not last:
                values = np.full(5000, (rank + 1) * (1 + self.done[rank]), np.int32)
                values[0] = rank == 0 and self.stop.is_set()
                total = np.asarray(session.all_reduce(values))
                last = bool(total[0])
                np.testing.assert_array_equal(total[1:], 3 * (1 + self.done[rank]))
                self.done[rank] += 1

    def until_goes_on(self) -> None:
        """More sums end, on all ranks."""
        due = min(self.done) + 20
        until(lambda: min(self.done) >= due or any(end.done() for end in self._ends))
        self.check()

    def check(self) -> None:
        for end in self._ends:
            if end.done():
                end.result()

    def end(self) -> None:
        self.stop.set()
        for end in self._ends:
            end.result(HANG_S)
        self._pool.shutdown()


def job_of(workers: Workers) -> pb2.Job:
    return workers.show_job(VICTIM).job


def until_over(workers: Workers) -> None:
    until(lambda: not job_of(workers).HasField("remapping"))


@pytest.mark.parametrize(("point", "slots"), POINTS)
def test_sums_go_on_and_the_successor_ends_it(place: Place, point: str, slots: int) -> None:
    jobs: list[Reducing] = []

    def begin(workers: Workers) -> None:
        jobs.append(Reducing(place.address))
        until(lambda: min(jobs[0].done) >= 5)
        with suppress(grpc.RpcError):
            workers.resize(VICTIM, slots)
        while True:  # until the controller has gone
            workers.jobs()
            time.sleep(0.01)

    place.until_killed(point, begin)
    (job,) = jobs
    job.check()

    def go_on(address: str) -> None:
        with workers_of(address) as workers:
            job.until_goes_on()
            until_over(workers)
            assert job_of(workers).slots in (HAS, slots)
            workers.resize(VICTIM, 64)
            until_over(workers)
            job.until_goes_on()
            assert job_of(workers).slots == 64
            assert workers.show().slots_used == 64
            rows = [row for row in workers.show().entries if row.table == "jobs" and row.job]
            assert len(rows) == 1
            job.end()

    place.in_this_process(lambda app: go_on(app.listen_addr))
