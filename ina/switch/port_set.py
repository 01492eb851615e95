"""A switch's ports, open, and the loop that takes packets from them through a pipeline."""

from __future__ import annotations

import errno
import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ina.extension import switch as native
from ina.switch.pipeline import Pipeline
from ina.switch.ports import (
    AddressError,
    AfPacketPort,
    InvalidPortError,
    PcapPort,
    Port,
    PortInUseError,
    ShmPort,
    UdpPort,
)
from ina.switch.stats import SwitchStats, collect


@dataclass(frozen=True)
class Impairment:
    """What is done to packets at ports, besides forwarding them."""

    loss_rate: float = 0.0
    """Probability in 0..1 that a packet is dropped, at each port and in both directions."""
    loss_seed: int = 0
    """Of the generator that losses are drawn from."""
    port_loss: Mapping[int, float] = field(default_factory=dict)
    """Another rate for some port numbers."""
    delay_us: int = 0
    """So long each packet is kept before it leaves."""


class PortSet:
    """Threads and sockets from :meth:`open` to :meth:`close`, once."""

    def __init__(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> None:
        self._specs = tuple(specs)
        self._impairment = impairment
        self._loop = native.PortLoop(cpu_port)
        self._ports: dict[int, native.Port] = {}
        self._shm_addresses: dict[int, str] = {}

    def open(self) -> None:
        """Opens the ports; packets are taken from :meth:`start` on.

        Raises :class:`PortInUseError`, :class:`AddressError`, :class:`InvalidPortError`; then
        :meth:`close` closes those that are open.
        """
        for spec in self._specs:
            port = self._open(spec)
            port.set_delay(1000 * self._impairment.delay_us)
            self._ports[spec.number] = port
            self._loop.add(port)

    def start(self) -> None:
        """Takes packets; they are dropped until a pipeline is installed."""
        self._loop.start()

    def install(self, pipeline: Pipeline) -> None:
        """Packets go through this one; when it returns, through no other any more."""
        self._loop.set_pipeline(*pipeline.native)

    def inject(self, number: int, packet: bytes) -> bool:
        """Sends a packet in as if it had come by a port; False: the queue is full."""
        return self._loop.inject(number, packet)

    def next_cpu_packet(self, timeout_ns: int) -> bytes | None:
        """The oldest that left by the CPU port and was not taken; None: none came in time."""
        return self._loop.next_cpu_packet(timeout_ns)

    def stats(self) -> SwitchStats:
        """Counters of all ports since :meth:`open`."""
        return collect(self._ports, self._loop)

    def stop(self) -> None:
        """No more packets; counters can still be read. May be called again."""
        self._loop.stop()

    def close(self) -> None:
        """Closes all sockets and files, after :meth:`stop`. May be called again."""
        for port in self._ports.values():
            port.close()
        self._ports.clear()

    def udp_address(self, number: int) -> tuple[str, int]:
        """Address and UDP port that port ``number`` is bound to. Raises InvalidPortError."""
        port = self._ports.get(number)
        if not isinstance(port, native.UdpPort):
            raise InvalidPortError(f"port {number} is not an open UDP port of this switch")
        address, udp_port = port.bound
        return str(ipaddress.IPv4Address(address)), udp_port

    def set_shm_dscp(self, number: int, dscp: int) -> None:
        """What the frames of such a port's workers carry, 0 to 63; of an open port."""
        port = self._ports[number]
        assert isinstance(port, native.ShmPort)
        port.set_dscp(dscp)

    def shm_address(self, number: int) -> str:
        """Where workers attach to shared-memory port ``number``. Raises InvalidPortError."""
        if number not in self._shm_addresses:
            raise InvalidPortError(f"port {number} is not an open shared-memory port")
        return self._shm_addresses[number]

    def _open(self, spec: Port) -> native.Port:
        loss = (
            self._impairment.port_loss.get(spec.number, self._impairment.loss_rate),
            self._impairment.loss_seed % (1 << 64),
        )
        try:
            match spec:
                case UdpPort(number, host, udp_port, frame_udp_port):
                    where = f"udp {host}:{udp_port}"
                    address = int(ipaddress.IPv4Address(host))
                    return native.UdpPort(number, address, udp_port, frame_udp_port, *loss)
                case ShmPort(number, shm, frame_udp_port):
                    shm = shm or f"@ina-{secrets.token_hex(8)}"
                    where = f"shared memory {shm}"
                    opened = native.ShmPort(number, shm.removeprefix("@"), frame_udp_port, *loss)
                    self._shm_addresses[number] = shm
                    return opened
                case AfPacketPort(number, interface):
                    where = f"interface {interface}"
                    return native.AfPacketPort(number, interface, *loss)
                case PcapPort(number, read, write):
                    where = "pcap"
                    return native.PcapPort(number, str(read or ""), str(write or ""), *loss)
        except OSError as error:
            message = f"port {spec.number}, {where}: {error.strerror}"
            if error.errno == errno.EADDRINUSE:
                raise PortInUseError(message) from None
            if error.errno == errno.EADDRNOTAVAIL:
                raise AddressError(f"{message}: this machine has no such address") from None
            raise InvalidPortError(message) from None
        except ValueError as error:
            raise InvalidPortError(f"port {spec.number}, {where}: {error}") from None
