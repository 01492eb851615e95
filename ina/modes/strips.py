"""Which copies lose their values on the way to a node's neighbour: what its row of receivers says.

In mode ``shared`` what leaves a switch that shares its slots names whose parts it holds, so nothing
that goes up from there may lose them.
"""

from __future__ import annotations

from ina.protocol.spec import PARENT
from ina.protocol.strips import KEEPS, Strips, to_parent, to_switch, to_worker
from ina.trees.tree import Node, Tree


def strips(tree: Tree, node: Node, index: int) -> Strips:
    """Of a node's child, by its index, or of its parent (``PARENT``)."""
    if not tree.has_shapes or (index == PARENT and node.is_shared):
        return KEEPS
    if index != PARENT:
        to = to_worker if index < len(node.ranks) else to_switch
        return to(tree.owner_ways(node)[index], tree.owner_mask(node))
    assert node.parent is not None
    above = tree[node.parent]
    way = tree.owner_ways(above)[above.index_of_node(node.switch)]
    return to_parent(way, tree.owner_mask(above))
