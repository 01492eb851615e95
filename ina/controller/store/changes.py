"""Changes of jobs' mappings as rows. Functions run in their caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ina.controller.change import Change, Stage
from ina.controller.job import Job
from ina.controller.store.interface import Transaction
from ina.controller.store.trees import (
    OTHER_NODES,
    get_nodes,
    numbers_of,
    numbers_text,
    put_forest,
    stored_forest,
)
from ina.trees.forest import Forest
from ina.trees.mapping import Mapping as JobMapping
from ina.trees.slots import SlotRange

_COLUMNS = (
    "job, stage, epoch, number, window_packets, host_first, in_place, first_operation, why,"
    " since_unix_s, mode, further_numbers"
)


@dataclass(frozen=True)
class SavedChange:
    """What the store has of a change."""

    epoch: int
    """Of the mapping beside the one that the job has."""
    forest: Forest
    memory: Mapping[str, SlotRange]


def saved_change(job: Job) -> SavedChange | None:
    """What it has once the job was put there as it is; None: nothing."""
    change = job.change
    if change is None:
        return None
    other = change.other
    return SavedChange(other.epoch, other.forest, dict(other.memory))


def put_change(db: Transaction, job: Job, former: SavedChange | None, *, is_known: bool) -> None:
    """Writes a job's change, or that it has none. ``is_known``: ``former`` is what is there."""
    change = job.change
    if change is None:
        if former is not None or not is_known:
            db.execute("DELETE FROM changes WHERE job = ?", (job.number,))
        return
    other = change.other
    db.execute(
        f"INSERT INTO changes ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (job) DO UPDATE SET stage = excluded.stage, epoch = excluded.epoch,"
        " number = excluded.number, window_packets = excluded.window_packets,"
        " host_first = excluded.host_first, first_operation = excluded.first_operation,"
        " mode = excluded.mode, further_numbers = excluded.further_numbers",
        (
            job.number,
            change.stage.value,
            other.epoch,
            other.numbers[0],
            other.window,
            other.host_first,
            int(change.in_place),
            change.first_operation,
            change.why,
            change.since_unix_s,
            other.mode,
            numbers_text(other.numbers[1:]),
        ),
    )
    if former != saved_change(job):
        put_forest(db, job.number, other.forest, other.memory, OTHER_NODES)


def get_changes(db: Transaction, now_s: float, world_sizes: Mapping[int, int]) -> dict[int, Change]:
    """Every job's, by its number; ``now_s`` becomes when they began."""
    nodes = get_nodes(db, OTHER_NODES)
    found = {}
    for (
        job,
        stage,
        epoch,
        number,
        window,
        host_first,
        in_place,
        first_operation,
        why,
        since_unix_s,
        mode,
        further,
    ) in db.execute(f"SELECT {_COLUMNS} FROM changes ORDER BY job"):
        stored = stored_forest(nodes[job], world_sizes[job])
        numbers = (number, *numbers_of(further))
        found[job] = Change(
            JobMapping(epoch, numbers, stored.forest, stored.memory, window, host_first, mode),
            why,
            in_place=bool(in_place),
            stage=Stage(stage),
            first_operation=first_operation,
            since_s=now_s,
            since_unix_s=since_unix_s,
        )
    return found
