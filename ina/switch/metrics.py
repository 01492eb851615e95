"""A soft switch's counters as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ina import __version__
from ina.switch.stats import PORT_DROPS, SwitchStats


class SwitchCollector(Collector):
    """Reads the counters at each scrape; they live in memory that the switch's thread writes."""

    def __init__(self, device_id: int, stats: Callable[[], SwitchStats]) -> None:
        self._device_id = device_id
        self._stats = stats

    def collect(self) -> Iterable[Metric]:
        """All families; those of ports have the label ``port``."""
        stats = self._stats()
        info = GaugeMetricFamily("ina_switch_info", "Always 1.", labels=["version", "device_id"])
        info.add_metric([__version__, str(self._device_id)], 1)
        yield info
        yield from _ports(stats)
        dropped = CounterMetricFamily(
            "ina_switch_dropped_packets",
            "Packets dropped between ports: sent to a port that is not there, too many copies of"
            " one packet, or to the CPU port faster than they were taken.",
            labels=["reason"],
        )
        dropped.add_metric(["unknown_port"], stats.unknown_port_packets)
        dropped.add_metric(["oversize"], stats.oversize_packets)
        dropped.add_metric(["cpu_queue_full"], stats.cpu_dropped_packets)
        yield dropped
        cpu = CounterMetricFamily(
            "ina_switch_cpu_packets",
            "Packets to P4Runtime (packet_in) and from it (packet_out).",
            labels=["direction"],
        )
        cpu.add_metric(["packet_in"], stats.cpu_packets)
        cpu.add_metric(["packet_out"], stats.injected_packets)
        yield cpu


def _ports(stats: SwitchStats) -> Iterator[Metric]:
    packets = CounterMetricFamily(
        "ina_switch_packets",
        "Packets that arrived at a port (rx) and left it (tx); arrived ones with those dropped.",
        labels=["port", "direction"],
    )
    size = CounterMetricFamily(
        "ina_switch_bytes", "Bytes of their Ethernet frames, no FCS.", labels=["port", "direction"]
    )
    drops = CounterMetricFamily(
        "ina_switch_port_dropped_packets",
        "Packets dropped by a port on arrival (rx) or on leaving (tx).",
        labels=["port", "direction", "reason"],
    )
    buffers = GaugeMetricFamily(
        "ina_switch_socket_buffer_bytes",
        "Socket buffers that the kernel granted to a UDP port.",
        labels=["port", "direction"],
    )
    for number, port in stats.ports.items():
        label = str(number)
        packets.add_metric([label, "rx"], port.rx_packets)
        packets.add_metric([label, "tx"], port.tx_packets)
        size.add_metric([label, "rx"], port.rx_bytes)
        size.add_metric([label, "tx"], port.tx_bytes)
        for field, (direction, reason) in PORT_DROPS.items():
            drops.add_metric([label, direction, reason], getattr(port, field))
        buffers.add_metric([label, "rx"], port.receive_buffer_bytes)
        buffers.add_metric([label, "tx"], port.send_buffer_bytes)
    yield from (packets, size, drops, buffers)
