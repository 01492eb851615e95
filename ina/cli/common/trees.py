"""The trees that a job is summed over, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text

COUNT_COLUMNS = ("contributions", "results", "replays", "passed down")
SHARED_COLUMNS = ("flushes", "evictions", "collisions", "bypassed", "late", "missed")
"""More of switches whose slots are shared."""


def indented(nodes: Sequence[pb2.TreeNode]) -> Iterator[tuple[str, pb2.TreeNode]]:
    """Under each node those below it: the name, indented, and the node.

    Of several trees one after the other, with its part of the lanes behind the root's name.
    """
    by_name = {(node.tree, node.switch): node for node in nodes}

    def walk(node: pb2.TreeNode, depth: int, more: str = "") -> Iterator[tuple[str, pb2.TreeNode]]:
        yield "  " * depth + node.switch + more, node
        for child in node.children:
            yield from walk(by_name[node.tree, child], depth + 1)

    roots = [node for node in nodes if not node.parent]
    parts = sum(root.share for root in roots)
    for root in roots:
        of_lanes = (
            f" ({Fraction(root.share, parts)} of the lanes)" if len(roots) > 1 and parts else ""
        )
        yield from walk(root, 0, of_lanes)


def ranks_of(node: pb2.TreeNode) -> str:
    """``ranks 0-3, 7``, the workers that are its children; ``-``: none."""
    return ranks_text(node.ranks) if node.ranks else "-"


def counts(node: pb2.TreeNode) -> list[str]:
    """What it has counted, in the order of ``COUNT_COLUMNS``; empty cells: that is not known."""
    if node.unread:
        return [""] * len(COUNT_COLUMNS)
    return list(map(str, (node.contributions, node.results, node.replays, node.passed_down)))


def shared_counts(node: pb2.TreeNode) -> list[str]:
    """What it has counted, in the order of ``SHARED_COLUMNS``."""
    if node.unread or not node.shared:
        return [""] * len(SHARED_COLUMNS)
    return [str(getattr(node, name)) for name in SHARED_COLUMNS]


def beside_the_network(job: pb2.Job | pb2.FabricJob) -> str:
    """One line, if collectives that are no sums do not go over its trees; else empty."""
    if not job.lacks_shapes:
        return ""
    return f"collectives that are no sums go beside the network: {job.lacks_shapes}"


def summed_where(nodes: Sequence[pb2.TreeNode]) -> str:
    """Of a job that shares slots: how much of it switches summed, and why not the rest.

    Empty: it does not, or not all that would be needed is known.
    """
    first = [node for node in nodes if node.shared and _has_workers(node, nodes)]
    if not first or any(node.unread for node in first):
        return ""
    summed = sum(node.contributions for node in first)
    alone = {name: sum(getattr(node, name) for node in first) for name in SHARED_COLUMNS[2:]}
    came = summed + sum(alone.values())
    if not came:
        return ""
    causes = ", ".join(f"{packets} {name}" for name, packets in alone.items())
    text = f"switches summed {summed / came:.1%} of {came} contributions; alone went up {causes}"
    roots = [node for node in nodes if not node.parent]
    if any(root.unread for root in roots):
        return text
    got = sum(it.contributions + it.duplicates + it.replays + it.stale for it in roots)
    which = "aggregators" if len(roots) > 1 else "aggregator"
    return f"{text}; the {which} got {got} packets for {sum(it.results for it in roots)} sums"


def _has_workers(node: pb2.TreeNode, nodes: Sequence[pb2.TreeNode]) -> bool:
    """Itself, or on nodes of their hosts: its children are not all switches with shared slots."""
    shared = {it.switch for it in nodes if it.shared}  # in all of its trees, or in none
    return bool(node.ranks) or any(child not in shared for child in node.children)
