"""Trees of switches, and slots on them, as rows. Functions run in their caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

from ina.controller.store.interface import Transaction
from ina.trees.forest import Forest
from ina.trees.slots import SlotRange
from ina.trees.tree import HostNode, Node, Tree

_COLUMNS = (
    "job, place, switch_name, parent, child, port_down, port_up, ranks, first_slot, slots,"
    " reserved_slots, host_address, host_udp_port, host_mac,"
    " shared, tree, share, rank_ports"
)
_ALL_RANKS = "*"


class NodeRow(NamedTuple):
    """A switch's part in a tree of a job."""

    job: int
    place: int
    switch: str
    parent: int | None
    child: int
    port_down: int
    """The parent's port towards it."""
    port_up: int
    ranks: str
    first_slot: int | None
    """This and the next two: of all trees that it is a node of."""
    slots: int
    reserved_slots: int
    host_address: str | None
    host_udp_port: int | None
    host_mac: int | None
    shared: int
    tree: int
    share: int
    """Of a root: its tree's part of the lanes."""
    rank_ports: str


@dataclass(frozen=True)
class StoredForest:
    """Where a job is."""

    forest: Forest
    memory: dict[str, SlotRange]


NODES, OTHER_NODES = "nodes", "other_nodes"
"""Of the mappings that jobs have; of those beside, while they change."""


def put_forest(
    db: Transaction,
    number: int,
    forest: Forest,
    memory: Mapping[str, SlotRange],
    table: str = NODES,
) -> None:
    """Writes the trees of the job with this number, and the slots that it has left there."""
    rows = _rows(number, forest, memory)
    db.execute(f"DELETE FROM {table} WHERE job = ? AND place >= ?", (number, len(rows)))
    columns = [name.strip() for name in _COLUMNS.split(",")]
    db.executemany(
        f"INSERT INTO {table} ({_COLUMNS}) VALUES ({', '.join('?' * len(columns))})"
        " ON CONFLICT (job, place) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in columns[2:]),
        rows,
    )


def _rows(number: int, forest: Forest, memory: Mapping[str, SlotRange]) -> list[NodeRow]:
    found: list[NodeRow] = []
    for at, (tree, share) in enumerate(zip(forest, forest.shares, strict=True)):
        places = {node.switch: place for place, node in enumerate(tree, len(found))}
        for node in tree:
            child, port_down = 0, 0
            if node.parent is not None:
                above = tree[node.parent]
                child = above.nodes.index(node.switch)
                port_down = above.ports[child]
            taken = memory.get(node.switch)
            found.append(
                NodeRow(
                    number,
                    places[node.switch],
                    node.switch,
                    None if node.parent is None else places[node.parent],
                    child,
                    port_down,
                    node.parent_port,
                    numbers_text(node.ranks),
                    None if taken is None else taken.first,
                    0 if taken is None else taken.slots,
                    0 if taken is None else taken.reserved,
                    *_columns(node),
                    at,
                    share,
                    numbers_text(node.rank_ports),
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


def get_nodes(db: Transaction, table: str = NODES) -> dict[int, list[NodeRow]]:
    """Every job's rows, by its number."""
    found: dict[int, list[NodeRow]] = defaultdict(list)
    for row in db.execute(f"SELECT {_COLUMNS} FROM {table} ORDER BY job, tree, place"):
        node = NodeRow(*row)
        found[node.job].append(node)
    return found


def stored_forest(rows: Iterable[NodeRow], world_size: int) -> StoredForest:
    """The trees that :func:`put_forest` has written."""
    trees: dict[int, list[NodeRow]] = defaultdict(list)
    memory = {}
    for row in rows:
        trees[row.tree].append(row)
        if row.first_slot is not None:
            memory[row.switch] = SlotRange(row.first_slot, row.slots, row.reserved_slots)
    forest = Forest(
        tuple(_tree(its, world_size) for its in trees.values()),
        tuple(its[0].share for its in trees.values()),
    )
    return StoredForest(forest, memory)


def _tree(rows: list[NodeRow], world_size: int) -> Tree:
    names = {row.place: row.switch for row in rows}
    below: dict[int | None, list[NodeRow]] = defaultdict(list)
    for row in rows:
        below[row.parent].append(row)
    nodes = []
    for row in rows:
        children = sorted(below[row.place], key=lambda child: child.child)
        nodes.append(
            Node(
                row.switch,
                _ranks(row.ranks, world_size),
                tuple(child.switch for child in children),
                tuple(child.port_down for child in children),
                None if row.parent is None else names[row.parent],
                row.port_up,
                _host(row, children),
                bool(row.shared),
                numbers_of(row.rank_ports),
            )
        )
    return Tree(tuple(nodes))


def _ranks(text: str, world_size: int) -> tuple[int, ...]:
    return tuple(range(world_size)) if text == _ALL_RANKS else numbers_of(text)


def numbers_text(numbers: Iterable[int]) -> str:
    """As a row has them."""
    return ",".join(map(str, numbers))


def numbers_of(text: str) -> tuple[int, ...]:
    """What :func:`numbers_text` has written."""
    return tuple(map(int, text.split(","))) if text else ()
