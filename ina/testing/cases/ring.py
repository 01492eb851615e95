"""A ring of workers behind one switch, of mode transparent: its rows, its frames.

Written beside :class:`ina.testing.wrapping.InRing`, and of nothing that this is made of: addresses
and queue pairs are as adapters have them, each worker's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ina.p4 import names
from ina.protocol.bth import Bth, Opcode
from ina.protocol.codec import encode
from ina.protocol.roce import RoceFrame, encode_frame
from ina.protocol.spec import NO_FLAGS, Flag, Kind
from ina.protocol.switch_model import EPOCH_BITS, Attachment
from ina.tables.values import AnyItem, Entry, Group
from ina.testing.case import Arrival
from ina.testing.cases.actors import Team, team, with_fields
from ina.testing.frames import SWITCH_MAC, PortFrame
from ina.testing.state import forward, job_entry, job_group, worker_mac
from ina.testing.wrapping import network_row

FIRST_QUEUE = 3
"""Number of a flow's first connection; any will do."""
_VIRTUAL_MAC = 0x0200_0000_0099
"""What workers take for the MAC address of each other."""
_PLACES = (Opcode.RC_SEND_FIRST, Opcode.RC_SEND_MIDDLE, Opcode.RC_SEND_LAST)


@dataclass(frozen=True)
class Ring:
    """A job's workers, each with a reliable connection to the next one."""

    them: Team
    order: tuple[int, ...]
    """The workers as they follow each other."""
    segments: int = 1
    """Packets of a message."""
    lane_bits: int = 0
    """Of a chunk's number, the lowest ones: which of a flow's connections it is on."""

    @property
    def lanes(self) -> range:
        """The connections of each flow."""
        return range(1 << self.lane_bits)

    def next(self, worker: int) -> int:
        """Whom a worker sends to."""
        return self.order[(self.order.index(worker) + 1) % len(self.order)]

    def before(self, worker: int) -> int:
        """Who sends to a worker."""
        return self.order[self.order.index(worker) - 1]

    def at(self, worker: int) -> Attachment:
        """Where a worker is."""
        return self.them.job.workers[worker]

    @staticmethod
    def qp(worker: int, lane: int = 0, *, sends: bool) -> int:
        """A worker's queue pair: to the next one, or from the one before."""
        return 0x00_0100 + 0x10 * worker + (8 if sends else 0) + lane

    @staticmethod
    def first_psn(worker: int, lane: int = 0) -> int:
        """Of the first chunk, on the worker's flow: some wrap around early."""
        return 0xFF_FFFE - 1001 * worker + 17 * lane & 0xFF_FFFF

    # -- rows --

    @property
    def addresses(self) -> tuple[AnyItem, ...]:
        """The network that theirs are in."""
        return (network_row(self.at(0).ipv4 & ~0xFF, 24),)

    @property
    def state(self) -> tuple[AnyItem, ...]:
        """What the controller installs, the members last; without the addresses."""
        return (
            self.group,
            *(self.receiver(it, lane) for it in self.order for lane in self.lanes),
            *(self.reply(it, lane) for it in self.order for lane in self.lanes),
            job_entry(self.them.job),
            *(self.member(it, lane) for it in self.order for lane in self.lanes),
        )

    @property
    def all_rows(self) -> tuple[AnyItem, ...]:
        """Those, with the addresses."""
        return (*self.addresses, *self.state)

    @property
    def ways(self) -> tuple[AnyItem, ...]:
        """Ordinary forwarding between the workers."""
        return tuple(forward(worker_mac(self.at(it)), self.at(it).port) for it in self.order)

    @property
    def group(self) -> Group:
        """A copy on each flow."""
        copies = tuple((self.at(self.next(it)).port, it + 1) for it in self.order)
        return Group(job_group(self.them.job.number), copies)

    def member(self, worker: int, lane: int = 0) -> Entry:
        """Lets a flow's packets in."""
        job, to = self.them.job, self.next(worker)
        match = (
            ("ingress_port", self.at(worker).port),
            ("src_addr", self.at(worker).ipv4),
            ("dst_addr", self.at(to).ipv4),
            ("dest_qp", self.qp(to, lane, sends=False)),
            ("job", job.number),
            ("epoch", job.epoch % (1 << EPOCH_BITS)),
            ("worker", worker),
            ("kind", int(Kind.CONTRIBUTION)),
        )
        port, queue = ("next_port", self.at(to).port), ("queue", FIRST_QUEUE + lane)
        params = (("worker_bit", 1 << worker), port, queue)
        return Entry(names.MEMBERS, match, names.ADMIT_MEMBER, params)

    def receiver(self, worker: int, lane: int = 0) -> Entry:
        """How a flow's packets leave."""
        to = self.next(worker)
        params = (
            ("src_mac", SWITCH_MAC),
            ("src_addr", self.at(worker).ipv4),
            ("dst_mac", worker_mac(self.at(to))),
            ("dst_addr", self.at(to).ipv4),
            ("src_port", self._source_port(worker)),
            ("dest_qp", self.qp(to, lane, sends=False)),
            ("first_psn", self.first_psn(worker, lane)),
            ("lane_shift", self.lane_bits),
            ("segment_mask", self.segments - 1),
            ("next_worker", to),
        )
        queue = ("queue", FIRST_QUEUE + lane)
        match = (("job", self.them.job.number), ("worker", worker), queue)
        return Entry(names.RECEIVERS, match, names.ADDRESS, params)

    def reply(self, worker: int, lane: int = 0) -> Entry:
        """Lets through what the next worker says to this one."""
        to = self.next(worker)
        match = (
            ("ingress_port", self.at(to).port),
            ("src_addr", self.at(to).ipv4),
            ("dst_addr", self.at(worker).ipv4),
            ("dest_qp", self.qp(worker, lane, sends=True)),
        )
        params = (
            ("port", self.at(worker).port),
            ("src_mac", SWITCH_MAC),
            ("dst_mac", worker_mac(self.at(worker))),
            ("job", self.them.job.number),
        )
        return Entry(names.REPLIES, match, names.REPLY, params)

    # -- frames --

    def bth(self, worker: int, seq: int) -> Bth:
        """Of a chunk's packet on a worker's flow."""
        place = seq % self.segments
        opcode = _PLACES[0 if place == 0 else 2 if place == self.segments - 1 else 1]
        opcode = Opcode.RC_SEND_ONLY if self.segments == 1 else opcode
        lane, number = seq % len(self.lanes), seq >> self.lane_bits
        return Bth(
            opcode,
            self.qp(self.next(worker), lane, sends=False),
            (self.first_psn(worker, lane) + number) % (1 << 24),
            ack_request=int(place == self.segments - 1),
        )

    def frame(
        self, worker: int, seq: int, values: Sequence[int] = (), /, **fields: Any
    ) -> RoceFrame:
        """What a worker's adapter sends; no values: exponents only. ``fields``: of ina's header."""
        to = self.next(worker)
        payload = encode(self.them.header(worker, seq, len(values)), list(values))
        return RoceFrame(
            self.bth(worker, seq),
            with_fields(payload, **fields),
            self.at(worker).ipv4,
            self.at(to).ipv4,
            src_udp=self._source_port(worker) ^ 0x55,
            src_mac=worker_mac(self.at(worker)),
            dst_mac=SWITCH_MAC,
        )

    def sends(self, worker: int, seq: int, values: Sequence[int] = (), /, **fields: Any) -> Arrival:
        """It arrives; nothing leaves, unless :meth:`Arrival.gives` says."""
        frame = self.frame(worker, seq, values, **fields)
        return Arrival(self.at(worker).port, encode_frame(frame))

    def result(
        self, worker: int, seq: int, values: Sequence[int] = (), tos: int = 2, **fields: Any
    ) -> PortFrame:
        """The sum on a worker's flow, in place of what it has sent: to the next one."""
        to = self.next(worker)
        told = {"kind": Kind.RESULT, "contributors": self.them.job.all_bits, "worker": to, **fields}
        payload = encode(self.them.header(worker, seq, len(values), **told), list(values))
        frame = RoceFrame(
            self.bth(worker, seq),
            payload,
            self.at(worker).ipv4,
            self.at(to).ipv4,
            src_udp=self._source_port(worker),
            src_mac=SWITCH_MAC,
            dst_mac=worker_mac(self.at(to)),
            tos=tos,
        )
        return self.at(to).port, encode_frame(frame)

    def replay(self, worker: int, seq: int, values: Sequence[int] = (), **fields: Any) -> PortFrame:
        """The finished sum on the flow of who has sent again."""
        flags = fields.pop("flags", NO_FLAGS) | Flag.REPLAY
        return self.result(worker, seq, values, flags=flags, **fields)

    def results(self, seq: int, values: Sequence[int] = (), **fields: Any) -> tuple[PortFrame, ...]:
        """On each flow."""
        return tuple(self.result(it, seq, values, **fields) for it in self.order)

    def round(self, seq: int = 0) -> tuple[Arrival, ...]:
        """All send, in the order of their numbers; the sum is on all flows."""
        *first, last = sorted(self.order)
        ones, sums = self.them.ones(), [len(self.order)] * self.them.values
        return (
            *(self.sends(it, seq, ones) for it in first),
            self.sends(last, seq, ones).gives(*self.results(seq, sums)),
        )

    def says(
        self, worker: int, opcode: int, further: bytes, psn: int = 0, **fields: Any
    ) -> RoceFrame:
        """What the worker behind this one says to it: ``further`` follows BTH."""
        to = self.next(worker)
        frame = RoceFrame(
            Bth(opcode, self.qp(worker, sends=True), psn),
            further,
            self.at(to).ipv4,
            self.at(worker).ipv4,
            src_udp=self._source_port(worker),
            src_mac=worker_mac(self.at(to)),
            dst_mac=_VIRTUAL_MAC,
        )
        return replace(frame, **fields)

    def passed_on(self, worker: int, data: bytes) -> PortFrame:
        """Such a frame, to the worker: no bit behind its MAC addresses is changed."""
        macs = worker_mac(self.at(worker)).to_bytes(6, "big") + SWITCH_MAC.to_bytes(6, "big")
        return self.at(worker).port, macs + data[12:]

    @staticmethod
    def _source_port(worker: int) -> int:
        return 0xC000 | 0x111 * worker & 0x3FFF


def ring(
    values: int,
    size: int = 3,
    *,
    order: Sequence[int] | None = None,
    segments: int = 1,
    lane_bits: int = 0,
    **of_team: Any,
) -> Ring:
    """Of ``size`` workers, as they are numbered, or in another ``order``."""
    them = team(values, size, **of_team)
    return Ring(them, tuple(range(size) if order is None else order), segments, lane_bits)
