"""A job that changes from mapping to mapping while it works; a test plays the controller."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ina.host import Handle, Session, WorkerOptions
from ina.host.udp import UdpLink
from ina.protocol.peer import Peer
from ina.protocol.spec import RESULTS_UDP_PORT
from ina.testing import numerics
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.fakes.udp_model import UdpModel
from tests.worlds.parts import INT32, random_parts

JOB = 7
DTYPES = (INT32, *numerics.FLOATS)
NEVER_NS = 60_000_000_000


def sessions_of(
    switch: UdpModel, count: int, slots: int, threads: list[int], **options: Any
) -> list[Session]:
    links = [UdpLink.open(Peer.at(switch.address), "127.0.0.1") for _ in range(count)]
    switch.install_ports(JOB, 1, [link.own.udp_port for link in links], slots=slots)
    for link in links if switch.group else ():
        link.listen(Peer.at((switch.group, RESULTS_UDP_PORT)))
    return [
        Session(
            direct_ticket("test", JOB, 1, rank, count, slots, switch.values, *switch.address),
            link,
            WorkerOptions(threads=threads[rank % len(threads)], **options),
        )
        for rank, link in enumerate(links)
    ]


class Tensors:
    """Tensors of all types, submitted by each rank in turn; some in place."""

    def __init__(self, sessions: Sequence[Session], values: int, seed: int) -> None:
        self._sessions, self._values, self._seed = sessions, values, seed
        self._rng = random.Random(seed)
        self._inputs: list[list[NDArray[Any]]] = []
        self._wanted: list[NDArray[Any]] = []
        self._ops: list[str] = []
        self._handles: list[list[Handle[NDArray[Any]]]] = [[] for _ in sessions]

    def submit(self, rank: int) -> None:
        number = len(self._handles[rank])
        if number == len(self._inputs):
            self._make(number)
        part = self._inputs[number][rank]
        out = part if number % 3 else None
        handle = self._sessions[rank].all_reduce(part, self._ops[number], out=out, async_op=True)
        self._handles[rank].append(handle)

    def submit_all(self, count: int) -> None:
        """Ranks come to them at different times."""
        due = [rank for rank in range(len(self._sessions)) for _ in range(count)]
        self._rng.shuffle(due)
        for rank in due:
            self.submit(rank)

    def submitted(self, rank: int) -> int:
        return len(self._handles[rank])

    def check(self, timeout_s: float = 60.0) -> None:
        """All that were submitted end with the sums that they have without any change."""
        for rank, handles in enumerate(self._handles):
            for number, handle in enumerate(handles):
                got = handle.wait(timeout_s)
                assert numerics.same_bits(got, self._wanted[number]), (rank, number)

    def _make(self, number: int) -> None:
        elems = self._rng.choice([0, 1, 40, 40, 72, 300, self._values * 70 + 1])
        parts = random_parts(
            DTYPES[number % 4], len(self._sessions), elems, self._seed + 31 * number
        )
        self._ops.append(("sum", "avg")[number % 2])
        self._wanted.append(numerics.all_reduce(parts, self._ops[-1], self._values))
        self._inputs.append(parts)


class Mapped:
    """Where the job is, at a switch that has room for two mappings."""

    def __init__(self, switch: UdpModel, sessions: Sequence[Session]) -> None:
        self.switch, self.sessions = switch, sessions
        self.epoch = sessions[0].ticket.epoch
        self.slots = sessions[0].ticket.slots
        self.first_slot = 0
        self._older: list[int] = []

    def begin(self, slots: int, first_slot: int | None = None) -> None:
        """Installs the new one and tells all ranks of it."""
        if first_slot is None:  # at the other end
            first_slot = 0 if self.first_slot else self.switch.slots - slots
        self._older.append(self.epoch)
        self.epoch, self.slots, self.first_slot = self.epoch + 1, slots, first_slot
        self.switch.install_beside(JOB, self.epoch, first_slot, slots)
        for session in self.sessions:
            self.tell(session)

    def tell(self, session: Session) -> None:
        (tree,) = session.ticket.trees
        lanes = 1 << (self.slots.bit_length() - 2)
        trees = (replace(tree, lanes=lanes),)
        ticket = replace(session.ticket, epoch=self.epoch, slots=self.slots, trees=trees)
        manner = session._core.manner
        session._transport.begin_remap(manner.config(ticket), 0, manner.choice(ticket))

    def end(self) -> None:
        """Once all have the older one's results."""
        for session in self.sessions:
            assert session._transport.wait_cut(NEVER_NS)
        self.switch.remove_older(JOB, self._older.pop())
        for session in self.sessions:
            session._transport.end_remap()

    def change(self, slots: int, order: Sequence[int], news_ns: int = 0) -> int:
        """All at once; ranks hear of the boundary in this order. Returns it."""
        self.begin(slots)
        first = self.sessions[0]._transport.reserve(news_ns)
        for rank in order:
            self.sessions[rank]._transport.cut_over(first, True)
        return first
