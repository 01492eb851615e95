"""Jobs that have their places: on one switch, or over the nodes of a tree."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from ina.controller.job import Job, JobSpec, JobState
from ina.controller.store import Store
from ina.controller.switches.plan import FIRST_GROUP
from ina.protocol.addresses import mac_of
from ina.protocol.peer import Peer
from ina.protocol.spec import OWNER_BITS
from ina.protocol.strips import KEEPS, to_parent, to_switch, to_worker
from ina.protocol.switch_model import Attachment, ModelJob, Parent
from ina.tables.values import Entry, Group
from ina.testing import state
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.slots import SlotRange
from ina.trees.tree import Node, Tree
from tests.worlds.fakes.switches import job_at, placed_over

NUMBER, EPOCH, SLOTS = 7, 0x0003_0009, 64


_OFFSET = FIRST_GROUP + NUMBER - state.job_group(NUMBER)


def racks(*sizes: int, at_root: int = 0) -> Tree:
    """A spine above racks of these sizes, with some workers at the spine itself."""
    ranks = iter(range(at_root, at_root + sum(sizes)))
    leaves = [
        Node(
            f"leaf{number}", tuple(next(ranks) for _ in range(size)), parent="spine", parent_port=9
        )
        for number, size in enumerate(sizes)
    ]
    below = tuple(leaf.switch for leaf in leaves)
    ports = tuple(range(100, 100 + len(leaves)))
    return Tree((Node("spine", tuple(range(at_root)), below, ports), *leaves))


def three_levels() -> Tree:
    return Tree(
        (
            Node("core", (), ("pod0", "pod1"), (1, 2)),
            Node("pod0", (0,), ("leaf0",), (5,), "core", 30),
            Node("pod1", (4, 5), (), (), "core", 31),
            Node("leaf0", (1, 2, 3), (), (), "pod0", 32),
        )
    )


TREES = [racks(2, 3), racks(1, 1), racks(4, 1, at_root=2), racks(*[1] * 32), three_levels()]


def job_over(tree: Tree) -> Job:
    ranks = sorted(rank for node in tree for rank in node.ranks)
    memory = {node.switch: SlotRange(64 * place, SLOTS, SLOTS) for place, node in enumerate(tree)}
    placed = placed_over(forest_of(tree), memory, NUMBER, EPOCH)
    job = Job(JobSpec("j", len(ranks)), NUMBER, 0.0, placed, epoch=EPOCH)
    for rank in ranks:
        job.members[rank] = Endpoint(
            Peer(IPv4Address("10.0.0.1") + rank, 4000 + rank), 1 + rank % 8
        )
    return job


def addresses(tree: Tree) -> dict[str, Peer]:
    found = {}
    for place, node in enumerate(tree):
        address = IPv4Address("10.9.0.1") + place
        found[node.switch] = Peer(address, 17760, mac_of(address))
    return found


def as_model(job: Job, switch: str) -> ModelJob:
    """The same node, as the reference model has it."""
    assert job.forest is not None
    (tree,) = job.forest
    node, where = tree[switch], addresses(tree)

    def at(name: str, port: int) -> Attachment:
        return Attachment(port, int(where[name].address), where[name].udp_port)

    workers = [
        Attachment(job.members[rank].switch_port, int(job.members[rank].peer.address), 4000 + rank)
        for rank in node.ranks
    ]
    workers += [at(name, port) for name, port in zip(node.nodes, node.ports, strict=True)]
    parent = None
    if node.parent is not None:
        above = at(node.parent, node.parent_port)
        place = tree.way(node)[-1], tree.level(node)
        own_way = tree.path(_a_rank_below(tree, node)) & tree.path_mask(tree[node.parent])
        up = KEEPS  # what leaves shared slots names whose parts it holds
        if not node.is_shared:
            up = to_parent(own_way >> OWNER_BITS, tree.owner_mask(tree[node.parent]))
        parent = Parent(above, *place, tree.path_mask(node), tree.children_ways(node), up)
    to = [*(to_worker for _ in node.ranks), *(to_switch for _ in node.nodes)]
    ways, mask = tree.owner_ways(node), tree.owner_mask(node)
    strips_of = tuple(it(way, mask) for it, way in zip(to, ways, strict=True))
    first = job.memory[switch].first
    return ModelJob(NUMBER, EPOCH, first, SLOTS, tuple(workers), parent=parent, strips=strips_of)


def _a_rank_below(tree: Tree, node: Node) -> int:
    while not node.ranks:
        node = tree[node.nodes[0]]
    return node.ranks[0]


def plain(item: object) -> object:
    """An entry or a group, but for MAC addresses, which the cases make up."""
    if isinstance(item, Group):
        return _ours(item.number), item.replicas
    assert isinstance(item, Entry)
    params = {name: value for name, value in item.params if name != "dst_mac"}
    if "group" in params:
        params["group"] = _ours(params["group"])
    return item.table, item.match, item.action, tuple(params.items())


def _ours(group: int) -> int:
    """The controller's number of a group, of which the cases have another."""
    return group if group >= FIRST_GROUP else group + _OFFSET


def job(
    number: int = 1, name: str = "j", state: JobState = JobState.JOINING, ranks: int = 2
) -> Job:
    made = job_at(name, number, ranks, SlotRange(512 * number, 512, 512), 7.0, state=state)
    for rank in range(ranks):
        made.members[rank] = Endpoint(Peer(IPv4Address("10.0.0.1"), 4000 + rank), 1)
    return made


def shown(of: Job) -> dict[str, Any]:
    """All of it, but for moments of the clock; a change as a controller that starts has it."""
    change = of.change and of.change.afresh(0.0)
    return {
        **vars(of),
        "created_s": None,
        "placed": of.placed and vars(of.placed),
        "change": change and {**vars(change), "other": vars(change.other)},
    }


def stored_job(store: Store) -> dict[str, Any]:
    (stored,) = store.load(0.0)
    return shown(stored.job)
