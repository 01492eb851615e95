"""Many seeds, on all cores, until one shows a promise that was not kept.

How far it has got is in a file, so a run can be stopped and continued. A seed that fails is made
smaller (:mod:`ina.sim.minimise`) and kept with what is needed to see it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

import msgspec

from ina.children import worker_processes
from ina.sim.draw import FAULTS_END_MS, LIMIT_S, draw
from ina.sim.errors import ScenarioError
from ina.sim.minimise import minimise
from ina.sim.run import Simulation
from ina.sim.scenario import Scenario

CRASH = "crash"
"""The kind of a finding that ended the process, or raised what no simulation may."""
BLOCK = 10
"""Seeds that a process takes at a time."""
SEED_S = 600.0
"""Of wall time: a block that takes longer, for each of its seeds, is given up."""


class Finding(msgspec.Struct, frozen=True):
    """A seed that failed."""

    seed: int
    kind: str
    what: str
    scenario: Scenario
    """As small as it became."""


class State(msgspec.Struct):
    """How far a run has got."""

    first: int
    next: int
    """All seeds from ``first`` to before this one are done,"""
    done: dict[int, int] = {}
    """and, beyond it, as many as it says from these on."""
    sums: int = 0
    packet_hops: int = 0
    wall_s: float = 0.0
    """Of all processes."""
    findings: list[Finding] = []

    @property
    def seeds(self) -> int:
        """That are done."""
        return self.next - self.first + sum(self.done.values())


class _Block(msgspec.Struct):
    sums: int = 0
    packet_hops: int = 0
    wall_s: float = 0.0
    failed: list[tuple[int, str, str]] = []


def mend_at_s(scenario: Scenario) -> float:
    """From when on nothing goes wrong: as long before the limit, whatever that is."""
    return max(scenario.limit_s - LIMIT_S, 0.0) + FAULTS_END_MS / 1e3


def try_scenario(scenario: Scenario, seed: int) -> Simulation:
    """Runs it as the fuzzer does: from a time on nothing goes wrong, and all must end."""
    simulation = Simulation(scenario, seed, mend_at_s=mend_at_s(scenario))
    simulation.run()
    return simulation


def load_state(path: Path, first: int) -> State:
    """What an earlier run has left there; a new one where there is none.

    Raises :class:`ScenarioError`: it is of other seeds, or no such file.
    """
    if not path.exists():
        return State(first, first)
    try:
        state = msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    if state.first != first:
        raise ScenarioError(f"{path}: it is of the seeds from {state.first} on, not {first}")
    return state


def fuzz(
    state: State,
    seeds: int,
    *,
    processes: int = 0,
    save: Path | None = None,
    stop_at: int = 1,
    told: Callable[[State], None] = lambda _state: None,
) -> State:
    """Tries seeds until ``seeds`` are done in all, or ``stop_at`` have failed.

    Args:
        state: from where on; it is changed.
        seeds: how many in all, from ``state.first`` on.
        processes: 0: as many as there are cores.
        save: where the state is written after each block.
        stop_at: findings after which nothing new begins; 0: none.
        told: of the state, after each block.
    """
    count = processes or len(os.sched_getaffinity(0))
    with worker_processes(count) as pool:
        waiting: dict[Future[bytes], tuple[int, int]] = {}
        blocks = _blocks(state, seeds)
        while True:
            while len(waiting) <= count and not (stop_at and len(state.findings) >= stop_at):
                block = next(blocks, None)
                if block is None:
                    break
                waiting[pool.submit(_try_block, *block)] = block
            if not waiting:
                return state
            done, _ = wait(waiting, SEED_S * BLOCK, FIRST_COMPLETED)
            if not done:
                raise ScenarioError(f"seeds from {min(waiting.values())[0]} on: no end")
            for future in done:
                error = future.exception()
                if error is not None:  # and if the process has died, it is that of all others, too
                    blamed = [waiting.pop(future), *sorted(waiting.values())]
                    state.findings.append(_blame(blamed, error))
                    return state
                _take(state, *waiting.pop(future), future.result())
            if save is not None:
                save.parent.mkdir(parents=True, exist_ok=True)
                save.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
            told(state)


def smaller(scenario: Scenario, seed: int, kind: str, budget_s: float = 60.0) -> Scenario:
    """The smallest one on which a violation of this kind still comes with this seed."""

    def fails(candidate: Scenario) -> bool:
        found = try_scenario(candidate, seed).violations
        return any(violation.kind == kind for violation in found)

    return minimise(scenario, fails, budget_s=budget_s)


def _blocks(state: State, seeds: int) -> Iterator[tuple[int, int]]:
    """Where each begins that is to do, and how many seeds it has."""
    done, end = dict(state.done), state.first + seeds
    at = state.next
    while at < end:
        if at in done:
            at += done[at]
            continue
        count = min([BLOCK, end - at, *(start - at for start in done if start > at)])
        yield at, count
        at += count


def _blame(blocks: list[tuple[int, int]], error: BaseException) -> Finding:
    """Which seed of these blocks ended a process of the fuzzer."""
    for seed in (seed for at, count in blocks for seed in range(at, at + count)):
        with worker_processes(1) as pool:
            found = pool.submit(_try_block, seed, 1).exception(SEED_S)
        if found is not None:
            return Finding(seed, CRASH, f"{type(found).__name__}: {found}", draw(seed))
    what = f"{type(error).__name__}: {error}, but of none of its seeds alone"
    return Finding(blocks[0][0], CRASH, what, draw(blocks[0][0]))


def _try_block(first: int, count: int) -> bytes:
    block = _Block()
    for seed in range(first, first + count):
        simulation = try_scenario(draw(seed), seed)
        report = simulation.report
        assert report is not None
        block.sums += report.sums_checked
        block.packet_hops += report.packet_hops
        block.wall_s += report.wall_s
        block.failed += [(seed, found.kind, found.what) for found in report.violations[:1]]
    return msgspec.json.encode(block)


def _take(state: State, at: int, count: int, result: bytes) -> None:
    block = msgspec.json.decode(result, type=_Block)
    state.sums += block.sums
    state.packet_hops += block.packet_hops
    state.wall_s += block.wall_s
    state.findings += [Finding(seed, kind, what, draw(seed)) for seed, kind, what in block.failed]
    state.done[at] = count
    while state.next in state.done:
        state.next += state.done.pop(state.next)
