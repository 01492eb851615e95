"""What a controller takes over of a former one's jobs: those on switches that it knows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from ina.controller.job import Job, JobState
from ina.controller.store import StoredJob
from ina.trees.endpoint import Endpoint
from ina.trees.forest import Forest
from ina.trees.tree import Tree


@dataclass(frozen=True)
class Adoptable:
    """A job of the store, with its slots on known switches alone."""

    job: Job
    endpoints: dict[int, Endpoint]
    """Of all its ranks, here or not."""
    lost: str
    """Why it cannot go on, for people; empty: it can."""

    @property
    def is_gone(self) -> bool:
        """Whether no known switch has anything of it."""
        return bool(self.lost) and not self.job.switches


def adoptable(
    stored: Iterable[StoredJob], switches: Collection[str], *, is_early: bool
) -> list[Adoptable]:
    """``switches``: the configuration's, by name. ``is_early``: whether jobs that wait for workers
    are to have their slots. Changes the jobs.
    """
    items = list(stored)
    placed = [item.job.forest for item in items if item.job.forest is not None]
    all_one = len({forest.switches for forest in placed}) == 1 and placed[0].has_one_switch
    first = next(iter(switches))
    found = []
    for job, endpoints in ((item.job, item.endpoints) for item in items):
        # A switch that is alone may be called otherwise than it was.
        if job.placed is not None and len(switches) == 1 and all_one:
            _rename(job, first)
        found.append(Adoptable(job, endpoints, _keep_known(job, switches, is_early=is_early)))
    return found


def _rename(job: Job, switch: str) -> None:
    former = job.switch
    for mapping in job.mappings:  # a change is to other slots of the same switch
        mapping.forest = _renamed(mapping.forest, former, switch)
        if former in mapping.memory:
            mapping.memory[switch] = mapping.memory.pop(former)


def _renamed(forest: Forest, former: str, switch: str) -> Forest:
    def now(name: str) -> str:
        return switch if name == former else name

    def of(tree: Tree) -> Tree:
        return Tree(
            tuple(
                replace(
                    node,
                    switch=now(node.switch),
                    nodes=tuple(map(now, node.nodes)),
                    parent=None if node.parent is None else now(node.parent),
                )
                for node in tree
            )
        )

    return Forest(tuple(map(of, forest)), forest.shares)


def _keep_known(job: Job, switches: Collection[str], *, is_early: bool) -> str:
    if job.placed is None:
        return "its switches are no fabric any more: join again" if is_early else ""
    needed = [job.placed.forest]
    if job.change is not None and job.change.has_both:  # ranks may send there, or will
        needed.append(job.change.other.forest)
    nodes = (name for forest in needed for name in forest.switches)
    unknown = [name for name in dict.fromkeys(nodes) if name not in switches]
    for mapping in job.mappings:
        for name in mapping.memory.keys() - set(switches):
            del mapping.memory[name]
    if not unknown:
        is_late = job.state is JobState.JOINING and not is_early
        return "its switches are a fabric now: join again" if is_late else ""
    on = f"switch {unknown[0]!r}" if len(unknown) == 1 else f"switches {', '.join(unknown)}"
    name = "that name" if len(unknown) == 1 else "those names"
    return f"it is on {on}, and the configuration has none of {name}"
