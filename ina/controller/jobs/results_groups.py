"""Which workers get results by IP multicast, and what is done where these do not reach one.

A worker says at ``Join`` that it listens; :mod:`ina.controller.switches.plan` gives one copy of
each result to those behind one port of the switch. Whether a network carries multicast shows only
when results are sent. Nothing is lost where it does not: what a worker resends is answered to it
alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from ina.controller import faults
from ina.controller.job import Job
from ina.controller.switches.plan import JobPlan, sharing_ranks
from ina.controller.switches.switch import Switch
from ina.tables.values import Entry

_log = logging.getLogger(__name__)


def share_if_room(job: Job, switch: Switch, jobs: Iterable[Job]) -> None:
    """Of a job about to start: gives its workers at a switch results of their own if rows are rare.

    The switch's table of receivers has a row for each child of all ``jobs`` there, one for a
    parent, and a job whose workers share takes one more. A job shall not be refused for that one.
    """
    trees = job.mapping.forest
    ranks = (rank for tree in trees if switch.name in tree for rank in tree[switch.name].ranks)
    listening = {rank: at for rank in ranks if (at := job.members[rank]).results_group is not None}
    rows = switch.capacity.members
    if listening and sum(_rows_of(other, switch.name) for other in jobs) > rows:
        _log.warning(
            "job %r: no results by IP multicast: the switch's table of %d receivers is almost full",
            job.name,
            rows,
        )
        own = {rank: replace(at, results_group=None) for rank, at in listening.items()}
        job.members.update(own)


def _rows_of(job: Job, switch: str) -> int:
    trees = {part.number: part.tree for mapping in job.mappings for part in mapping.parts}
    nodes = [tree[switch] for tree in trees.values() if switch in tree]
    return sum(node.fan_in + 1 + (node.parent is not None) for node in nodes)


def take_out(job: Job, rank: int, plan: JobPlan) -> bool:
    """From now on the worker shall have results of its own; False: it had, or it has left.

    ``plan``: what the switch has of the job.
    """
    at = job.members.get(rank)
    if at is None or at.results_group is None:
        return False
    job.members[rank] = replace(at, results_group=None)
    # One alone behind its port got its own already, and may take that for a failure.
    if rank in sharing_ranks(plan.endpoints):
        _log.warning(
            "job %r: results by IP multicast at %s do not reach rank %d: it gets its own",
            job.name,
            at.results_group,
            rank,
        )
    return True


async def regroup(switch: Switch, job: Job) -> None:
    """Makes a switch have what the job's workers want now, by each mapping that the job has.

    It may be called again after it raised :class:`SwitchError`.
    """
    for former, plan in switch.replans(job):
        if plan.stages != former.stages:
            await switch.writer.modify(list(plan.groups))
            faults.reach("own_results.group_modified")
            kept = {item.match for item in plan.stages[0] if isinstance(item, Entry)}
            rows = [item for item in former.stages[0] if isinstance(item, Entry)]
            # The group used them.
            await switch.writer.delete([row for row in rows if row.match not in kept])
        switch.replan(job, former, plan)
