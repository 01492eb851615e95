"""What the reference's packets have around ina's header and values: UDP alone, or RoCEv2.

The reference switch (:mod:`ina.testing.model_device`) has one object of :class:`Framing`, by the
name that its mode has for it, and looks into no header in front of ina's but through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from ina.protocol.bth import (
    BTH_BYTES,
    DEFAULT_PKEY,
    ROCE_UDP_PORT,
    UC_SENDS,
    Bth,
    decode_bth,
    encode_bth,
)
from ina.protocol.icrc import ICRC_BYTES, icrc
from ina.protocol.roce import DROP_ICRC, opcode_of, psn_of
from ina.protocol.spec import UDP_PORT, DropReason
from ina.testing.frames import ETHERNET_BYTES, RESULT_TTL, Frame, is_whole, parse


class Framing(Protocol):
    """Of one kind of packets. A frame's ``payload`` is ina's header and values, as UDP has them."""

    udp_port: int
    """To which the switch gets them."""
    sender: str
    """The key of the table of members that says which sender it is behind an address."""
    drop_reasons: tuple[int, ...]
    """Indices of the counter of drops."""

    def opened(self, data: bytes) -> Frame | None:
        """The frame; None: it is malformed around ina's packet."""
        ...

    def spoilt(self, data: bytes) -> int | None:
        """Why a frame is dropped that is not malformed, and of whose header nothing is read yet."""
        ...

    def sender_of(self, frame: Frame) -> int:
        """What the key ``sender`` is compared with."""
        ...

    def receiver(self, job: int, worker: int, member: Mapping[str, int]) -> tuple[int, ...]:
        """The key of a row of receivers; ``member``: what the sender's row says."""
        ...

    def addressed(self, frame: Frame, payload: bytes, seq: int, to: Mapping[str, int]) -> Frame:
        """The arrived frame, sent back with another payload to where a row of receivers says."""
        ...


class UdpFraming:
    """Nothing but UDP."""

    udp_port = UDP_PORT
    sender = "src_port"
    drop_reasons: tuple[int, ...] = tuple(DropReason)

    def opened(self, data: bytes) -> Frame | None:
        """Its lengths and its IP checksum must say what it is."""
        return parse(data) if is_whole(data) else None

    def spoilt(self, data: bytes) -> int | None:
        """Nothing else can be wrong."""
        return None

    def sender_of(self, frame: Frame) -> int:
        """A socket."""
        return frame.src_udp

    def receiver(self, job: int, worker: int, member: Mapping[str, int]) -> tuple[int, ...]:
        """One row a worker."""
        return job, worker

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


class RoceFraming:
    """BTH behind UDP, ICRC at the end."""

    udp_port = ROCE_UDP_PORT
    sender = "dest_qp"
    drop_reasons: tuple[int, ...] = (*DropReason, DROP_ICRC)

    def opened(self, data: bytes) -> Frame | None:
        """A SEND without immediate data and padding, in the one partition."""
        frame = parse(data)
        if not is_whole(data) or len(frame.payload) < BTH_BYTES + ICRC_BYTES:
            return None
        bth = decode_bth(frame.payload)
        if (bth.pad_bytes, bth.version, bth.pkey) != (0, 0, DEFAULT_PKEY):
            return None
        if bth.opcode not in UC_SENDS:
            return None
        around = {name: getattr(frame, name) for name in Frame.__dataclass_fields__}
        around["payload"] = frame.payload[BTH_BYTES:-ICRC_BYTES]
        return SendFrame(**around, bth=bth)

    def spoilt(self, data: bytes) -> int | None:
        """Another ICRC than the packet's."""
        packet = data[ETHERNET_BYTES:]
        return None if packet[-ICRC_BYTES:] == icrc(packet[:-ICRC_BYTES]) else DROP_ICRC

    def sender_of(self, frame: Frame) -> int:
        """The queue pair that the switch has for it."""
        assert isinstance(frame, SendFrame)
        return frame.bth.dest_qp

    def receiver(self, job: int, worker: int, member: Mapping[str, int]) -> tuple[int, ...]:
        """One row a queue pair."""
        return job, worker, member["queue"]

    def addressed(self, frame: Frame, payload: bytes, seq: int, to: Mapping[str, int]) -> Frame:
        """A SEND of the chunk's number, at its place in a message."""
        opcode = opcode_of(seq, to["segment_mask"] + 1)
        back = _sent_back(frame, payload, to)
        back = replace(back, dst_udp=ROCE_UDP_PORT, src_udp=to["src_port"])
        return replace(back, bth=Bth(opcode, to["dest_qp"], psn_of(seq)))  # type: ignore[call-arg]


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


FRAMINGS: Mapping[str, Framing] = {"udp": UdpFraming(), "rocev2": RoceFraming()}
"""By the name that modes have for them (``Mode.framing``)."""
