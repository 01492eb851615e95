"""Trees of reference switches, and the places of workers in them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from ina.host.trees import TreePlace
from ina.protocol import strips
from ina.protocol.peer import Peer
from ina.protocol.spec import OWNER_BITS, index_bits, path_mask, path_of
from ina.protocol.strips import Strips
from ina.protocol.switch_model import Attachment, ModelJob, Parent, SwitchModel


@dataclass(frozen=True)
class Node:
    """A switch, by name, and its children: ranks and switches, by index."""

    name: str
    children: tuple[int | Node, ...]

    @property
    def level(self) -> int:
        return 1 + max((c.level for c in self.children if isinstance(c, Node)), default=0)


@dataclass(frozen=True)
class _Way:
    """Down from a root: at each node an index, and how many bits of a path it takes."""

    indices: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()

    def to(self, index: int, fan_in: int) -> _Way:
        """One of so many children, below where it leads."""
        bits = index_bits(fan_in, is_root=not self.indices)
        return _Way((*self.indices, index), (*self.widths, bits))

    def parent(self, at: Attachment, node: Node) -> Parent:
        """To the node that it leads to, the one above, which is there."""
        fan_in = len(node.children)
        below = [self.to(index, fan_in) for index in range(fan_in)]
        ways = tuple(path_of(it.indices, it.widths) for it in below)
        mask = path_mask(below[0].widths)
        return Parent(at, self.indices[-1], node.level, mask, ways, self.strips(strips.to_parent))

    def strips(self, of: Callable[[int, int], Strips]) -> Strips:
        """Of what it leads to; of none where a path has no room for an owner's."""
        if sum(self.widths) > OWNER_BITS:
            return strips.KEEPS
        path, mask = path_of(self.indices, self.widths), path_mask(self.widths)
        return of(path >> OWNER_BITS, mask >> OWNER_BITS)


def racks(sizes: Sequence[int], root: str = "root") -> Node:
    """A rack of so many ranks each, in their order, below one root."""
    nodes, first = [], 0
    for number, size in enumerate(sizes):
        nodes.append(Node(f"rack{number}", tuple(range(first, first + size))))
        first += size
    return Node(root, tuple(nodes))


def grown(rng: random.Random, ranks: Sequence[int], levels: int, name: str = "s") -> Node:
    """A tree of these ranks, of so many levels at most; some children are ranks at any level."""
    if levels == 1 or len(ranks) == 1:
        return Node(name, tuple(ranks))
    cuts = sorted(rng.sample(range(1, len(ranks)), min(rng.randint(1, 3), len(ranks) - 1)))
    parts = [ranks[a:b] for a, b in zip([0, *cuts], [*cuts, len(ranks)], strict=True)]
    return Node(
        name,
        tuple(
            part[0] if len(part) == 1 and rng.random() < 0.5
            else grown(rng, part, levels - 1, f"{name}{number}")
            for number, part in enumerate(parts)
        ),
    )  # fmt: skip


def deal(trees: int, lanes: int, rng: random.Random) -> list[int]:
    """How many lanes each tree gets: each one at least."""
    cuts = sorted(rng.sample(range(1, lanes), trees - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, lanes], strict=True)]


class Forest:
    """Switches that a job's trees share by name: each has the slots of all trees that it is in.

    `at`: where a switch is; `place`: where a rank is.
    """

    def __init__(
        self,
        trees: Sequence[Node],
        lanes: Sequence[int],
        values: int,
        at: Callable[[str], Attachment],
        place: Callable[[int], Attachment],
        *,
        first_job: int = 7,
        epoch: int,
        is_stream: bool = False,
    ) -> None:
        self._is_stream = is_stream
        self.switches: dict[str, SwitchModel] = {}
        self.names: dict[Attachment, str] = {}
        self._at, self._place, self._values = at, place, values
        self._used: dict[str, int] = defaultdict(int)
        self.grow(trees, lanes, first_job=first_job, epoch=epoch)

    def grow(
        self, trees: Sequence[Node], lanes: Sequence[int], *, first_job: int, epoch: int
    ) -> None:
        """Trees for another mapping of the job; `places` are from now on those in them."""
        self._epoch = epoch
        self.places: dict[int, list[TreePlace]] = defaultdict(list)
        first = 0
        for number, (tree, count) in enumerate(zip(trees, lanes, strict=True)):
            self._grow(tree, first_job + number, first, count, _Way(), None, len(tree.children))
            self._tell_owners()
            first += count

    def _tell_owners(self) -> None:
        """The paths of all ranks in the newest tree, if they leave room for a shape."""
        newest = {rank: places[-1] for rank, places in sorted(self.places.items())}
        owners = tuple(place.path >> OWNER_BITS for place in newest.values())
        is_short = all(place.path % (1 << OWNER_BITS) == 0 for place in newest.values())
        if is_short and not self._is_stream:
            for rank, place in newest.items():
                self.places[rank][-1] = replace(place, owners=owners)

    def _grow(
        self,
        node: Node,
        job: int,
        first_lane: int,
        lanes: int,
        way: _Way,
        parent: Parent | None,
        root_children: int,
    ) -> None:
        at = self._at(node.name)
        children, stripped = [], []
        for index, child in enumerate(node.children):
            down = way.to(index, len(node.children))
            is_rank = isinstance(child, int)
            stripped.append(down.strips(strips.to_worker if is_rank else strips.to_switch))
            if isinstance(child, int):
                children.append(self._place(child))
                self.places[child].append(
                    TreePlace(
                        job=job,
                        peer=Peer(IPv4Address(at.ipv4), at.udp_port),
                        worker=index,
                        path=path_of(down.indices, down.widths),
                        expected_bitmap=(1 << root_children) - 1,
                        first_lane=first_lane,
                        lanes=lanes,
                        node=node.name,
                    )
                )
            else:
                children.append(self._at(child.name))
                above = down.parent(at, child)
                self._grow(child, job, first_lane, lanes, down, above, root_children)
        switch = self.switches.setdefault(
            node.name, SwitchModel(1 << 16, self._values, expands=self._is_stream)
        )
        self.names[at] = node.name
        install = switch.install_beside if job in switch.jobs else switch.install
        install(
            ModelJob(
                *(job, self._epoch, self._used[node.name], 2 * lanes, tuple(children)),
                parent=parent,
                is_stream=self._is_stream,
                strips=tuple(stripped),
            )
        )
        self._used[node.name] += 2 * lanes

    def nodes(self) -> Iterator[str]:
        return iter(self.switches)
