"""The real half of an agreement: the star in namespaces, and what the ranks counted."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ina.bench.agreement import AgreementCase, Costs, Side, SideRun, side
from ina.bench.cpu import SWITCH_THREAD, cpu_ns, thread
from ina.bench.spread import percentile
from ina.bench.star import StarNetwork
from ina.bench.steps_worker import JOB, StepsOrder
from ina.bench.testbed import records
from ina.errors import InaError
from ina.sim.scenario import TensorSpec
from ina.sim.tensors import Place

_WORKER = "ina.bench.steps_worker"
_START_UP_S = 120.0
_SLOWEST = 20.0
"""So many times what the link alone needs a run may take."""
_LONE_STEPS = 200
"""Packets, one at a time, by which latencies are measured."""
_LONE_PAUSE_S = 0.005
"""Before each of them: so long threads sleep where a slow link is busy, and cores, too."""
_WOKEN = 4
"""Threads, one after the other, in such a step: the worker's, the switch's, the worker's once more,
and that which has asked for the sum."""
_GAMMA_TENTH, _GAMMA_HALF = 1.7448, 3.6721
"""Quantiles of the sum of so many times that are exponential, of mean 1 (Gamma distribution)."""
_COST_STEPS = 4
"""Tensors by which costs are."""


def sums(case: AgreementCase, workers: int, elems: int, steps: int) -> list[int]:
    """CRC-32 of what each rank must get in each step, with the first one."""
    spec = TensorSpec(elems=elems, dtype=case.dtype)
    return [
        zlib.crc32(Place(case.seed, JOB, step, 0).right(spec, workers, case.values).tobytes())
        for step in range(steps)
    ]


def costs(star: StarNetwork, case: AgreementCase) -> Costs:
    """What this machine needs for a packet. Raises InaError: a sum was wrong, or a rank failed."""
    switch = _cpu_of_switch(star)
    before_ns = switch.now_ns()
    full = _run(star, case, case.elems, 1, _COST_STEPS)
    spent_ns = switch.now_ns() - before_ns
    # The first step, which the ranks do not count, is as the others are.
    packets = sum(one["packets_sent"] + one["packets_received"] for one in full["rounds"])
    packets *= (_COST_STEPS + 1) / _COST_STEPS
    lone = _run(star, case, case.values, 1, _LONE_STEPS, _LONE_PAUSE_S)
    for record in (full, lone):
        if record["wrong"]:
            raise InaError(f"bench sim: {record['wrong']} sums of {star.workers} ranks are wrong")
    worker_ns, switch_ns = full["worker_packet_ns"], spent_ns / packets
    # To send, to take n and send n, and to receive.
    beside_s = (2 * worker_ns + 2 * star.workers * switch_ns) / 1e9
    least_s, jitter_s = wakes(lone["last_s"], beside_s)
    return Costs(
        worker_packet_ns=worker_ns,
        switch_packet_ns=switch_ns,
        wake_us=1e6 * least_s,
        wake_jitter_us=1e6 * jitter_s,
    )


def wakes(sums_s: Sequence[float], beside_s: float) -> tuple[float, float]:
    """What each of ``_WOKEN`` threads that wake each other needs, at least and on average more.

    ``sums_s``: what they needed together, ``beside_s`` of it for other things. By the faster half:
    in the other a core had something else to do.
    """
    tenth_s, half_s = (max(percentile(sums_s, share) - beside_s, 0.0) for share in (0.1, 0.5))
    jitter_s = (half_s - tenth_s) / (_GAMMA_HALF - _GAMMA_TENTH)
    least_s = (tenth_s - _GAMMA_TENTH * jitter_s) / _WOKEN
    return (least_s, jitter_s) if least_s > 0 else (0.0, half_s / _GAMMA_HALF)


def run(star: StarNetwork, case: AgreementCase) -> tuple[Side, float]:
    """All rounds, and how many seconds apart the ranks began.

    Raises InaError: a rank failed; the deadline passed.
    """
    found = _run(star, case, case.elems, case.rounds, case.steps)
    rounds = [
        SideRun(
            seconds=math.fsum(found["step_s"][number * case.steps : (number + 1) * case.steps]),
            sent=counts["packets_sent"],
            resends=counts["retransmissions"],
            lost=counts["losses"],
            overtaken=counts["spurious_resends"],
            probes=counts["probes"],
        )
        for number, counts in enumerate(found["rounds"])
    ]
    return side(rounds, case, found["wrong"], found["in_flight_limit"]), found["apart_s"]


@dataclass(frozen=True)
class _Thread:
    process: int
    number: int

    def now_ns(self) -> int:
        """What it has cost so far."""
        return cpu_ns(self.number, self.process)


def _cpu_of_switch(star: StarNetwork) -> _Thread:
    process = star.processes[0].process.pid
    return _Thread(process, thread(SWITCH_THREAD, process))


def _run(
    star: StarNetwork,
    case: AgreementCase,
    elems: int,
    rounds: int,
    steps: int,
    pause_s: float = 0.0,
) -> dict[str, Any]:
    order = StepsOrder(
        elems=elems,
        dtype=case.dtype,
        seed=case.seed,
        rounds=rounds,
        steps=steps,
        pause_s=pause_s,
        sums=sums(case, star.workers, elems, 1 + rounds * steps),
    )
    link_s = 8 * case.tensor_bytes / case.rate_bit_s
    timeout_s = _START_UP_S + (_SLOWEST * link_s + pause_s) * rounds * steps
    (found,) = records(star, _WORKER, order, count=1, timeout_s=timeout_s)
    return found
