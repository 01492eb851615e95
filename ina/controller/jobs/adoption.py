"""What a controller takes over of a former one's jobs: those on switches that it knows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from ina.controller.job import Endpoint, Job
from ina.controller.store import StoredJob
from ina.controller.topology.tree import Tree


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
        return bool(self.lost) and not self.job.memory


def adoptable(
    stored: Iterable[StoredJob], switches: Collection[str], *, is_fabric: bool
) -> list[Adoptable]:
    """``switches``: the configuration's, by name. Changes the jobs."""
    items = list(stored)
    trees = [item.job.tree for item in items if item.job.tree is not None]
    all_one = len({tree.root.switch for tree in trees}) == 1 and all(
        tree.has_one_switch for tree in trees
    )
    first = next(iter(switches))
    found = []
    for job, endpoints in ((item.job, item.endpoints) for item in items):
        # A switch that is alone may be called otherwise, as it was before it had a name.
        if job.tree is not None and ((len(switches) == 1 and all_one) or not job.switch):
            _rename(job, job.tree, first)
        found.append(Adoptable(job, endpoints, _keep_known(job, switches, is_fabric=is_fabric)))
    return found


def _rename(job: Job, tree: Tree, switch: str) -> None:
    former = tree.root.switch
    below = (replace(node, parent=switch) for node in tree.nodes[1:])
    job.tree = Tree((replace(tree.root, switch=switch), *below))
    if former in job.memory:
        job.memory = {switch: job.memory[former]}


def _keep_known(job: Job, switches: Collection[str], *, is_fabric: bool) -> str:
    if job.tree is None:
        return "" if is_fabric else "its switches are no fabric any more: join again"
    unknown = [node.switch for node in job.tree.switches if node.switch not in switches]
    job.memory = {name: taken for name, taken in job.memory.items() if name in switches}
    if not unknown:
        return ""
    on = f"switch {unknown[0]!r}" if len(unknown) == 1 else f"switches {', '.join(unknown)}"
    name = "that name" if len(unknown) == 1 else "those names"
    return f"it is on {on}, and the configuration has none of {name}"
