"""What passes over the links of two racks below a spine, reference switches all three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ina.protocol.codec import Header, encode
from ina.protocol.spec import NO_FLAGS, OWNER_BITS, UDP_PORT, Flag, Shape, path_mask, path_of
from ina.protocol.switch_model import Attachment, ModelJob, Parent, SwitchModel
from tests.worlds.virtual.exchange import BEGIN_S, JOB, SLOTS, STEP_S, VALUES, frame

SPINE, LEAVES = "10.0.255.254", ("10.0.1.254", "10.0.2.254")
HOSTS = ("10.0.1.1", "10.0.1.2", "10.0.2.1")
"""Of the ranks; the last has a rack to itself."""
PATHS = ((0, 0), (0, 1), (1, 0))
WIDTHS = (2, 1)
"""Bits of a path: two racks, and two ranks of one."""
EPOCH = 5
_HOST_PORT = 1024
_UPLINK = 9

Drop = Callable[[str, str], bool]
"""Whether a packet is lost on the link from one address to the other, behind the capture."""


def _port_of(address: str) -> int:
    return _HOST_PORT if address in HOSTS else UDP_PORT


def _at(port: int, address: str) -> Attachment:
    return Attachment(port, int(IPv4Address(address)), _port_of(address))


@dataclass
class Racks:
    """``frames``: each packet once, on whatever link, with where it came from and went."""

    frames: list[tuple[str, str, Ether]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.switches = {it: SwitchModel(64, VALUES) for it in (SPINE, *LEAVES)}
        children = {leaf: [it for it in HOSTS if it[:7] == leaf[:7]] for leaf in LEAVES}
        children[SPINE] = [*LEAVES]
        # By who receives and who sends: what it says to the receiver of where it is.
        self.seen_as = {
            (switch, child): _at(port, child)
            for switch, below in children.items()
            for port, child in enumerate(below)
        }
        for index, leaf in enumerate(LEAVES):
            up = _at(_UPLINK, SPINE)
            self.seen_as[leaf, SPINE] = up
            ways = (path_of((index, child), WIDTHS) for child in range(len(children[leaf])))
            parent = Parent(up, index, 1, path_mask(WIDTHS), tuple(ways))
            self._install(leaf, children[leaf], parent)
        self._install(SPINE, children[SPINE], None)

    def _install(self, switch: str, children: list[str], parent: Parent | None) -> None:
        places = tuple(self.seen_as[switch, child] for child in children)
        self.switches[switch].install(ModelJob(JOB, EPOCH, 8, SLOTS, places, None, parent))

    def contribute(
        self,
        rank: int,
        seq: int,
        flags: Flag = NO_FLAGS,
        lost: Drop = lambda *_: False,
        owner: int | None = None,
    ) -> None:
        """A rank's contribution, and all that follows from it. ``owner``: of the chunk, which all
        others scatter to that rank; None: it is a sum."""
        worker = PATHS[rank][-1]
        path, shape = path_of(PATHS[rank], WIDTHS), Shape.SUM
        if owner is not None:
            path, shape = path | path_of(PATHS[owner], WIDTHS) >> OWNER_BITS, Shape.SCATTER
        values = [] if rank == owner else [rank, 1]
        header = Header(
            flags=flags, job=JOB, epoch=EPOCH, worker=worker, slot=seq % SLOTS,
            value_count=len(values), seq=seq, contributors=1 << worker, shape=shape,
            path=path, copy=1 if flags & Flag.RESEND else 0,
        )  # fmt: skip
        leaf = LEAVES[PATHS[rank][0]]
        self._send(HOSTS[rank], leaf, encode(header, values), lost)

    def _send(self, source: str, to: str, payload: bytes, lost: Drop) -> None:
        packet = frame(source, _port_of(source), to, _port_of(to), payload)
        packet.time = BEGIN_S + len(self.frames) * STEP_S
        self.frames.append((source, to, packet))
        if to not in self.switches or lost(source, to):
            return
        for departure in self.switches[to].receive(self.seen_as[to, source], payload):
            out = encode(departure.header, departure.values)
            self._send(to, str(IPv4Address(departure.to.ipv4)), out, lost)

    def write(self, path: Path, *links: tuple[str, str]) -> Path:
        """A capture of these links, each named by its ends; none: of all."""
        seen = [
            sent
            for source, to, sent in self.frames
            if not links or (source, to) in links or (to, source) in links
        ]
        wrpcap(str(path), seen)
        return path
