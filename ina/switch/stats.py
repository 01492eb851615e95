"""Counters of a soft switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ina.extension import switch as native


@dataclass(frozen=True)
class PortStats:
    """Packets, and bytes of Ethernet frames without FCS, since the switch was started.

    ``rx`` counts all that arrived, those dropped on the way in among them. Each packet that the
    pipeline sent to the port is in ``tx`` or in one of the drops on the way out.
    """

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    loss_in_packets: int = 0
    """Dropped by injected loss on arrival."""
    loss_out_packets: int = 0
    """Dropped by injected loss on leaving."""
    no_pipeline_packets: int = 0
    """Arrived before a program was set."""
    malformed_packets: int = 0
    """Arrived cut short, or in a form that cannot be read."""
    wrong_checksum_packets: int = 0
    """Arrived at an interface or from a file: to the aggregation, with a wrong UDP checksum."""
    undeliverable_packets: int = 0
    """Leaving: not what this kind of port can carry (UDP: not IPv4/UDP), or addressed to itself."""
    blocked_packets: int = 0
    """Leaving: the socket stayed full for 5 ms; shared memory: the worker's ring was full."""
    failed_packets: int = 0
    """Leaving: the kernel refused."""
    kernel_drop_packets: int = 0
    """Arriving: the socket's receive buffer was full. Of a super-datagram the kernel counts one."""
    receive_buffer_bytes: int = 0
    """Granted by the kernel (SO_RCVBUF) to a UDP port's sockets together."""
    send_buffer_bytes: int = 0
    """Granted by the kernel (SO_SNDBUF), of UDP ports."""
    gro: bool = False
    """UDP: super-datagrams are received."""
    gso: bool = False
    """UDP: super-datagrams are sent."""
    attached: int = 0
    """Shared memory: workers that are attached now."""
    refused_attachments: int = 0
    """Shared memory: another user's process, another version, no room."""
    broken_rings: int = 0
    """Shared memory: workers dropped because what they wrote in it cannot be."""
    finished: bool = False
    """pcap: the whole file has been read."""


# Fields of PortStats: direction ("rx" on arrival, "tx" on leaving) and reason of the drop.
PORT_DROPS = {
    "loss_in_packets": ("rx", "injected_loss"),
    "no_pipeline_packets": ("rx", "no_pipeline"),
    "malformed_packets": ("rx", "malformed"),
    "wrong_checksum_packets": ("rx", "wrong_checksum"),
    "kernel_drop_packets": ("rx", "receive_buffer_full"),
    "loss_out_packets": ("tx", "injected_loss"),
    "undeliverable_packets": ("tx", "undeliverable"),
    "blocked_packets": ("tx", "blocked"),
    "failed_packets": ("tx", "refused_by_kernel"),
}


@dataclass(frozen=True)
class SwitchStats:
    """Counters of the switch and, by number, of its ports."""

    ports: Mapping[int, PortStats]
    unknown_port_packets: int
    """The program sent them to a port that the switch does not have."""
    oversize_packets: int
    """One packet's copies did not fit in the output arena (8 MiB)."""
    cpu_packets: int
    """To the CPU port, for P4Runtime's PacketIn."""
    cpu_dropped_packets: int
    """Of those, dropped because nobody took them in time."""
    injected_packets: int
    """From P4Runtime's PacketOut."""

    @property
    def loss_in_packets(self) -> int:
        """Injected loss on arrival, all ports."""
        return sum(port.loss_in_packets for port in self.ports.values())

    @property
    def loss_out_packets(self) -> int:
        """Injected loss on leaving, all ports."""
        return sum(port.loss_out_packets for port in self.ports.values())

    @property
    def rx_packets(self) -> int:
        """Packets that arrived, all ports."""
        return sum(port.rx_packets for port in self.ports.values())

    @property
    def tx_packets(self) -> int:
        """Packets that left, all ports."""
        return sum(port.tx_packets for port in self.ports.values())


def collect(ports: Mapping[int, native.Port], loop: native.PortLoop) -> SwitchStats:
    """Read all counters."""
    flags = {field.name for field in fields(PortStats) if field.type == "bool"}
    by_port = {}
    for number, port in sorted(ports.items()):
        values = port.stats()
        by_port[number] = PortStats(
            **{name: bool(v) if name in flags else v for name, v in values.items()}  # type: ignore[arg-type]
        )
    return SwitchStats(ports=by_port, **loop.stats())
