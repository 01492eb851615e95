"""Interfaces of this machine as ports: each runs the pipeline's program on what comes."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ina.switch.pipeline import Pipeline
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import AfPacketPort, InvalidPortError, Port
from ina.switch.stats import PortStats, SwitchStats
from ina.switch.xdp.features import LOSES, features_of
from ina.switch.xdp.libbpf import XdpError
from ina.switch.xdp.links import Attached, XdpMode
from ina.switch.xdp.pin import Pin
from ina.switch.xdp.pipeline import XdpPipeline

_log = logging.getLogger(__name__)
_STATISTICS = Path("/sys/class/net")


@dataclass
class _Interface:
    name: str
    index: int
    before: Mapping[str, int]
    """Its counters when the switch began."""
    attached: Attached | None = None


class XdpPorts(PortSet):
    """Programs at interfaces, all in one mode."""

    def __init__(
        self,
        specs: Sequence[Port],
        cpu_port: int,
        impairment: Impairment,
        *,
        mode: XdpMode = XdpMode.native,
        pin: Pin | None = None,
    ) -> None:
        """``pin``: what is attached goes on after :meth:`stop`."""
        self._mode, self._pin = mode, pin
        self._specs, self._cpu_port, self._impairment = tuple(specs), cpu_port, impairment
        self._interfaces: dict[int, _Interface] = {}
        self._pipeline: XdpPipeline | None = None
        self._lock = threading.Lock()
        self._cpu_packets = 0
        self._injected_packets = 0

    def open(self) -> None:
        """See :meth:`PortSet.open`. Nothing is attached yet."""
        if self._impairment.delay_us:
            raise InvalidPortError("device xdp makes no delays")
        if self._impairment.loss_seed:
            raise InvalidPortError("device xdp loses packets by chance, which has no seed")
        for spec in self._specs:
            if not isinstance(spec, AfPacketPort):
                raise InvalidPortError(
                    f"port {spec.number}: device xdp has interfaces for ports, as 1=afpacket:eth0"
                )
            try:
                index = socket.if_nametoindex(spec.interface)
            except OSError:
                raise InvalidPortError(
                    f"port {spec.number}, interface {spec.interface}: No such device"
                ) from None
            counters = _counters(spec.interface)
            self._interfaces[spec.number] = _Interface(spec.interface, index, counters)

    def start(self) -> None:
        """See :meth:`PortSet.start`. Until a pipeline is installed, the kernel has the packets."""

    def install(self, pipeline: Pipeline) -> None:
        """See :meth:`PortSet.install`. Raises XdpError: an interface refuses."""
        assert isinstance(pipeline, XdpPipeline)
        with self._lock:
            indices = {port: one.index for port, one in self._interfaces.items()}
            is_generic = self._mode is XdpMode.generic
            lost = self._impairment
            losses = {port: lost.port_loss.get(port, lost.loss_rate) for port in indices}
            program = pipeline.attach(indices, self._cpu_port, is_generic=is_generic, losses=losses)
            if self._pin is not None:
                pipeline.outlive(self._pin)
                self._pin.drop_links(but=indices)
            for port, one in self._interfaces.items():
                self._run(program, port, one)
            self._pipeline = pipeline

    def _run(self, program: int, port: int, one: _Interface) -> None:
        if one.attached is None and self._pin is not None:
            one.attached = self._pin.link(port)
        if one.attached is not None:
            one.attached.update(program)
            return
        try:
            one.attached = Attached.attach(program, one.index, self._mode)
        except XdpError as error:
            why = "another one is there, its driver knows none, or its MTU is too large"
            if self._mode is XdpMode.native:
                why += "; --xdp-mode generic asks nothing of the driver"
            raise XdpError(
                f"interface {one.name}: no {self._mode.value} XDP program: {error} ({why})"
            ) from None
        if self._pin is not None:
            self._pin.keep_link(port, one.attached)
        has = features_of(one.name)
        if self._mode is XdpMode.native and has is not None and not has.takes_redirected:
            _log.warning("interface %s loses what leaves by it: %s", one.name, LOSES)

    def inject(self, number: int, packet: bytes) -> bool:
        """See :meth:`PortSet.inject`. By the controller's port alone."""
        pipeline = self._pipeline
        if pipeline is None or number != self._cpu_port:
            return False
        try:
            pipeline.inject(packet)
        except XdpError:
            return False
        self._injected_packets += 1
        return True

    def next_cpu_packet(self, timeout_ns: int) -> bytes | None:
        """See :meth:`PortSet.next_cpu_packet`."""
        pipeline = self._pipeline
        if pipeline is None:
            threading.Event().wait(timeout_ns / 1e9)
            return None
        packet = pipeline.next_cpu_packet(timeout_ns // 1_000_000)
        self._cpu_packets += packet is not None
        return packet

    def stats(self) -> SwitchStats:
        """See :meth:`PortSet.stats`: of the interfaces."""
        ports = {}
        for number, one in self._interfaces.items():
            now = _counters(one.name)
            own = {name: now.get(name, 0) - one.before.get(name, 0) for name in one.before}
            ports[number] = PortStats(
                rx_packets=own.get("rx_packets", 0),
                rx_bytes=own.get("rx_bytes", 0),
                tx_packets=own.get("tx_packets", 0),
                tx_bytes=own.get("tx_bytes", 0),
                failed_packets=own.get("tx_dropped", 0) + own.get("tx_errors", 0),
                kernel_drop_packets=own.get("rx_dropped", 0),
            )
        return SwitchStats(
            ports,
            unknown_port_packets=0,
            oversize_packets=0,
            cpu_packets=self._cpu_packets,
            cpu_dropped_packets=0,
            injected_packets=self._injected_packets,
        )

    def stop(self) -> None:
        """See :meth:`PortSet.stop`: the interfaces do without it, unless it is pinned."""
        with self._lock:
            for one in self._interfaces.values():
                if one.attached is not None:
                    one.attached.close()
                    one.attached = None

    def close(self) -> None:
        """See :meth:`PortSet.close`."""
        self._interfaces.clear()


def _counters(interface: str) -> dict[str, int]:
    """As the kernel counts them; nothing of an interface that is gone."""
    folder = _STATISTICS / interface / "statistics"
    try:
        return {path.name: int(path.read_text()) for path in folder.iterdir()}
    except OSError:
        return {}
