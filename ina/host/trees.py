"""The trees of switches that a job's lanes are dealt to, as one worker sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ina import modes
from ina.extension import host as native
from ina.host.errors import InvalidTicketError
from ina.p4.names import DEFAULT_MODE
from ina.protocol.peer import Peer
from ina.protocol.spec import MAX_WORKERS, OWNER_BITS, PATH_BITS, index_bits, path_of

MAX_TREES = 16
_OWNER_SHIFT = PATH_BITS - OWNER_BITS


@dataclass(frozen=True)
class TreePlace:
    """A worker's place in one tree. Immutable and picklable."""

    job: int  # the header's job number in the packets of this tree, 0..65535
    peer: Peer  # its first node, where contributions go
    worker: int  # this worker's index among that node's children, 0..31
    path: int  # the way down to this worker from the root, 24 bits (ina.protocol.spec.path_of)
    expected_bitmap: int  # contributors that a whole result names: the root's children
    first_lane: int  # of the lanes, in a row, that are summed there
    lanes: int
    node: str = ""  # the first node's name, for people; empty: not known
    # By rank, the rank's path in its upper 12 bits; empty: the tree has no shapes but SUM.
    owners: tuple[int, ...] = ()

    @property
    def where(self) -> str:
        """Its first node, for people: "leaf1 at 10.0.0.1:17760"."""
        return f"{self.node} at {self.peer}" if self.node else str(self.peer)

    @property
    def lanes_text(self) -> str:
        """``0-31``."""
        return f"{self.first_lane}-{self.first_lane + self.lanes - 1}"

    def native(self, usual: Peer | None = None) -> native.Tree:
        """As the core is told. `usual`: the node that its link leads to without being told."""
        return native.Tree(
            job=self.job,
            worker=self.worker,
            path=self.path,
            expected_bitmap=self.expected_bitmap,
            first_lane=self.first_lane,
            lanes=self.lanes,
            node=native.Peer() if self.peer == usual else native_peer(self.peer),
            owners=self.owners,
        )


def native_peer(at: Peer) -> native.Peer:
    """As the core is told."""
    return native.Peer(ipv4=int(at.address), udp_port=at.udp_port)


def one_switch(
    job: int, rank: int, world_size: int, slots: int, switch: Peer, *, mode: str = DEFAULT_MODE
) -> tuple[TreePlace]:
    """A rank's place where one switch sums all of them.

    `slots`: the job's, both versions; `mode`: its mode. Raises InvalidTicketError: more ranks than
    it can sum.
    """
    if world_size > MAX_WORKERS:
        raise InvalidTicketError(
            f"{world_size} workers at one switch, which sums at most {MAX_WORKERS}"
        )
    bitmap = (1 << world_size) - 1
    lanes = 1 << max(0, slots.bit_length() - 2)
    widths = (index_bits(world_size, is_root=True),)
    paths = [path_of((each,), widths) for each in range(world_size)]
    owners = tuple(path >> _OWNER_SHIFT for path in paths) if modes.of(mode).has_shapes else ()
    return (TreePlace(job, switch, rank, paths[rank], bitmap, 0, lanes, owners=owners),)


def check_trees(
    who: str, trees: Sequence[TreePlace], lanes: int, *, rank: int, world_size: int
) -> None:
    """Raise InvalidTicketError unless the trees have all `lanes` between them; `who`: the job.

    `rank`, of `world_size`: whose places they are.
    """
    if not 1 <= len(trees) <= MAX_TREES:
        raise InvalidTicketError(f"{who}: {len(trees)} trees, 1 to {MAX_TREES} are dealt lanes")
    next_lane = 0
    for number, tree in enumerate(trees):
        where = f"{who}: tree {number}"
        for name, value, low, high in (
            ("job", tree.job, 0, 0xFFFF),
            ("udp_port", tree.peer.udp_port, 1, 0xFFFF),
            ("worker", tree.worker, 0, MAX_WORKERS - 1),
            ("path", tree.path, 0, (1 << PATH_BITS) - 1),
            ("expected_bitmap", tree.expected_bitmap, 1, 0xFFFFFFFF),
            ("first_lane", tree.first_lane, next_lane, next_lane),
            ("lanes", tree.lanes, 1, lanes - next_lane),
        ):
            if not low <= value <= high:
                must = f"{low}..{high}" if low != high else f"{low}"
                raise InvalidTicketError(f"{where}: {name} is {value}, must be {must}")
        _check_owners(where, tree, rank, world_size)
        next_lane += tree.lanes
    if next_lane != lanes:
        raise InvalidTicketError(
            f"{who}: its {len(trees)} trees have {next_lane} of {lanes} lanes between them"
        )


def _check_owners(where: str, tree: TreePlace, rank: int, world_size: int) -> None:
    if not tree.owners:
        return
    if len(tree.owners) != world_size:
        raise InvalidTicketError(
            f"{where}: {len(tree.owners)} owners, must be one for each of {world_size} ranks,"
            " or none"
        )
    wide = [owner for owner in tree.owners if not 0 <= owner < 1 << OWNER_BITS]
    if wide:
        raise InvalidTicketError(
            f"{where}: an owner is {wide[0]}, must be 0..{(1 << OWNER_BITS) - 1}"
        )
    if tree.owners[rank] << _OWNER_SHIFT != tree.path:
        raise InvalidTicketError(
            f"{where}: owner {tree.owners[rank]:#x} of rank {rank} is not of its path"
            f" {tree.path:#x}"
        )
