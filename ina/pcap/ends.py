"""Whom a packet is from and to, as a switch's rows have it: by UDP's ports, or, of RoCEv2, without
them, for there the source port is the adapter's choice and the other one everybody's.

In a ring of adapters all packets are between workers, and the switch has no address: it takes what
is a contribution out of a flow, and puts what is a result into it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.pcap.packets import Packet
from ina.pcap.paths import root_index
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.codec import Header
from ina.protocol.spec import Kind


@dataclass(frozen=True, order=True)
class Address:
    """Where packets go to or come from. Without a port: a switch that has no address."""

    ipv4: str
    udp_port: int

    def __str__(self) -> str:
        return f"{self.ipv4}:{self.udp_port}" if self.udp_port else self.ipv4


RING = Address("of a ring", 0)
"""What sums round a ring."""


def source(packet: Packet) -> Address:
    """Where it comes from."""
    if _is_of_ring(packet) and packet.header and packet.header.kind is Kind.RESULT:
        return RING
    return Address(str(packet.datagram.src), _port(packet, packet.datagram.src_port))


def destination(packet: Packet) -> Address:
    """Where it goes to."""
    if _is_of_ring(packet) and packet.header and packet.header.kind is Kind.CONTRIBUTION:
        return RING
    return Address(str(packet.datagram.dst), _port(packet, packet.datagram.dst_port))


def sender_text(packet: Packet) -> str:
    """By what a switch knows a contribution's sender: a switch admits a worker from one alone."""
    sent, send = packet.datagram, packet.send
    if send is None:
        return f"{sent.src}:{sent.src_port}"
    to = f"{sent.dst} " if send.is_of_ring else ""
    return f"{sent.src}, to {to}queue pair {send.bth.dest_qp:#x}"


def asker(packet: Packet, header: Header) -> int:
    """The switch's child that a replay answers: its receiver, or, round a ring, who sends to it."""
    return root_index(header) if _is_of_ring(packet) else header.worker


def _is_of_ring(packet: Packet) -> bool:
    return packet.send is not None and packet.send.is_of_ring


def _port(packet: Packet, udp_port: int) -> int:
    """Of a tunnel's ends the ports tell who they are, as they do without RoCEv2."""
    return udp_port if packet.send is None or packet.send.is_tunnelled else ROCE_UDP_PORT
