"""One rank that reduces the tensors of a simulated job, step after step, and counts what it took.

Rank 0 prints one JSON line, of all ranks. Place and controller come from the environment, as
``ina emulate run`` sets it. No torch: what is between two steps is to be as short as in virtual
time, where it is nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import time
import zlib
from dataclasses import asdict, dataclass

import numpy as np

from ina.bench.cpu import cpu_ns, thread
from ina.bench.testbed import asked_of
from ina.host import Session, SessionStats, WorkerOptions
from ina.sim.scenario import Dtype, TensorSpec
from ina.sim.tensors import Place

THREAD = "ina-worker"
"""Of the session, that sends and receives."""
JOB = "train"
_TIMEOUT_S = 120.0  # of the join, and of each sum
_SETTLE_S = 0.25
"""Longer than a timeout: then it is known of each packet that was sent again why."""
_WRAP_US = 1 << 30
"""Times of begins, modulo this, are numbers that the network sums."""
COUNTS = ("packets_sent", "packets_received", "retransmissions", "losses", "spurious_resends",
          "probes", "send_drops", "ecn_marked")  # fmt: skip


@dataclass(frozen=True)
class StepsOrder:
    """What the ranks are asked for."""

    elems: int
    dtype: Dtype
    seed: int
    rounds: int
    steps: int
    """Of a round."""
    pause_s: float
    """Between two steps."""
    sums: list[int]
    """CRC-32 of each step's sum."""


@dataclass(frozen=True)
class Steps:
    """What the ranks did, after a first step that is not counted."""

    step_s: list[float]
    """Of rank 0."""
    rounds: list[dict[str, int]]
    """``COUNTS`` of all ranks, of as many steps each."""
    last_s: list[float]
    """The same of the rank that came last to each step: it has waited for nobody."""
    apart_s: float
    """From the first rank's beginning to the last one's."""
    worker_packet_ns: float
    """CPU time of a session's thread, for each packet that it sent or received."""
    in_flight_limit: int
    """At the end, of rank 0."""
    wrong: int
    """Sums that were not what they must be."""


def main() -> None:
    """Runs the steps, checks each sum, and tells."""
    asked = asked_of(StepsOrder)
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    spec = TensorSpec(elems=asked.elems, dtype=asked.dtype)
    count = 1 + asked.rounds * asked.steps
    arrays = [Place(asked.seed, JOB, step, 0).values(spec, rank) for step in range(count)]
    with Session.join(
        os.environ["INA_CONTROLLER"],
        JOB,
        rank,
        workers,
        WorkerOptions(
            timeout_s=_TIMEOUT_S,
            host=os.environ.get("INA_HOST"),
            op_timeout_s=_TIMEOUT_S,
            transport="udp",
            threads=1,
        ),
    ) as session:
        began_us = time.monotonic_ns() // 1000
        session.all_reduce(arrays[0], out=arrays[0])
        looks, step_s = [session.stats()], []
        worker = thread(THREAD)
        cpu_before_ns = cpu_ns(worker)
        for step in range(1, count):
            if asked.pause_s:
                time.sleep(asked.pause_s)
            started = time.perf_counter()
            session.all_reduce(arrays[step], out=arrays[step])
            step_s.append(time.perf_counter() - started)
            if step % asked.steps == 0:
                looks.append(session.stats())
        cpu_us = (cpu_ns(worker) - cpu_before_ns) // 1000
        time.sleep(_SETTLE_S)
        looks[-1] = session.stats()
        got = (zlib.crc32(array.tobytes()) for array in arrays)
        wrong = sum(crc != want for crc, want in zip(got, asked.sums, strict=True))
        own = [*(count for pair in itertools.pairwise(looks) for count in _counts(*pair)),
               cpu_us, wrong]  # fmt: skip
        total = session.all_reduce(np.array(own, np.int32)).tolist()
        times_ns = np.zeros((workers, len(step_s)), np.int32)
        times_ns[rank] = np.minimum(1e9 * np.array(step_s), 2**31 - 1)
        times_ns = session.all_reduce(times_ns)
        begins_us = np.zeros(workers, np.int32)
        begins_us[rank] = began_us % _WRAP_US
        begins_us = session.all_reduce(begins_us).astype(np.int64)
    if rank > 0:
        return
    *counts, cpu_us, wrong = total
    rounds = [
        dict(zip(COUNTS, counts[first : first + len(COUNTS)], strict=True))
        for first in range(0, len(counts), len(COUNTS))
    ]
    packets = sum(one["packets_sent"] + one["packets_received"] for one in rounds)
    found = Steps(
        step_s=step_s,
        last_s=(times_ns.min(axis=0) / 1e9).tolist(),
        apart_s=_apart_us(begins_us.tolist()) / 1e6,
        rounds=rounds,
        worker_packet_ns=1e3 * cpu_us / packets,
        in_flight_limit=looks[-1].in_flight_limit,
        wrong=wrong,
    )
    print(json.dumps(asdict(found)), flush=True)


def _apart_us(times_us: list[int]) -> int:
    """Of times of a clock that begins anew after ``_WRAP_US``, far less than that apart."""
    half = _WRAP_US // 2
    from_first = [(time_us - times_us[0] + half) % _WRAP_US - half for time_us in times_us]
    return max(from_first) - min(from_first)


def _counts(before: SessionStats, after: SessionStats) -> list[int]:
    return [getattr(after, name) - getattr(before, name) for name in COUNTS]


if __name__ == "__main__":
    main()
