"""Runs cells by algorithm and seed, in all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass

from ina.children import worker_processes
from ina.congestion import ALGORITHMS, Congestion
from ina.errors import InaError
from ina.sim.errors import ScenarioError
from ina.sim.windows.cell import Cell, Family, Measured
from ina.sim.windows.families import FAMILIES
from ina.sim.windows.outcome import Outcome, Runs, outcomes_of

RUN_S = 1800.0
"""Of wall time: a run that takes longer is given up."""


@dataclass(frozen=True)
class Task:
    """One run that is to be."""

    family: str
    cell: Cell
    algorithm: str
    table: Mapping[str, object]
    """``[congestion]``."""
    seed: int


@dataclass(frozen=True)
class Done:
    """One run has ended."""

    runs: int
    """That have."""
    of: int
    family: str
    cell: str
    algorithm: str
    seed: int


@dataclass(frozen=True)
class Comparison:
    """All of it."""

    outcomes: list[Outcome]
    """By family, cell and algorithm."""
    runs: Mapping[tuple[str, str, str], Runs]
    """The same with what plots need."""


def chosen_families(names: Sequence[str]) -> list[Family]:
    """None: all. Raises :class:`ScenarioError`."""
    for name in names:
        if name not in FAMILIES:
            raise ScenarioError(f"scenario {name!r}: there are {', '.join(FAMILIES)}")
    return [FAMILIES[name] for name in names or FAMILIES]


def chosen_algorithms(names: Sequence[str]) -> list[str]:
    """None: all. Raises :class:`ScenarioError`."""
    for name in names:
        if name not in ALGORITHMS:
            raise ScenarioError(f"algorithm {name!r}: there are {', '.join(ALGORITHMS)}")
    return list(dict.fromkeys(names or ALGORITHMS))


def compare(
    families: Sequence[Family],
    tables: Mapping[str, Mapping[str, object]],
    seeds: Sequence[int],
    *,
    quick: bool = False,
    cell: str = "",
    processes: int = 0,
    told: Callable[[Done], None] = lambda _done: None,
) -> Comparison:
    """Args:
    families: whose cells are run.
    tables: ``[congestion]`` tables by the name that the outcome has.
    seeds: one run with each.
    quick: run only the cells that stand for the others.
    cell: run only those whose names hold this.
    processes: 0: one for each core; 1: this one.
    told: of each run that has ended.

    Raises :class:`ScenarioError`: there is nothing to run; an algorithm's options are wrong.
    """
    for table in tables.values():
        Congestion.from_table(table)
    wanted = [
        (family, one)
        for family in families
        for one in family.cells
        if (one.is_quick or not quick) and cell in one.name
    ]
    if not wanted or not tables or not seeds:
        raise ScenarioError("nothing to compare: want a cell, an algorithm and a seed at least")
    found = {(family.name, one.name, name): Runs() for family, one in wanted for name in tables}
    tasks = [
        Task(family.name, one, name, tables[name], seed)
        for family, one in wanted
        for seed in seeds
        for name in tables
    ]
    for number, (task, measured) in enumerate(_done(tasks, processes), start=1):
        runs = found[task.family, task.cell.name, task.algorithm]
        if isinstance(measured, str):
            runs.failed[task.seed] = measured
        else:
            runs.done[task.seed] = measured
        told(Done(number, len(tasks), task.family, task.cell.name, task.algorithm, task.seed))
    outcomes = []
    for family, one in wanted:
        outcomes += outcomes_of(
            family, one, {name: found[family.name, one.name, name] for name in tables}
        )
    return Comparison(outcomes, found)


def _done(tasks: Sequence[Task], processes: int) -> Iterator[tuple[Task, Measured | str]]:
    """Each as it ends."""
    if processes == 1:
        for task in tasks:
            yield task, run_one(task)
        return
    with worker_processes(processes or os.cpu_count() or 1) as pool:
        pending = {pool.submit(run_one, task): task for task in tasks}
        for future in as_completed(pending, timeout=RUN_S * len(tasks)):
            yield pending[future], future.result()


def run_one(task: Task) -> Measured | str:
    """One run; of one that fails the error, in one line."""
    try:
        return task.cell.run(task.table, task.seed)
    except InaError as error:
        return f"{type(error).__name__}: {error}"
