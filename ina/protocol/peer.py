"""Who sends, and who is sent to: what a packet's sender is known by, and what it is reached by."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.protocol.addresses import mac_of, place_of


@dataclass(frozen=True)
class Peer:
    """One end of UDP datagrams: a worker, a switch, or what adds up on a host."""

    address: IPv4Address
    udp_port: int
    mac: int | None = None
    """48 bits; None: derived from the address, as the soft switch's UDP ports do."""
    queue_pair: int = 0
    """RoCEv2: the number of the queue pair that SENDs to it name, 24 bits; 0: it takes datagrams.
    With one, ``udp_port`` is what flows to it are told apart by, their source port."""
    ring_pairs: tuple[int, ...] = ()
    """Of a worker in a ring, by lane: its queue pairs that send to the next one, and behind those
    as many that get from the one before."""

    @classmethod
    def at(cls, place: tuple[str, int]) -> Peer:
        """At an IPv4 address and a UDP port, as sockets say them; ValueError: it is none."""
        return cls(IPv4Address(place[0]), place[1])

    @property
    def place(self) -> tuple[str, int]:
        """Its IPv4 address and UDP port, as sockets take them."""
        return str(self.address), self.udp_port

    @property
    def mac_address(self) -> int:
        """The MAC address to send to."""
        return mac_of(self.address) if self.mac is None else self.mac

    @property
    def admits(self) -> tuple[tuple[str, int], ...]:
        """What packets have that come from it: keys of a table of those who are let in."""
        return ("src_addr", int(self.address)), ("src_port", self.udp_port)

    @property
    def reached(self) -> tuple[tuple[str, int], ...]:
        """What packets get that go to it: parameters of a table of receivers."""
        return (
            ("dst_mac", self.mac_address),
            ("dst_addr", int(self.address)),
            ("dst_port", self.udp_port),
        )

    def text(self, process: str = "") -> str:
        """For people: ``10.0.0.3:4433``, or its ``process`` where its address is made up."""
        return place_of(self.address, self.udp_port, process)

    def __str__(self) -> str:
        return self.text()
