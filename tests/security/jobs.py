"""A job that sums all the time, through taps, and knows whether its sums are right."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions
from ina.protocol.peer import Peer
from ina.protocol.verify import Verify
from tests.worlds.fakes.tap import Tap

ELEMS = 640  # ten packets of 64 values
DEADLINE_S = 60.0


class SummingJob:
    """``count`` workers; stopped by :meth:`finish`, which returns how many sums each has made."""

    def __init__(
        self, name: str, taps: list[Tap], sessions: list[Session], elems: int = ELEMS
    ) -> None:
        self.name = name
        self._elems = elems
        self.taps = taps
        self.sessions = sessions
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(len(sessions))
        self._rounds = [self._pool.submit(self._work, rank) for rank in range(len(sessions))]

    def finish(self) -> int:
        """Ends the work; raises what a worker has found wrong."""
        self._stop.set()
        rounds = {done.result(DEADLINE_S) for done in self._rounds}
        self._pool.shutdown()
        assert len(rounds) == 1
        return rounds.pop()

    def _work(self, rank: int) -> int:
        """Sums until rank 0, who alone may say so, says in a sum's first value that it ends."""
        count, rounds, over = len(self.sessions), 0, False
        while not over:
            part = np.arange(self._elems, dtype=np.int32) * (rank + 1) + rounds
            part[0] = rank == 0 and self._stop.is_set()
            total = np.asarray(self.sessions[rank].all_reduce(part))
            weight = count * (count + 1) // 2
            want = np.arange(self._elems, dtype=np.int32) * weight + rounds * count
            np.testing.assert_array_equal(total[1:], want[1:])
            rounds, over = rounds + 1, bool(total[0])
        return rounds


@contextmanager
def tapped_sessions(
    embedded: Embedded, name: str, count: int, slots: int = 64, verify: Verify | None = None
) -> Iterator[tuple[list[Tap], list[Session]]]:
    """The workers of a job, each behind a tap."""
    with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        taps = [stack.enter_context(Tap()) for _ in range(count)]
        unused = iter(taps)
        lock = threading.Lock()

        def open_tapped(switch: Peer, own_host: str | None = None) -> object:
            with lock:
                tap = next(unused)
            return tap.open(switch, own_host)

        def join(rank: int) -> Session:
            return Session.join(
                embedded.controller_addr,
                name,
                rank,
                count,
                WorkerOptions(
                    slots=slots, verify=verify, timeout_s=DEADLINE_S, op_timeout_s=DEADLINE_S
                ),
            )

        with mock.patch("ina.host.udp.open_socket", open_tapped):
            sessions = list(pool.map(join, range(count)))
        for session in sessions:
            stack.callback(session.close)
        by_port = {tap.outer.getsockname()[1]: tap for tap in taps}
        ports = {
            _number(entry.match, "worker"): _number(entry.match, "src_port")
            for entry in embedded.show().entries
            if entry.table == "members" and f"job={sessions[0].ticket.job} " in entry.match
        }
        yield [by_port[ports[rank]] for rank in range(count)], sessions


def _number(match: str, field: str) -> int:
    return int(match.split(f"{field}=")[1].split()[0])


@contextmanager
def summing_job(embedded: Embedded, name: str, count: int) -> Iterator[SummingJob]:
    with tapped_sessions(embedded, name, count) as (taps, sessions):
        yield SummingJob(name, taps, sessions)


def captured(job: SummingJob) -> list[bytes]:
    """Real contributions of rank 0, still fresh."""
    deadline = time.monotonic() + DEADLINE_S
    while len(job.taps[0].sent) < 100:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return list(job.taps[0].sent)
