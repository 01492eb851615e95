"""What the reference's packets have around ina's header and values: UDP alone, or RoCEv2's SENDs,
to the switch or to the next worker of a ring.

The reference switch (:mod:`ina.testing.model_device`) has one object of :class:`Framing`, by the
name that its mode has for it, and looks into no header in front of ina's but through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ina.p4 import names
from ina.protocol.bth import (
    BTH_BYTES,
    DEFAULT_PKEY,
    RC_SENDS,
    REPLIES,
    ROCE_UDP_PORT,
    UC_SENDS,
    Bth,
    Opcode,
    decode_bth,
    encode_bth,
)
from ina.protocol.codec import Header
from ina.protocol.icrc import ICRC_BYTES, icrc
from ina.protocol.roce import DROP_ICRC, RC, opcode_of, psn_of
from ina.protocol.spec import UDP_PORT, Flag
from ina.tables.values import Entry
from ina.testing.frames import (
    CE,
    DONT_FRAGMENT,
    ETHERNET_BYTES,
    ETHERTYPE_IPV4,
    IPV4,
    PROTOCOL_UDP,
    RESULT_TTL,
    Frame,
    PortFrame,
    is_udp,
    is_whole,
    parse,
)


class Rows(Protocol):
    """What was written into tables."""

    def hit(self, table: str, key: tuple[int, ...], frame_bytes: int) -> Entry | None:
        """The entry that matches exactly; it counts the packet."""
        ...

    def longest_prefix(self, table: str, address: int, frame_bytes: int) -> Entry | None:
        """The entry with the longest matching IPv4 prefix; it counts the packet."""
        ...


class Framing(Protocol):
    """Of one kind of packets. A frame's ``payload`` is ina's header and values, as UDP has them."""

    sender: tuple[str, ...]
    """The keys of the table of members that say which sender it is behind an address."""
    has_shapes: bool
    """Whether rounds of its packets may have another shape than SUM."""

    def may_be_its(self, data: bytes) -> bool:
        """Whether a frame is one of these, if an address of the switch's is its destination."""
        ...

    def is_own(self, rows: Rows, address: int) -> bool:
        """Whether a destination is the switch's."""
        ...

    def passes(
        self, rows: Rows, port: int, data: bytes, *, is_own: bool
    ) -> bool | PortFrame | None:
        """Of a frame that may be one of these: whether it goes on, or as what it leaves.

        None: rows have no say, it does if it is for somebody else."""
        ...

    def opened(self, data: bytes) -> Frame | None:
        """The frame; None: it is malformed around ina's packet."""
        ...

    def spoilt(self, data: bytes) -> int | None:
        """Why a frame is dropped that is not malformed, and of whose header nothing is read yet."""
        ...

    def sender_of(self, frame: Frame) -> tuple[int, ...]:
        """What the keys ``sender`` are compared with."""
        ...

    def way_back(self, port: int, member: Mapping[str, int]) -> int:
        """The port by which the answer to a frame leaves that came in by one; ``member``: what the
        sender's row says."""
        ...

    def receiver(self, job: int, worker: int, member: Mapping[str, int]) -> tuple[int, ...]:
        """The key of a row of receivers; ``member``: what the sender's row says."""
        ...

    def told(self, header: Header, to: Mapping[str, int]) -> Header:
        """What the header says to where a row of receivers leads."""
        ...

    def addressed(self, frame: Frame, payload: bytes, seq: int, to: Mapping[str, int]) -> Frame:
        """The arrived frame, sent back with another payload to where a row of receivers says."""
        ...


class UdpFraming:
    """Nothing but UDP."""

    udp_port = UDP_PORT
    sender: tuple[str, ...] = ("src_port",)
    has_shapes = True

    def may_be_its(self, data: bytes) -> bool:
        """To its port."""
        return is_udp(data) and parse(data).dst_udp == self.udp_port

    def is_own(self, rows: Rows, address: int) -> bool:
        """One of its addresses."""
        return rows.hit(names.OWN_ADDRESSES, (address,), 0) is not None

    def passes(
        self, rows: Rows, port: int, data: bytes, *, is_own: bool
    ) -> bool | PortFrame | None:
        """What is for others is ordinary traffic."""
        return None

    def opened(self, data: bytes) -> Frame | None:
        """Its lengths and its IP checksum must say what it is."""
        return parse(data) if is_whole(data) else None

    def spoilt(self, data: bytes) -> int | None:
        """Nothing else can be wrong."""
        return None

    def sender_of(self, frame: Frame) -> tuple[int, ...]:
        """A socket."""
        return (frame.src_udp,)

    def way_back(self, port: int, member: Mapping[str, int]) -> int:
        """The same."""
        return port

    def receiver(self, job: int, worker: int, member: Mapping[str, int]) -> tuple[int, ...]:
        """One row a worker."""
        return job, worker

    def told(self, header: Header, to: Mapping[str, int]) -> Header:
        """As it is."""
        return header

    def addressed(self, frame: Frame, payload: bytes, seq: int, to: Mapping[str, int]) -> Frame:
        """From the switch's port to the receiver's."""
        back = _sent_back(frame, payload, to)
        return replace(back, dst_udp=to["dst_port"], src_udp=UDP_PORT)


_NO_BTH = Bth(0, 0, 0)


@dataclass(frozen=True)
class SendFrame(Frame):
    """A frame whose payload is that of a SEND."""

    bth: Bth = _NO_BTH

    def build(self) -> bytes:
        """With BTH in front of the payload, and ICRC behind it."""
        body = encode_bth(self.bth) + self.payload
        around = {name: getattr(self, name) for name in Frame.__dataclass_fields__}
        data = Frame(**{**around, "payload": body + bytes(ICRC_BYTES)}).build()
        covered = data[:-ICRC_BYTES]
        return covered + icrc(covered[ETHERNET_BYTES:])


class RoceFraming(UdpFraming):
    """BTH behind UDP, ICRC at the end."""

    udp_port = ROCE_UDP_PORT
    sender: tuple[str, ...] = ("dest_qp",)
    has_shapes = False
    sends: tuple[Opcode, ...] = UC_SENDS

    def opened(self, data: bytes) -> Frame | None:
        """A SEND without immediate data and padding, in the one partition."""
        frame = parse(data)
        if not is_whole(data) or len(frame.payload) < BTH_BYTES + ICRC_BYTES:
            return None
        bth = decode_bth(frame.payload)
        if (bth.pad_bytes, bth.version, bth.pkey) != (0, 0, DEFAULT_PKEY):
            return None
        if bth.opcode not in self.sends:
            return None
        around = {name: getattr(frame, name) for name in Frame.__dataclass_fields__}
        around["payload"] = frame.payload[BTH_BYTES:-ICRC_BYTES]
        return SendFrame(**around, bth=bth)

    def spoilt(self, data: bytes) -> int | None:
        """Another ICRC than the packet's."""
        packet = data[ETHERNET_BYTES:]
        return None if packet[-ICRC_BYTES:] == icrc(packet[:-ICRC_BYTES]) else DROP_ICRC

    def sender_of(self, frame: Frame) -> tuple[int, ...]:
        """The queue pair that the switch has for it."""
        assert isinstance(frame, SendFrame)
        return (frame.bth.dest_qp,)

    def receiver(self, job: int, worker: int, member: Mapping[str, int]) -> tuple[int, ...]:
        """One row a queue pair."""
        return job, worker, member["queue"]

    def addressed(self, frame: Frame, payload: bytes, seq: int, to: Mapping[str, int]) -> Frame:
        """A SEND of the chunk's number, at its place in a message."""
        opcode = opcode_of(seq, to["segment_mask"] + 1)
        back = _sent_back(frame, payload, to)
        back = replace(back, dst_udp=ROCE_UDP_PORT, src_udp=to["src_port"])
        back = replace(back, identification=0, fragment=DONT_FRAGMENT)
        return replace(back, bth=Bth(opcode, to["dest_qp"], psn_of(seq)))  # type: ignore[call-arg]


class RingFraming(RoceFraming):
    """SENDs of a worker to the next one of its ring. What else is RoCEv2's passes by rows alone."""

    sender: tuple[str, ...] = ("dst_addr", "dest_qp")
    sends: tuple[Opcode, ...] = RC_SENDS

    def may_be_its(self, data: bytes) -> bool:
        """Any datagram whose port is another one, as can be seen, is none."""
        if _is_tagged(data):
            return True
        is_ipv4 = len(data) >= IPV4.stop and data[12:14] == ETHERTYPE_IPV4.to_bytes(2, "big")
        if not is_ipv4 or data[23] != PROTOCOL_UDP:
            return False
        return not is_udp(data) or super().may_be_its(data)

    def is_own(self, rows: Rows, address: int) -> bool:
        """Of a network of rings."""
        return rows.longest_prefix(names.OWN_ADDRESSES, address, 0) is not None

    def passes(
        self, rows: Rows, port: int, data: bytes, *, is_own: bool
    ) -> bool | PortFrame | None:
        """A ring's acknowledgements, and what is for bystanders."""
        if _is_tagged(data):
            return False  # nobody looks behind tags
        src, dst = (int.from_bytes(data[at : at + 4], "big") for at in (26, 30))
        if not is_own:
            return rows.longest_prefix(names.BYSTANDERS, dst, len(data)) is not None
        body = parse(data).payload if is_udp(data) else b""
        if len(body) < BTH_BYTES or decode_bth(body).opcode not in REPLIES:
            return None
        key = port, src, dst, decode_bth(body).dest_qp
        row = rows.hit(names.REPLIES, key, len(data))
        if row is None:
            return False
        macs = (row.param(it).to_bytes(6, "big") for it in ("dst_mac", "src_mac"))
        return row.param("port"), b"".join(macs) + data[12:]

    def opened(self, data: bytes) -> Frame | None:
        """It may have no UDP header."""
        return super().opened(data) if is_udp(data) else None

    def sender_of(self, frame: Frame) -> tuple[int, ...]:
        """A flow: whom it is to, with the queue pair there."""
        return (frame.dst_ipv4, *super().sender_of(frame))

    def way_back(self, port: int, member: Mapping[str, int]) -> int:
        """On: to the next worker, whom it was for."""
        return member["next_port"]

    def receiver(self, job: int, worker: int, member: Mapping[str, int]) -> tuple[int, ...]:
        """One row a connection of a flow's."""
        return job, worker, member["queue"]

    def told(self, header: Header, to: Mapping[str, int]) -> Header:
        """The receiver is the worker that the flow leads to."""
        return replace(header, worker=to["next_worker"])

    def addressed(self, frame: Frame, payload: bytes, seq: int, to: Mapping[str, int]) -> Frame:
        """What the flow's worker has sent, but for the payload; marked if any of its likes was."""
        on = _sent_back(frame, payload, to)
        opcode = opcode_of(seq, to["segment_mask"] + 1, RC)
        ends = opcode in (Opcode.RC_SEND_LAST, Opcode.RC_SEND_ONLY)
        psn = psn_of(seq >> to["lane_shift"], to["first_psn"])
        bth = Bth(opcode, to["dest_qp"], psn, ack_request=int(ends))
        is_marked = payload[1] & Flag.ECN and frame.ecn
        return replace(
            on,
            src_mac=to["src_mac"],
            src_ipv4=to["src_addr"],
            src_udp=to["src_port"],
            dst_udp=ROCE_UDP_PORT,
            tos=on.tos | CE if is_marked else on.tos,
            identification=0,
            fragment=DONT_FRAGMENT,
            bth=bth,  # type: ignore[call-arg]
        )


def _is_tagged(data: bytes) -> bool:
    """Whether a frame says of which VLAN it is."""
    return len(data) >= ETHERNET_BYTES and data[12:14] in (b"\x81\x00", b"\x88\xa8")


def _sent_back(frame: Frame, payload: bytes, to: Mapping[str, int]) -> Frame:
    """From the address that it was sent to."""
    return replace(
        frame,
        payload=payload,
        dst_mac=to["dst_mac"],
        src_mac=frame.dst_mac,
        dst_ipv4=to["dst_addr"],
        src_ipv4=frame.dst_ipv4,
        ttl=RESULT_TTL,
        udp_checksum=0,
        checksum=None,
    )


FRAMINGS: Mapping[str, Framing] = {
    "udp": UdpFraming(),
    "rocev2": RoceFraming(),
    "ring": RingFraming(),
}
"""By the name that modes have for them (``Mode.framing``)."""
