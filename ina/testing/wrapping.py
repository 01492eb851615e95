"""The conformance cases, which are written of UDP, said of other packets: another encapsulation.

A case is state, frames and counts, so it can be said anew without a look at what it is about: each
frame of ina's gets what is around its packet there, with what is wrong of it left wrong; each row
its other keys and parameters; each count of bytes what the packets have more.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from msgspec import structs

from ina.p4 import names
from ina.protocol.bth import (
    BTH_BYTES,
    RC_SENDS,
    REPLIES,
    ROCE_UDP_PORT,
    Bth,
    Opcode,
    encode_bth,
)
from ina.protocol.icrc import ICRC_BYTES, icrc
from ina.protocol.roce import ipv4_checksum, psn_of
from ina.protocol.spec import HEADER_BYTES, UDP_PORT, Flag
from ina.protocol.switch_model import Attachment
from ina.tables.values import AnyItem, CounterRef, Entry, EntryCounter, Group, lpm_text
from ina.testing.case import Arrival, Case, ItemChange, Step, powered_on
from ina.testing.frames import (
    CE,
    DONT_FRAGMENT,
    ETHERNET_BYTES,
    IPV4,
    PAYLOAD_OFFSET,
    SWITCH_IPV4,
    SWITCH_MAC,
    Frame,
    PortFrame,
    is_udp,
    parse,
)
from ina.testing.state import job_group, receiver_mac, worker_mac

_SRC_UDP, _DST_UDP, _UDP_LENGTH, _UDP_CHECKSUM = 34, 36, 38, 40
_IP_LENGTH, _IP_CHECKSUM = 16, 24
_IP_NUMBER = slice(18, 22)  # identification, flags, the fragment's offset
_SEQ = slice(PAYLOAD_OFFSET + 12, PAYLOAD_OFFSET + 16)
_OF_FORWARDING = (names.DMAC, names.IPV4_LPM)
_WHOLE, _MENDED = 0.95, 0.5  # of random packets: not damaged; of those, with a right ICRC
QUEUE = 5
"""Which of each worker's queue pairs the cases have; any number will do."""


class Wrapping(Protocol):
    """How frames, rows and counts are said anew."""

    extra_bytes: int
    """That each of ina's frames has more."""
    rows: tuple[AnyItem, ...]
    """That there are besides, always."""

    def of(self, items: Iterable[AnyItem]) -> Wrapping:
        """The one for a case or run with these rows."""
        ...

    def says(self, case: Case) -> bool:
        """Whether it can be said: what happens to other packets in it does not depend on UDP."""
        ...

    def arriving(self, data: bytes) -> bytes:
        """A frame to the switch."""
        ...

    def leaving(self, port: int, data: bytes, arrived: bytes) -> PortFrame:
        """A frame that leaves because of another; both as they are of UDP."""
        ...

    def item(self, item: AnyItem) -> AnyItem:
        """A row, or what else is written."""
        ...

    def opened(self, data: bytes) -> bytes:
        """A frame that has left, as UDP has it up to ina's packet: nobody looks at its lengths."""
        ...

    def without_values(self, data: bytes) -> bytes:
        """An arriving frame with zeros in place of values, and what is wrong with it left wrong."""
        ...

    def damaged(self, rng: random.Random, data: bytes) -> bytes:
        """An arriving frame, now and then with damage that frames of UDP cannot have."""
        ...


class AsItIs:
    """UDP."""

    extra_bytes = 0
    rows: tuple[AnyItem, ...] = ()

    def of(self, items: Iterable[AnyItem]) -> Wrapping:
        """The same."""
        return self

    def says(self, case: Case) -> bool:
        """All."""
        return True

    def arriving(self, data: bytes) -> bytes:
        """The same."""
        return data

    def leaving(self, port: int, data: bytes, arrived: bytes) -> PortFrame:
        """The same."""
        return port, data

    def item(self, item: AnyItem) -> AnyItem:
        """The same."""
        return item

    def opened(self, data: bytes) -> bytes:
        """The same."""
        return data

    def without_values(self, data: bytes) -> bytes:
        """Zeros behind the header."""
        return _cleared(data, PAYLOAD_OFFSET)

    def damaged(self, rng: random.Random, data: bytes) -> bytes:
        """There is none."""
        return data


class InSends:
    """RoCEv2: a UDP port of the cases is a queue pair here, the switch's and the worker's own."""

    extra_bytes = BTH_BYTES + ICRC_BYTES
    rows: tuple[AnyItem, ...] = ()

    def of(self, items: Iterable[AnyItem]) -> Wrapping:
        """The same."""
        return self

    def says(self, case: Case) -> bool:
        """All."""
        return True

    @staticmethod
    def switch_qp(udp_port: int) -> int:
        """The queue pair of the switch's that who has this port sends to."""
        return 0x80_0000 | udp_port

    @staticmethod
    def worker_qp(udp_port: int) -> int:
        """The queue pair of a worker's that gets results."""
        return 0x01_0000 | udp_port

    @staticmethod
    def flow(udp_port: int) -> int:
        """The UDP source port of those results."""
        return 0xC000 | udp_port & 0x3FFF

    def arriving(self, data: bytes) -> bytes:
        """A SEND to the sender's queue pair; its source port stays, as any would do."""
        if not is_udp(data) or parse(data).dst_udp != UDP_PORT:
            return data
        frame = parse(data)
        bth = Bth(Opcode.UC_SEND_ONLY, self.switch_qp(frame.src_udp), _psn(data))
        return wrapped(data, bth, frame.src_udp)

    def leaving(self, port: int, data: bytes, arrived: bytes) -> PortFrame:
        """A SEND to the receiver's queue pair, or what has only passed through."""
        if not (is_udp(data) and is_udp(arrived)):
            return port, data
        frame, cause = parse(data), parse(arrived)
        if cause.dst_udp != UDP_PORT:
            return port, data
        if frame.src_ipv4 == cause.src_ipv4:
            return port, self.arriving(data)
        return self.result(port, frame)

    def result(self, port: int, frame: Frame) -> PortFrame:
        """What answers a contribution."""
        data = frame.build()
        bth = Bth(Opcode.UC_SEND_ONLY, self.worker_qp(frame.dst_udp), _psn(data))
        return port, wrapped(_unnumbered(data), bth, self.flow(frame.dst_udp))

    def item(self, item: AnyItem) -> AnyItem:
        """Members and receivers are of queue pairs."""
        if not isinstance(item, Entry):
            return item
        match, params = dict(item.match), dict(item.params)
        if item.table == names.MEMBERS:
            port = int(match["src_port"])
            renamed = tuple(
                ("dest_qp", self.switch_qp(port)) if name == "src_port" else (name, value)
                for name, value in item.match
            )
            return structs.replace(item, match=renamed, params=(*item.params, ("queue", QUEUE)))
        if item.table == names.RECEIVERS:
            port = params.pop("dst_port")
            for of_shapes in ("way", "way_mask", "strips_on", "strips_off"):
                params.pop(of_shapes, None)  # SUM alone has packets in SENDs
            params |= {"src_port": self.flow(port), "dest_qp": self.worker_qp(port)}
            params["segment_mask"] = 0
            return structs.replace(
                item, match=(*item.match, ("queue", QUEUE)), params=tuple(params.items())
            )
        return item

    def opened(self, data: bytes) -> bytes:
        """Without BTH and ICRC."""
        if not _is_roce(data):
            return data
        return data[:PAYLOAD_OFFSET] + data[PAYLOAD_OFFSET + BTH_BYTES : -ICRC_BYTES]

    def without_values(self, data: bytes) -> bytes:
        """Zeros behind the header, and as much wrong with the ICRC as there was."""
        if not _is_roce(data) or len(data) < PAYLOAD_OFFSET + BTH_BYTES + ICRC_BYTES:
            return _cleared(data, PAYLOAD_OFFSET)
        covered, found = data[:-ICRC_BYTES], data[-ICRC_BYTES:]
        anew = _cleared(covered, PAYLOAD_OFFSET + BTH_BYTES)
        before, now = (icrc(it[ETHERNET_BYTES:]) for it in (covered, anew))
        return anew + bytes(a ^ b ^ c for a, b, c in zip(found, before, now, strict=True))

    def damaged(self, rng: random.Random, data: bytes) -> bytes:
        """Any bit behind the IP header: with the ICRC made right again, or as it was."""
        if not _is_roce(data) or rng.random() < _WHOLE:
            return data
        flipped = bytearray(data)
        bth_end = PAYLOAD_OFFSET + BTH_BYTES
        end = rng.choice((len(data), min(bth_end, len(data))))
        flipped[rng.randrange(IPV4.stop, end)] ^= 1 << rng.randrange(8)
        if rng.random() < _MENDED and len(data) >= bth_end + ICRC_BYTES:
            return sealed(bytes(flipped[:-ICRC_BYTES]))
        return bytes(flipped)


class InRing(InSends):
    """RoCEv2 round a ring: worker w sends to worker w + 1, and the last one to the first.

    A worker's UDP port of the cases is its flow's: of the queue pair that this leads to.
    """

    def __init__(self, rings: Mapping[int, Sequence[Attachment]] = MappingProxyType({})) -> None:
        """``rings``: the workers of each job, by its number."""
        self._rings = rings
        self.rows = (
            *(Entry(names.BYSTANDERS, (("dst_addr", half),), names.PASS) for half in _ALL),
            *(_reply_row(job, at) for job, them in rings.items() for at in them if job % 2 == 0),
        )

    def of(self, items: Iterable[AnyItem]) -> Wrapping:
        """With the rings that the rows of members tell of."""
        found: dict[int, dict[int, Attachment]] = {}
        for item in items:
            if isinstance(item, Entry) and item.table == names.MEMBERS:
                at = Attachment(*map(item.exact, ("ingress_port", "src_addr", "src_port")))
                found.setdefault(item.exact("job"), {})[item.exact("worker")] = at
        return InRing({job: [them[it] for it in sorted(them)] for job, them in found.items()})

    def says(self, case: Case) -> bool:
        """Not what is told of what is no RoCEv2, and of rings that change."""
        return case.name not in NOT_OF_RINGS

    def next(self, job: int, worker: int, steps: int = 1) -> int:
        """The worker that is so many further on."""
        return (worker + steps) % len(self._rings[job])

    @staticmethod
    def flow_qp(udp_port: int) -> int:
        """The queue pair to which the worker with this port sends."""
        return 0x02_0000 | udp_port

    def arriving(self, data: bytes) -> bytes:
        """A SEND to the next worker, which the switch's address stands for."""
        if not is_udp(data) or parse(data).dst_udp != UDP_PORT:
            return data
        frame = parse(data)
        return wrapped(data, self._bth(frame.src_udp, data), frame.src_udp)

    def result(self, port: int, frame: Frame) -> PortFrame:
        """On a flow: the one to whom it is for, or of a replay, the one of who asked."""
        job, flags = int.from_bytes(frame.payload[2:4], "big"), frame.payload[1]
        asks_or_gets = frame.payload[6]
        is_replay = bool(flags & Flag.REPLAY)
        to = self.next(job, asks_or_gets) if is_replay else asks_or_gets
        sender, receiver = self._rings[job][self.next(job, to, -1)], self._rings[job][to]
        marked = frame.tos | CE if flags & Flag.ECN and frame.ecn else frame.tos
        on = replace(
            frame,
            payload=frame.payload[:6] + bytes([to]) + frame.payload[7:],
            dst_mac=receiver_mac(receiver),
            dst_ipv4=receiver.ipv4,
            src_ipv4=sender.ipv4,
            tos=marked,
            checksum=None,
        ).build()
        bth = self._bth(sender.udp_port, on)
        return receiver.port if is_replay else port, wrapped(
            _unnumbered(on), bth, self.flow(sender.udp_port)
        )

    def item(self, item: AnyItem) -> AnyItem:
        """Members and receivers are flows; a copy is of the flow to whom it was for."""
        if isinstance(item, Group):
            return self._group(item)
        if isinstance(item, Entry) and item.table == names.OWN_ADDRESSES:
            return network_row(item.exact("dst_addr"), 32)
        if not isinstance(item, Entry) or item.table not in (names.MEMBERS, names.RECEIVERS):
            return item
        job, worker = item.exact("job"), item.exact("worker")
        receiver = self._rings[job][self.next(job, worker)]
        if item.table == names.MEMBERS:
            match = dict(item.match)
            flow = ("dst_addr", SWITCH_IPV4), ("dest_qp", self.flow_qp(item.exact("src_port")))
            first, rest = ("ingress_port", "src_addr"), ("job", "epoch", "worker", "kind")
            anew = *((it, match[it]) for it in first), *flow, *((it, match[it]) for it in rest)
            params = *item.params, ("next_port", receiver.port), ("queue", QUEUE)
            return structs.replace(item, match=anew, params=params)
        sender = self._rings[job][worker]
        params = (
            ("src_mac", SWITCH_MAC),
            ("src_addr", sender.ipv4),
            ("dst_mac", receiver_mac(receiver)),
            ("dst_addr", receiver.ipv4),
            ("src_port", self.flow(sender.udp_port)),
            ("dest_qp", self.flow_qp(sender.udp_port)),
            ("first_psn", FIRST_PSN),
            ("lane_shift", 0),
            ("segment_mask", 0),
            ("next_worker", self.next(job, worker)),
        )
        return structs.replace(item, match=(*item.match, ("queue", QUEUE)), params=params)

    def damaged(self, rng: random.Random, data: bytes) -> bytes:
        """Perhaps its sender's acknowledgement, which is let through in half of the jobs."""
        if not _is_roce(data) or rng.random() < _WHOLE:
            return super().damaged(rng, data)
        opcode = rng.choice((*REPLIES, *RC_SENDS))
        return sealed(
            data[:PAYLOAD_OFFSET] + bytes([opcode]) + data[PAYLOAD_OFFSET + 1 : -ICRC_BYTES]
        )

    def opened(self, data: bytes) -> bytes:
        """As if a replay were for who asked, which lets the traffic go on."""
        opened = super().opened(data)
        at = PAYLOAD_OFFSET + 6
        if opened == data or len(opened) <= at:
            return opened
        job = int.from_bytes(opened[PAYLOAD_OFFSET + 2 : PAYLOAD_OFFSET + 4], "big")
        if job not in self._rings or not opened[PAYLOAD_OFFSET + 1] & Flag.REPLAY:
            return opened
        asks = self.next(job, opened[at], -1)
        return opened[:at] + bytes([asks]) + opened[at + 1 :]

    def _group(self, group: Group) -> Group:
        job = next((it for it in self._rings if job_group(it) == group.number), None)
        if job is None:
            return group
        copies = tuple((port, self.next(job, rid - 1, -1) + 1) for port, rid in group.replicas)
        return Group(group.number, copies)

    def _bth(self, udp_port: int, data: bytes) -> Bth:
        psn = psn_of(_psn(data), FIRST_PSN)
        return Bth(Opcode.RC_SEND_ONLY, self.flow_qp(udp_port), psn, ack_request=1)


def _reply_row(job: int, at: Attachment) -> Entry:
    """As if a worker replied to who it sends to."""
    match = (
        ("ingress_port", at.port),
        ("src_addr", at.ipv4),
        ("dst_addr", SWITCH_IPV4),
        ("dest_qp", InRing.flow_qp(at.udp_port)),
    )
    params = (("port", at.port), ("src_mac", SWITCH_MAC), ("dst_mac", worker_mac(at)), ("job", job))
    return Entry(names.REPLIES, match, names.REPLY, params)


_ALL = ("0.0.0.0/1", "128.0.0.0/1")
FIRST_PSN = 0xFF_FF00
"""Of chunk 0 on all flows of the cases said of rings; any number will do."""

NOT_OF_RINGS = frozenset(
    {
        "stranger/to-any-address-of-the-switch",
        "lifecycle/receiver-removed",
        "lifecycle/moved-and-grown",
        "malformed/cut-to-14-to-41",
        "ordinary/later-fragment",
        "ordinary/ip-options",
        "ordinary/ip-version-5",
    }
)
"""Cases of pool that have others in their place: of which worker gets what, of unreadable ports."""

WRAPPINGS: Mapping[str, Wrapping] = {"udp": AsItIs(), "rocev2": InSends(), "ring": InRing()}
"""By the name that modes have for it (``Mode.framing``)."""


def network_row(address: int, bits: int) -> Entry:
    """A network whose addresses are the switch's: of rings."""
    match = (("dst_addr", lpm_text(address, bits, is_ipv4=True)),)
    return Entry(names.OWN_ADDRESSES, match, names.OURS)


def said_of(case: Case, wrapping: Wrapping) -> Case:
    """The case, of other packets."""
    if wrapping.extra_bytes == 0:
        return case
    changes = [step for step in case.steps if isinstance(step, ItemChange)]
    wrapping = wrapping.of([*case.state, *(item for it in changes for item in it.insert)])
    return replace(
        case,
        state=(*map(wrapping.item, powered_on(case)), *wrapping.rows),
        steps=tuple(_step(step, wrapping) for step in case.steps),
        counts={
            _ref(ref, wrapping): _count(ref, count, wrapping) for ref, count in case.counts.items()
        },
    )


def wrapped(data: bytes, bth: Bth, src_udp: int) -> bytes:
    """A frame to UDP's port with BTH and ICRC around its payload, of whatever length it is.

    The lengths that IP and UDP say grow alike, and the IP checksum is as right as it was.
    """
    head, payload = bytearray(data[:PAYLOAD_OFFSET]), data[PAYLOAD_OFFSET:]
    was = int.from_bytes(head[_IP_CHECKSUM : _IP_CHECKSUM + 2], "big")
    was_right = was == ipv4_checksum(head[IPV4])
    for at in (_IP_LENGTH, _UDP_LENGTH):
        said = int.from_bytes(head[at : at + 2], "big") + BTH_BYTES + ICRC_BYTES
        head[at : at + 2] = (said % 0x10000).to_bytes(2, "big")
    right = ipv4_checksum(head[IPV4])
    now = right if was_right else was if was != right else right ^ 1
    head[_IP_CHECKSUM : _IP_CHECKSUM + 2] = now.to_bytes(2, "big")
    head[_SRC_UDP : _SRC_UDP + 2] = src_udp.to_bytes(2, "big")
    head[_DST_UDP : _DST_UDP + 2] = ROCE_UDP_PORT.to_bytes(2, "big")
    head[_UDP_CHECKSUM : _UDP_CHECKSUM + 2] = bytes(2)
    return sealed(bytes(head) + encode_bth(bth) + payload)


def _unnumbered(data: bytes) -> bytes:
    """With the IP header that all have which the switch addresses."""
    head, rest = bytearray(data[:PAYLOAD_OFFSET]), data[PAYLOAD_OFFSET:]
    head[_IP_NUMBER] = struct.pack(">HH", 0, DONT_FRAGMENT)
    head[_IP_CHECKSUM : _IP_CHECKSUM + 2] = ipv4_checksum(head[IPV4]).to_bytes(2, "big")
    return bytes(head) + rest


def sealed(data: bytes) -> bytes:
    """A frame with the ICRC that it lacks."""
    return data + icrc(data[ETHERNET_BYTES:])


def _is_roce(data: bytes) -> bool:
    return is_udp(data) and parse(data).dst_udp == ROCE_UDP_PORT


def _cleared(data: bytes, payload_offset: int) -> bytes:
    """With zeros behind the header at the begin of a payload."""
    return data[: payload_offset + HEADER_BYTES].ljust(len(data), b"\0")


def _psn(data: bytes) -> int:
    """That of the chunk, if the frame is long enough to say it."""
    return int.from_bytes(data[_SEQ], "big") & 0xFF_FFFF


def _step(step: Step, wrapping: Wrapping) -> Step:
    if isinstance(step, ItemChange):
        delete, insert = (tuple(map(wrapping.item, it)) for it in (step.delete, step.insert))
        return ItemChange(delete, insert, step.modify)
    out = tuple(wrapping.leaving(port, data, step.frame) for port, data in step.out)
    return Arrival(step.port, wrapping.arriving(step.frame), out)


def _ref(ref: CounterRef, wrapping: Wrapping) -> CounterRef:
    if not isinstance(ref, EntryCounter) or ref.table in _OF_FORWARDING:
        return ref
    params = (("dst_port", 0),) if ref.table == names.RECEIVERS else ()
    anew = wrapping.item(Entry(ref.table, ref.match, "", params))
    assert isinstance(anew, Entry)
    return structs.replace(ref, match=anew.match)


def _count(
    ref: CounterRef, count: int | tuple[int, int], wrapping: Wrapping
) -> int | tuple[int, int]:
    if isinstance(count, int) or (isinstance(ref, EntryCounter) and ref.table in _OF_FORWARDING):
        return count
    packets, size_bytes = count
    return packets, size_bytes + packets * wrapping.extra_bytes
