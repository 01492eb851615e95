"""The tree that a job is summed over, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text

COUNT_COLUMNS = ("contributions", "results", "replays", "passed down")


def indented(nodes: Sequence[pb2.TreeNode]) -> Iterator[tuple[str, pb2.TreeNode]]:
    """The root first, and under each node those below it: the name, indented, and the node."""
    by_name = {node.switch: node for node in nodes}

    def walk(node: pb2.TreeNode, depth: int) -> Iterator[tuple[str, pb2.TreeNode]]:
        yield "  " * depth + node.switch, node
        for child in node.children:
            yield from walk(by_name[child], depth + 1)

    return walk(nodes[0], 0)


def ranks_of(node: pb2.TreeNode) -> str:
    """``ranks 0-3, 7``, the workers that are its children; ``-``: none."""
    return ranks_text(node.ranks) if node.ranks else "-"


def counts(node: pb2.TreeNode) -> list[str]:
    """What it has counted, in the order of ``COUNT_COLUMNS``; empty cells: that is not known."""
    if node.unread:
        return [""] * len(COUNT_COLUMNS)
    return list(map(str, (node.contributions, node.results, node.replays, node.passed_down)))
