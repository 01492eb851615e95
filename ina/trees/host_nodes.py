"""Nodes on the workers' own hosts: what adds up there, before anything reaches a switch. Pure.

A rank's process runs one, and programs it; nothing of the controller reaches it. To the switch that
it sends to it is one child, as a worker is. So a tree is found for those who send to switches, and
the hosts' nodes are put below it with their ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from ina.trees.tree import HostNode, Node, Tree


class Member(Protocol):
    """What must be known of a worker."""

    @property
    def node(self) -> HostNode | None:
        """What adds up on its host; None: it sends to the switch."""


def check_nodes(job: str, members: Mapping[int, Member]) -> None:
    """Raises :class:`JobRequestError`: a rank sends to a node that no rank runs."""
    for rank, at in sorted(members.items()):
        if at.node is not None and members[at.node.rank].node != at.node:
            raise JobRequestError(
                f"job {job!r}: rank {rank} sends to a node at {at.node.peer}"
                f" that rank {at.node.rank} is to run, and that one runs"
                f" {'another' if members[at.node.rank].node else 'none'}"
            )


def with_nodes_of(former: Forest, forest: Forest) -> Forest:
    """Trees of those who send to switches, with the nodes on hosts that a job has in ``former``.

    A forest that has them already stays. Raises :class:`JobRequestError` as :class:`Tree` does.
    """
    nodes = {
        rank: node.host
        for node in former.trees[0]
        if node.host is not None and node.parent is not None
        for rank in node.ranks
    }
    if not nodes or any(node.host in nodes.values() for tree in forest for node in tree):
        return forest
    ranks = {rank for tree in forest for node in tree for rank in node.ranks}
    members = {rank: _Below(nodes.get(rank)) for rank in ranks | nodes.keys()}
    return Forest(tuple(with_host_nodes(tree, members) for tree in forest), forest.shares)


@dataclass(frozen=True)
class _Below:
    node: HostNode | None


def with_host_nodes(tree: Tree, members: Mapping[int, Member]) -> Tree:
    """The tree of those who send to switches, with all others below their hosts' nodes.

    Raises :class:`JobRequestError` as :class:`Tree` does: too many ranks at one node, or levels.
    """
    ranks_of: dict[int, list[int]] = {}
    for rank, at in sorted(members.items()):
        if at.node is not None:
            ranks_of.setdefault(at.node.rank, []).append(rank)
    nodes, below = [], []
    for node in tree:
        hosts = {rank: host for rank in node.ranks if (host := members[rank].node) is not None}
        alone = [(at, rank) for at, rank in enumerate(node.ranks) if rank not in hosts]
        behind = (node.port_of(rank, host.switch_port) for rank, host in hosts.items())
        nodes.append(
            replace(
                node,
                ranks=tuple(rank for _, rank in alone),
                rank_ports=tuple(node.rank_ports[at] for at, _ in alone if node.rank_ports),
                nodes=(*node.nodes, *(host.name for host in hosts.values())),
                ports=(*node.ports, *behind),
            )
        )
        for rank, host in hosts.items():
            ranks = tuple(ranks_of[rank])
            below.append(Node(host.name, ranks, (), (), node.switch, host.uplink_port, host=host))
    return Tree((*nodes, *below)) if below else tree
