"""The trees that jobs are summed over, for people, with what their switches count of them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping

from ina.controller.job import Job
from ina.controller.service.show import job_counters
from ina.controller.switches.switch import Switch
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.watch.leases import Member
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError
from ina.trees.mapping import Part
from ina.trees.tree import Node

_log = logging.getLogger(__name__)

COUNTERS_S = 3.0
"""How long the answer waits for a switch's counters."""

_COUNTED = tuple(field.name for field in pb2.NodeCounts.DESCRIPTOR.fields)

_Jobs = dict[int, Job]
"""By number."""


async def read_counters(
    asked: Mapping[Switch, _Jobs],
    read: Callable[[Switch, _Jobs], Awaitable[list[pb2.Counter]]] = job_counters,
) -> tuple[list[pb2.Counter], dict[str, str]]:
    """What switches count of these jobs; of each that does not say, by its name, why."""
    found = await asyncio.gather(*(_read(it, jobs, read) for it, jobs in asked.items()))
    counters: list[pb2.Counter] = []
    unread: dict[str, str] = {}
    for switch, of_switch in zip(asked, found, strict=True):
        if isinstance(of_switch, str):  # the rest is worth showing, now more than ever
            _log.warning("shown without the counters of switch %r: %s", switch.name, of_switch)
            unread[switch.name] = of_switch
        else:
            counters += of_switch
    return counters, unread


async def _read(
    switch: Switch,
    jobs: _Jobs,
    read: Callable[[Switch, _Jobs], Awaitable[list[pb2.Counter]]],
) -> list[pb2.Counter] | str:
    try:
        return await asyncio.wait_for(read(switch, jobs), COUNTERS_S)
    except SwitchError as error:
        return str(error)
    except asyncio.TimeoutError:
        return f"switch {switch.config.grpc_addr}: no answer within {COUNTERS_S:g} s"


def show_tree(
    job: Job,
    counters: Iterable[pb2.Counter],
    unread: Mapping[str, str],
    on_hosts: Mapping[str, pb2.NodeCounts],
) -> list[pb2.TreeNode]:
    """Tree by tree, its root first, parents before their children; nothing of a job that is not
    placed yet.

    ``counters``, ``unread``: what :func:`read_counters` has found. ``on_hosts``: what nodes on
    hosts have counted, by their names.
    """
    if job.forest is None:
        return []
    packets = _counted(job, counters)
    shown = []
    told: set[str] = set()
    for index, (part, share) in enumerate(zip(job.mapping.parts, job.forest.shares, strict=True)):
        for node in part.tree:
            if node.host is None:
                of_switch = {it: packets[index, node.switch, f"job_{it}"] for it in _COUNTED}
                counted, silent = pb2.NodeCounts(**of_switch), unread.get(node.switch, "")
            elif node.switch in told:  # it counts all trees together
                counted, silent = pb2.NodeCounts(), "counted in the first tree"
            else:
                said = on_hosts.get(node.switch)
                counted = said or pb2.NodeCounts()
                silent = "" if said else f"rank {node.host.rank}, which runs it, has not said"
                told.add(node.switch)
            shown.append(_node(part, node, index, share, counted, silent))
    return shown


def _counted(job: Job, counters: Iterable[pb2.Counter]) -> Counter[tuple[int, str, str]]:
    """Packets by tree, switch and counter.

    Of numbers that are none of its trees', as of a mapping that it had, in the first tree of those
    that have the switch.
    """
    packets: Counter[tuple[int, str, str]] = Counter()
    numbers = job.mapping.numbers
    for it in counters:
        if it.job != job.name:
            continue
        here = [at for at, tree in enumerate(job.trees) if it.switch in tree]
        own = [at for at in here if numbers[at] == it.index]
        for at in (own or here)[:1]:
            packets[at, it.switch, it.name] += it.packets
    return packets


def _node(
    part: Part, node: Node, tree: int, share: int, counted: pb2.NodeCounts, silent: str
) -> pb2.TreeNode:
    taken = part.memory_at(node)
    return pb2.TreeNode(
        switch=node.switch,
        parent=node.parent or "",
        level=part.tree.level(node),
        ranks=node.ranks,
        children=node.nodes,
        first_slot=0 if taken is None else taken.first,
        slots=0 if taken is None else taken.reserved if node.is_shared else taken.slots,
        shared=node.is_shared,
        unread=silent,
        tree=tree,
        share=share,
        **{name: getattr(counted, name) for name in _COUNTED},
    )


def counts_on_hosts(job: Job, detector: FailureDetector) -> dict[str, pb2.NodeCounts]:
    """What ranks said last that the nodes have counted which they run, by the nodes' names."""
    found = {}
    for node in job.nodes:
        if node.host is None or node.host.rank not in job.members:
            continue
        report = detector.report(Member(job.epoch, node.host.rank))
        field = "node" if node.parent is not None else "aggregator"
        if report is not None and report.progress.HasField(field):
            found[node.switch] = getattr(report.progress, field)
    return found
