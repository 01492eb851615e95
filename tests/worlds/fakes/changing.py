"""Ranks of a job as a change of its mapping finds them: they ask, and say what they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ina.controller.change import Word
from ina.controller.job import Job
from ina.controller.jobs.changes import Told
from ina.rpc import controller_pb2 as pb2
from ina.trees.forest import forest_of
from ina.trees.tree import Node, Tree
from tests.worlds.fakes.racks import Racks

S = 17
"""From which operation on rank 0 wants to change."""

LEAF1 = forest_of(Tree((Node("leaf1", (0, 1)),)))
"""Of two ranks behind leaf1, which needs no other switch."""
OVER_SPINE = forest_of(
    Tree(
        (
            Node("spine", (), ("leaf1",), (1,)),
            Node("leaf1", (0, 1), parent="spine", parent_port=9),
        )
    )
)
"""The same two, with the spine as their root."""


async def resized(racks: Racks, job: Job, slots: int) -> None:
    """Begins to give the job so many slots."""
    await racks.coordinator.changes.resize(job.name, slots, "a test")


def ask(racks: Racks, job: Job, rank: int, word: Word | None = None) -> Told | None:
    return racks.coordinator.changes.hear(job, rank, word or Word())


def ask_all(racks: Racks, job: Job) -> Told:
    """Every rank asks, 0 last; returns what that one is told."""
    told = [ask(racks, job, rank) for rank in sorted(job.members, reverse=True)]
    assert told[-1] is not None
    return told[-1]


def decide(racks: Racks, job: Job, first_operation: int = S) -> Told:
    """Rank 0 says from which operation on, once all have asked."""
    epoch = ask_all(racks, job).mapping.epoch
    told = ask(racks, job, 0, Word(epoch, first_operation))
    assert told is not None
    assert told.terms.first_operation == first_operation
    return told


def finish(racks: Racks, job: Job, epoch: int, ranks: Iterable[int] | None = None) -> None:
    """These ranks, else all, have the results of what is before."""
    for rank in list(job.members) if ranks is None else ranks:
        ask(racks, job, rank, Word(epoch, done=True))


async def change_wholly(racks: Racks, job: Job, first_operation: int = S) -> None:
    """What ranks do of a change that has begun, until it is over."""
    told = decide(racks, job, first_operation)
    finish(racks, job, told.mapping.epoch)
    while job.change is not None:
        if told.terms.waits:
            for rank in job.members:
                opened = ask(racks, job, rank, Word(told.mapping.epoch))
                if opened is not None and not opened.terms.waits:
                    ask(racks, job, rank)
        await asyncio.sleep(0)
    await racks.until_idle()


def told_of(racks: Racks, name: str = "j") -> list[str]:
    """Kinds of the events of changes so far, with their reasons."""
    return [
        f"{pb2.EventKind.Name(event.kind)} {event.reason}"
        for event in racks.coordinator.events.history(name)
        if event.kind in (pb2.JOB_REMAPS, pb2.JOB_REMAPPED, pb2.JOB_REMAP_OFF)
    ]


def epochs_on(racks: Racks, switch: str, job: Job) -> list[int]:
    """Mappings that the switch lets in, of any of the job's numbers."""
    rows = [row for number in job.numbers for row in racks.sessions[switch].rows_of(number)]
    return sorted({dict(row.params)["epoch"] for row in rows})
