"""The conformance cases, which are written of UDP, said of other packets: another encapsulation.

A case is state, frames and counts, so it can be said anew without a look at what it is about: each
frame of ina's gets what is around its packet there, with what is wrong of it left wrong; each row
its other keys and parameters; each count of bytes what the packets have more.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from msgspec import structs

from ina.p4 import names
from ina.protocol.bth import BTH_BYTES, ROCE_UDP_PORT, Bth, Opcode, encode_bth
from ina.protocol.icrc import ICRC_BYTES, icrc
from ina.protocol.roce import ipv4_checksum
from ina.protocol.spec import UDP_PORT
from ina.tables.values import AnyItem, CounterRef, Entry, EntryCounter
from ina.testing.case import Arrival, Case, ItemChange, Step
from ina.testing.frames import ETHERNET_BYTES, IPV4, PAYLOAD_OFFSET, is_udp, parse

_SRC_UDP, _DST_UDP, _UDP_LENGTH, _UDP_CHECKSUM = 34, 36, 38, 40
_IP_LENGTH, _IP_CHECKSUM = 16, 24
_SEQ = slice(PAYLOAD_OFFSET + 12, PAYLOAD_OFFSET + 16)
_OF_FORWARDING = (names.DMAC, names.IPV4_LPM)
_WHOLE, _MENDED = 0.95, 0.5  # of random packets: not damaged; of those, with a right ICRC
QUEUE = 5
"""Which of each worker's queue pairs the cases have; any number will do."""


class Wrapping(Protocol):
    """How frames, rows and counts are said anew."""

    extra_bytes: int
    """That each of ina's frames has more."""

    def arriving(self, data: bytes) -> bytes:
        """A frame to the switch."""
        ...

    def leaving(self, data: bytes, arrived: bytes) -> bytes:
        """A frame that leaves because of another; both as they are of UDP."""
        ...

    def item(self, item: AnyItem) -> AnyItem:
        """A row, or what else is written."""
        ...

    def opened(self, data: bytes) -> bytes:
        """A frame that has left, as UDP has it up to ina's packet: nobody looks at its lengths."""
        ...

    def damaged(self, rng: random.Random, data: bytes) -> bytes:
        """An arriving frame, now and then with damage that frames of UDP cannot have."""
        ...


class AsItIs:
    """UDP."""

    extra_bytes = 0

    def arriving(self, data: bytes) -> bytes:
        """The same."""
        return data

    def leaving(self, data: bytes, arrived: bytes) -> bytes:
        """The same."""
        return data

    def item(self, item: AnyItem) -> AnyItem:
        """The same."""
        return item

    def opened(self, data: bytes) -> bytes:
        """The same."""
        return data

    def damaged(self, rng: random.Random, data: bytes) -> bytes:
        """There is none."""
        return data


class InSends:
    """RoCEv2: a UDP port of the cases is a queue pair here, the switch's and the worker's own."""

    extra_bytes = BTH_BYTES + ICRC_BYTES

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

    def leaving(self, data: bytes, arrived: bytes) -> bytes:
        """A SEND to the receiver's queue pair, or what has only passed through."""
        if not (is_udp(data) and is_udp(arrived)):
            return data
        frame, cause = parse(data), parse(arrived)
        if cause.dst_udp != UDP_PORT:
            return data
        if frame.src_ipv4 == cause.src_ipv4:
            return self.arriving(data)
        bth = Bth(Opcode.UC_SEND_ONLY, self.worker_qp(frame.dst_udp), _psn(data))
        return wrapped(data, bth, self.flow(frame.dst_udp))

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
            params |= {"src_port": self.flow(port), "dest_qp": self.worker_qp(port)}
            params["segment_mask"] = 0
            return structs.replace(
                item, match=(*item.match, ("queue", QUEUE)), params=tuple(params.items())
            )
        return item

    def opened(self, data: bytes) -> bytes:
        """Without BTH and ICRC."""
        if not is_udp(data) or parse(data).dst_udp != ROCE_UDP_PORT:
            return data
        return data[:PAYLOAD_OFFSET] + data[PAYLOAD_OFFSET + BTH_BYTES : -ICRC_BYTES]

    def damaged(self, rng: random.Random, data: bytes) -> bytes:
        """Any bit behind the IP header: with the ICRC made right again, or as it was."""
        if not is_udp(data) or parse(data).dst_udp != ROCE_UDP_PORT or rng.random() < _WHOLE:
            return data
        flipped = bytearray(data)
        bth_end = PAYLOAD_OFFSET + BTH_BYTES
        end = rng.choice((len(data), min(bth_end, len(data))))
        flipped[rng.randrange(IPV4.stop, end)] ^= 1 << rng.randrange(8)
        if rng.random() < _MENDED and len(data) >= bth_end + ICRC_BYTES:
            return sealed(bytes(flipped[:-ICRC_BYTES]))
        return bytes(flipped)


WRAPPINGS: Mapping[str, Wrapping] = {"udp": AsItIs(), "rocev2": InSends()}
"""By the name that modes have for it (``Mode.framing``)."""


def said_of(case: Case, wrapping: Wrapping) -> Case:
    """The case, of other packets."""
    if wrapping.extra_bytes == 0:
        return case
    return replace(
        case,
        state=tuple(map(wrapping.item, case.state)),
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


def sealed(data: bytes) -> bytes:
    """A frame with the ICRC that it lacks."""
    return data + icrc(data[ETHERNET_BYTES:])


def _psn(data: bytes) -> int:
    """That of the chunk, if the frame is long enough to say it."""
    return int.from_bytes(data[_SEQ], "big") & 0xFF_FFFF


def _step(step: Step, wrapping: Wrapping) -> Step:
    if isinstance(step, ItemChange):
        delete, insert = (tuple(map(wrapping.item, it)) for it in (step.delete, step.insert))
        return ItemChange(delete, insert, step.modify)
    out = tuple((port, wrapping.leaving(data, step.frame)) for port, data in step.out)
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
