"""Trees of switches, and slots on them, as rows. Functions run in their caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

from ina.controller.memory import SlotRange
from ina.controller.store.interface import Transaction
from ina.controller.topology.tree import HostNode, Node, Tree

_COLUMNS = (
    "job, place, switch_name, parent, child, port_down, port_up, ranks, first_slot, slots,"
    " reserved_slots, host_address, host_udp_port, host_mac,"
    " shared"
)
_ALL_RANKS = "*"


class NodeRow(NamedTuple):
    """A switch's part in a job."""

    job: int
    place: int
    switch: str
    parent: int | None
    child: int
    port_down: int
    """The parent's port towards it; of a further root its own, downwards."""
    port_up: int
    ranks: str
    first_slot: int | None
    slots: int
    reserved_slots: int
    host_address: str | None
    host_udp_port: int | None
    host_mac: int | None
    shared: int


@dataclass(frozen=True)
class StoredTree:
    """Where a job is."""

    tree: Tree
    memory: dict[str, SlotRange]


NODES, OTHER_NODES = "nodes", "other_nodes"
"""Of the mappings that jobs have; of those beside, while they change."""


def put_tree(
    db: Transaction, number: int, tree: Tree, memory: Mapping[str, SlotRange], table: str = NODES
) -> None:
    """Writes the tree of the job with this number, and the slots that it has left there."""
    db.execute(f"DELETE FROM {table} WHERE job = ? AND place >= ?", (number, len(tree)))
    columns = [name.strip() for name in _COLUMNS.split(",")]
    db.executemany(
        f"INSERT INTO {table} ({_COLUMNS}) VALUES ({', '.join('?' * len(columns))})"
        " ON CONFLICT (job, place) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in columns[2:]),
        _rows(number, tree, memory),
    )


def _rows(number: int, tree: Tree, memory: Mapping[str, SlotRange]) -> list[NodeRow]:
    places = {node.switch: place for place, node in enumerate(tree)}
    found = []
    for place, node in enumerate(tree):
        child, port_down = 0, 0
        if node.parent is None and place:
            (port_down,) = node.ports
        if node.parent is not None:
            above = tree[node.parent]
            child = above.nodes.index(node.switch)
            port_down = above.ports[child]
        taken = memory.get(node.switch)
        found.append(
            NodeRow(
                number,
                place,
                node.switch,
                None if node.parent is None else places[node.parent],
                child,
                port_down,
                node.parent_port or node.top_port,
                ",".join(map(str, node.ranks)),
                None if taken is None else taken.first,
                0 if taken is None else taken.slots,
                0 if taken is None else taken.reserved,
                *_columns(node),
            )
        )
    return found


def _columns(node: Node) -> tuple[str | None, int | None, int | None, int]:
    if node.host is None:
        return None, None, None, int(node.is_shared)
    return str(node.host.address), node.host.udp_port, node.host.mac, int(node.is_shared)


def _host(row: NodeRow, children: list[NodeRow]) -> HostNode | None:
    if row.host_address is None or row.host_udp_port is None or row.host_mac is None:
        return None
    at = (IPv4Address(row.host_address), row.host_udp_port, row.host_mac)
    if row.parent is None:  # an aggregator, above one switch
        (below,) = children
        return HostNode(0, *at, switch_port=below.port_up, uplink_port=below.port_down)
    runner = int(row.ranks.partition(",")[0])
    return HostNode(runner, *at, switch_port=row.port_down, uplink_port=row.port_up)


def get_trees(db: Transaction, table: str = NODES) -> dict[int, list[NodeRow]]:
    """Every job's rows, by its number."""
    found: dict[int, list[NodeRow]] = defaultdict(list)
    for row in db.execute(f"SELECT {_COLUMNS} FROM {table} ORDER BY job, place"):
        node = NodeRow(*row)
        found[node.job].append(node)
    return found


def tree_of(rows: list[NodeRow], world_size: int) -> StoredTree:
    """The tree that :func:`put_tree` has written."""
    below: dict[int | None, list[NodeRow]] = defaultdict(list)
    for row in rows:
        below[row.parent].append(row)
    nodes, memory = [], {}
    for row in rows:
        children = sorted(below[row.place], key=lambda child: child.child)
        if row.parent is None and row.place:  # a further root: above what is below the first
            (top,) = below[0]
            nodes.append(
                Node(row.switch, (), (top.switch,), (row.port_down,), top_port=row.port_up)
            )
        else:
            nodes.append(
                Node(
                    row.switch,
                    _ranks(row.ranks, world_size),
                    tuple(child.switch for child in children),
                    tuple(child.port_down for child in children),
                    None if row.parent is None else rows[row.parent].switch,
                    row.port_up,
                    _host(row, children),
                    bool(row.shared),
                )
            )
        if row.first_slot is not None:
            memory[row.switch] = SlotRange(row.first_slot, row.slots, row.reserved_slots)
    return StoredTree(Tree(tuple(nodes)), memory)


def _ranks(text: str, world_size: int) -> tuple[int, ...]:
    if text == _ALL_RANKS:
        return tuple(range(world_size))
    return tuple(map(int, text.split(","))) if text else ()
