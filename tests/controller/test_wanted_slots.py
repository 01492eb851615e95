"""A job whose worker straggles is told that another wants its slots, over real switches."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ina.congestion import Congestion
from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions
from ina.host.stats import SessionStats

DEADLINE_S = 60.0
VALUES, SLOTS, JOB_SLOTS = 64, 32, 64
# So that none ages here. Up to this age of the switch's clock, which wraps after 72 minutes, slots
# that nobody has used count as taken.
SLOT_AGE_US = 10_000_000
ELEMS = VALUES * 4 * SLOTS


def straggling(embedded: Embedded, window: str, steps: int) -> list[SessionStats]:
    """Rank 1 of the first job sends when the second job has summed; all sums are right.

    Returns what the first job's ranks counted, once they let packets claim no slot, or at the end.
    """
    met, met_again, over = threading.Barrier(4), threading.Barrier(3), threading.Event()

    def work(job: int, rank: int) -> SessionStats:
        with Session.join(
            *(embedded.controller_addr, f"job{job}", rank, 2),
            options=WorkerOptions(
                transport="udp",
                mode="shared",
                congestion=Congestion.from_text(window),
                timeout_s=DEADLINE_S,
                op_timeout_s=DEADLINE_S,
            ),
        ) as session:
            part = np.arange(ELEMS, dtype=np.int32)
            for step in range(steps):
                met.wait(DEADLINE_S)
                if (job, rank) != (0, 0):
                    time.sleep(0.002)  # its packets have slots then, most times
                if (job, rank) == (0, 1):
                    met_again.wait(DEADLINE_S)
                assert np.array_equal(session.all_reduce(part + step), 2 * (part + step))
                if job == 1:
                    met_again.wait(DEADLINE_S)
                if (job, rank) == (0, 0) and session.stats().unclaimed_packets > 0:
                    over.set()
                met.wait(DEADLINE_S)
                if over.is_set():
                    break
            return session.stats()

    with ThreadPoolExecutor(4) as pool:
        ranks = [(0, 0), (0, 1), (1, 0), (1, 1)]
        started = {each: pool.submit(work, *each) for each in ranks}
        ended = {each: one.result(2 * DEADLINE_S) for each, one in started.items()}
    return [ended[0, rank] for rank in range(2)]


def embedded() -> Embedded:
    settings = {"switch": {"shared_slots": SLOTS, "slot_age_us": SLOT_AGE_US}}
    return Embedded(values=VALUES, slots=JOB_SLOTS, mode="shared", config=settings)


def test_a_window_of_two_claims_fewer_slots_then() -> None:
    with embedded() as switch:
        stats = straggling(switch, "a2tp,first_bytes=100000", 400)
    assert all(it.unclaimed_packets > 0 for it in stats)


def test_other_windows_claim_all_the_same() -> None:
    with embedded() as switch:
        stats = straggling(switch, "adaptive", 20)
    assert [it.unclaimed_packets for it in stats] == [0, 0]
