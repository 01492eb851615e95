"""Ports of this process: sockets and files, and the native loop between them and a pipeline."""

from __future__ import annotations

import errno
import ipaddress
import secrets
from collections.abc import Sequence

from ina.extension import switch as native
from ina.switch.pipeline import Pipeline
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import (
    AddressError,
    AfPacketPort,
    FramesPort,
    InvalidPortError,
    PcapPort,
    Port,
    PortInUseError,
    ShmPort,
    UdpPort,
)
from ina.switch.stats import SwitchStats, collect


class NativePorts(PortSet):
    """Threads and sockets; pipelines hand over packets by :attr:`Pipeline.native`."""

    def __init__(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> None:
        self._specs = tuple(specs)
        self._impairment = impairment
        self._loop = native.PortLoop(cpu_port)
        self._ports: dict[int, native.Port] = {}
        self._shm_addresses: dict[int, str] = {}

    def open(self) -> None:
        """See :meth:`PortSet.open`."""
        for spec in self._specs:
            port = self._open(spec)
            port.set_delay(1000 * self._impairment.delay_us)
            self._ports[spec.number] = port
            self._loop.add(port)

    def start(self) -> None:
        """See :meth:`PortSet.start`."""
        self._loop.start()

    def install(self, pipeline: Pipeline) -> None:
        """See :meth:`PortSet.install`."""
        self._loop.set_pipeline(*pipeline.native)

    def inject(self, number: int, packet: bytes) -> bool:
        """See :meth:`PortSet.inject`."""
        return self._loop.inject(number, packet)

    def next_cpu_packet(self, timeout_ns: int) -> bytes | None:
        """See :meth:`PortSet.next_cpu_packet`."""
        return self._loop.next_cpu_packet(timeout_ns)

    def stats(self) -> SwitchStats:
        """See :meth:`PortSet.stats`."""
        return collect(self._ports, self._loop)

    def stop(self) -> None:
        """See :meth:`PortSet.stop`."""
        self._loop.stop()

    def close(self) -> None:
        """See :meth:`PortSet.close`."""
        for port in self._ports.values():
            port.close()
        self._ports.clear()

    def udp_address(self, number: int) -> tuple[str, int]:
        """See :meth:`PortSet.udp_address`."""
        port = self._ports.get(number)
        if not isinstance(port, native.UdpPort | native.FramesPort):
            return super().udp_address(number)
        address, udp_port = port.bound
        return str(ipaddress.IPv4Address(address)), udp_port

    def set_shm_dscp(self, number: int, dscp: int) -> None:
        """See :meth:`PortSet.set_shm_dscp`."""
        port = self._ports.get(number)
        if not isinstance(port, native.ShmPort):
            return super().set_shm_dscp(number, dscp)
        port.set_dscp(dscp)

    def shm_address(self, number: int) -> str:
        """See :meth:`PortSet.shm_address`."""
        return self._shm_addresses.get(number) or super().shm_address(number)

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
                case FramesPort(number, host, udp_port):
                    where = f"frames {host}:{udp_port}"
                    address = int(ipaddress.IPv4Address(host))
                    return native.FramesPort(number, address, udp_port, *loss)
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
