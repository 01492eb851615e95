"""The fuzzer: seeds hold, a bug is found, a run continues where it was stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ina.modes import rows
from ina.modes.rows import Neighbour, Place
from ina.p4 import compiled
from ina.p4.builds import builds_of
from ina.p4.names import POOL
from ina.sim.draw import draw
from ina.sim.errors import ScenarioError
from ina.sim.fuzz import BLOCK, CRASH, State, _Block, fuzz, load_state, smaller, try_scenario
from ina.tables.values import Entry
from tests.lines import ROOT
from tests.selection import LONG
from tests.sim.bugs import BUGS

SEEDS = 1000 if LONG else 2 * BLOCK


def test_seeds_hold(tmp_path: Path) -> None:
    """CI's few, in a run that is stopped and goes on; ``make fuzz`` runs many more."""
    path = tmp_path / "state.json"
    first = fuzz(load_state(path, 0), BLOCK, processes=1, save=path)
    again = load_state(path, 0)
    assert again == first
    told: list[int] = []
    state = fuzz(again, SEEDS, processes=2, save=path, told=lambda state: told.append(state.seeds))
    assert [(one.seed, one.kind, one.what) for one in state.findings] == []
    assert told == list(range(2 * BLOCK, SEEDS + 1, BLOCK))
    assert load_state(path, 0).sums == state.sums > SEEDS
    with pytest.raises(ScenarioError, match="of the seeds from 0 on, not 7"):
        load_state(path, 7)
    path.write_text("{")
    with pytest.raises(ScenarioError, match=r"state\.json: "):
        load_state(path, 0)


def test_a_controller_that_takes_long_to_come_back_is_waited_for() -> None:
    """Its connections' first messages are lost, more than once: it has no role for 20 s."""
    assert try_scenario(draw(103155), 103155).violations == []


def test_a_job_may_have_the_same_slots_by_two_numbers() -> None:
    """It changes in place, and its mode and tree with it, again and again to the end."""
    drawn = draw(1109)
    often = [replace(fault, every_growth=1.0) for fault in drawn.fault]
    assert try_scenario(replace(drawn, fault=often), 1109).violations == []


def test_each_seed_is_tried_once_wherever_runs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds by no whole blocks, and a later block that is done before an earlier one."""
    tried: list[int] = []

    def noted(first: int, count: int) -> bytes:
        tried.extend(range(first, first + count))
        return msgspec.json.encode(_Block())

    class Here:
        """Works at once, in this process, so that ``tried`` is seen."""

        def submit(self, work: Callable[[int, int], bytes], *block: int) -> Future[bytes]:
            done: Future[bytes] = Future()
            done.set_result(work(*block))
            return done

    monkeypatch.setattr("ina.sim.fuzz._try_block", noted)
    monkeypatch.setattr("ina.sim.fuzz.worker_processes", lambda _: nullcontext(Here()))
    state = State(0, 0, {BLOCK: 5})
    for seeds in (2, 13, 3 * BLOCK):
        fuzz(state, seeds)
    assert sorted(tried) == sorted({*range(3 * BLOCK)} - {*range(BLOCK, BLOCK + 5)})
    assert (state.next, state.done, state.seeds) == (3 * BLOCK, {}, 3 * BLOCK)


def test_a_seed_that_ends_its_process_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the process dies or the simulation raises what it may not."""
    for module in (dying_fuzz, raising_fuzz):
        monkeypatch.setattr("ina.sim.fuzz._try_block", module)
        (found,) = fuzz(State(BLOCK, BLOCK), BLOCK, processes=2).findings
        assert (found.seed, found.kind) == (FATAL_SEED, CRASH)
        assert found.scenario == draw(FATAL_SEED)


FATAL_SEED = BLOCK + 1


def dying_fuzz(first: int, count: int) -> bytes:
    if FATAL_SEED in range(first, first + count):
        os.abort()
    return msgspec.json.encode(_Block())


def raising_fuzz(first: int, count: int) -> bytes:
    assert FATAL_SEED not in range(first, first + count)
    return msgspec.json.encode(_Block())


def test_a_bug_is_found_and_its_scenario_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the plan: each result goes to the first worker's port."""
    honest = rows.receiver
    first: dict[int, Neighbour] = {}

    def to_the_first(at: Place, index: int, child: Neighbour) -> Entry:
        return honest(at, index, first.setdefault(at.part.epoch, child))

    monkeypatch.setattr(rows, "receiver", to_the_first)
    # Of mode pool alone: smaller ones of these are found in a few seconds.
    drawn = ((seed, draw(seed)) for seed in range(40))
    for seed, scenario in drawn:
        if scenario.switch.mode != POOL:
            continue
        found = try_scenario(scenario, seed).violations
        if found:
            break
    assert found, "not found in 40 seeds"
    least = smaller(scenario, seed, found[0].kind, budget_s=10.0)
    assert len(least.job) == 1
    assert least.fault == []


def test_each_bug_of_the_list_is_still_one() -> None:
    assert len(BUGS) >= 15
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        if bug.change is not None:
            program = json.loads(compiled(min(builds_of(bug.mode)), bug.mode).bmv2_json.read_text())
            before = json.dumps(program)
            bug.change(program)
            assert json.dumps(program) != before, f"the JSON has changed: write {bug.name!r} anew"
        else:
            count = (ROOT / bug.file).read_text().count(bug.before)
            assert count == 1, f"{bug.file} has changed: write {bug.name!r} anew"
