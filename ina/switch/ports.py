"""The ports of a soft switch, and how they are written on a command line."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, TypeAlias

from ina.errors import InvalidInputError, UnavailableError
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.spec import UDP_PORT

MAX_PORT_NUMBER = 510
"""v1model's ports have 9 bits, and 511 means drop."""

MAX_SHM_ADDRESS_BYTES = 108
"""Of ``@NAME``: what a Unix socket address holds."""

PCAP_SUFFIXES = (".pcap", ".cap", "")
"""Of a file that a port writes."""


class InvalidPortError(InvalidInputError):
    """A port description that cannot be: the message quotes it and says why."""


class PortInUseError(UnavailableError):
    """An address that the switch shall listen on is taken."""


class AddressError(InvalidInputError):
    """An address that the switch shall listen on is not this machine's."""


@dataclass(frozen=True)
class UdpPort:
    """An unprivileged UDP socket that serves any number of hosts.

    Each datagram becomes a frame from its sender to ``host``:``frame_udp_port``; each IPv4/UDP
    frame that leaves is sent to the address and port written in it.
    """

    number: int
    host: str = "127.0.0.1"
    """IPv4 address to bind; 0.0.0.0 takes each datagram's own destination."""
    udp_port: int = 0
    """UDP port to bind; 0 takes a free one, see :meth:`SoftSwitch.udp_address`."""
    frame_udp_port: int = UDP_PORT
    """What the P4 program sees as the switch's UDP port, whatever ``udp_port`` is. With that of
    RoCEv2 the socket is the end of a tunnel: a frame that leaves to that port goes to the one that
    it says to come from, by which a worker's socket is known."""

    @property
    def kind(self) -> str:
        """As it is written."""
        return "rocev2" if self.frame_udp_port == ROCE_UDP_PORT else "udp"


@dataclass(frozen=True)
class FramesPort:
    """An unprivileged UDP socket whose datagrams are whole Ethernet frames.

    It serves any number of hosts that make their own: each gets what is for the MAC addresses that
    its frames came from, and what is for all or for nobody that is known.
    """

    number: int
    host: str = "127.0.0.1"
    """IPv4 address to bind."""
    udp_port: int = 0
    """UDP port to bind; 0 takes a free one, see :meth:`SoftSwitch.udp_address`."""
    kind: ClassVar[str] = "frames"
    """As it is written."""


@dataclass(frozen=True)
class AfPacketPort:
    """A network interface, through a packet socket. Needs root or CAP_NET_RAW."""

    number: int
    interface: str


@dataclass(frozen=True)
class ShmPort:
    """Shared memory with workers on this host, of this user, in this network namespace.

    Each worker that attaches gets an address of its own in 127.64.0.0/10, from which the P4 program
    sees its packets come; see docs/soft_switch.md.
    """

    number: int
    address: str = ""
    """``@NAME``, an abstract Unix address; empty: a random one, see :meth:`SoftSwitch.shm_address`.
    """
    frame_udp_port: int = UDP_PORT
    """As :class:`UdpPort` has it."""


@dataclass(frozen=True)
class PcapPort:
    """Packets come from one classic pcap file and go to another; either may be left out."""

    number: int
    read: Path | None = None
    write: Path | None = None


Port: TypeAlias = UdpPort | FramesPort | ShmPort | AfPacketPort | PcapPort


def parse_port(text: str) -> Port:
    """Read ``1=udp:127.0.0.1:17760``, ``1=rocev2:127.0.0.1:17760``, whose datagrams are RoCEv2's,
    ``1=frames:127.0.0.1:9000``, whose datagrams are whole frames, ``2=shm:@name``,
    ``3=afpacket:veth0``, ``3=if:veth0``, which is the same, or ``4=pcap:in,out``.

    ``udp:`` alone binds a free port of 127.0.0.1, ``shm:`` alone a random address; either file of
    ``pcap:`` may be empty.
    Raises :class:`InvalidPortError`.
    """
    number_text, equals, rest = text.partition("=")
    kind, _, place = rest.partition(":")
    if not equals or not number_text.isdecimal():
        raise InvalidPortError(
            f"port {text!r}: expected NUMBER=KIND:PLACE, as 1=udp:127.0.0.1:17760"
        )
    number = int(number_text)
    match kind:
        case "udp":
            port: Port = _udp(text, number, place)
        case "rocev2":
            port = replace(_udp(text, number, place), frame_udp_port=ROCE_UDP_PORT)
        case "frames":
            udp = _udp(text, number, place)
            port = FramesPort(number, udp.host, udp.udp_port)
        case "shm":
            port = ShmPort(number, place)
        case "afpacket" | "if":
            port = AfPacketPort(number, place)
        case "pcap":
            read, _, write = place.partition(",")
            port = PcapPort(number, Path(read) if read else None, Path(write) if write else None)
        case _:
            raise InvalidPortError(
                f"port {text!r}: unknown kind {kind!r}; udp, rocev2, frames, shm, if, afpacket or"
                " pcap"
            )
    check_port(port)
    return port


def _udp(text: str, number: int, place: str) -> UdpPort:
    if not place:
        return UdpPort(number)
    host, _, udp_port = place.rpartition(":")
    if not host or not udp_port.isdecimal():
        raise InvalidPortError(f"port {text!r}: expected udp:ADDRESS:PORT, as udp:127.0.0.1:17760")
    return UdpPort(number, host, int(udp_port))


def _check_socket(port: UdpPort | FramesPort) -> None:
    try:
        ipaddress.IPv4Address(port.host)
    except ValueError:
        raise InvalidPortError(
            f"port {port.number}: {port.host!r} is not an IPv4 address"
        ) from None
    numbers = [(port.udp_port, 0)]
    if isinstance(port, UdpPort):
        numbers.append((port.frame_udp_port, 1))
    for udp_port, least in numbers:
        if not least <= udp_port <= 0xFFFF:
            raise InvalidPortError(
                f"port {port.number}: UDP port {udp_port} is not in {least}..65535"
            )


def check_port(port: Port) -> None:
    """Raise :class:`InvalidPortError` if a field is out of its range."""
    if not 0 <= port.number <= MAX_PORT_NUMBER:
        raise InvalidPortError(f"port number {port.number}: not in 0..{MAX_PORT_NUMBER}")
    match port:
        case UdpPort() | FramesPort():
            _check_socket(port)
        case ShmPort():
            longest = MAX_SHM_ADDRESS_BYTES
            name = port.address.encode()
            if name and (name[:1] != b"@" or not 1 < len(name) <= longest):
                raise InvalidPortError(
                    f"port {port.number}: shared memory address {port.address!r}: expected @NAME,"
                    f" at most {longest} bytes"
                )
        case AfPacketPort():
            if not port.interface or len(port.interface) > 15:
                raise InvalidPortError(
                    f"port {port.number}: {port.interface!r} is not an interface name"
                )
        case PcapPort():
            if port.read is None and port.write is None:
                raise InvalidPortError(f"port {port.number}: pcap needs a file to read or to write")
            if port.write is not None and port.write.suffix not in PCAP_SUFFIXES:
                raise InvalidPortError(
                    f"port {port.number}: {port.write}: want a name that ends in .pcap or .cap"
                    " (what is written is classic pcap)"
                )


def check_ports(ports: list[Port], cpu_port: int) -> None:
    """Check each port, and that no number is used twice or is the CPU port's."""
    seen = {cpu_port: "the CPU port"}
    for port in ports:
        check_port(port)
        if port.number in seen:
            raise InvalidPortError(
                f"port number {port.number} is used twice: by {seen[port.number]}"
            )
        seen[port.number] = "another port"
