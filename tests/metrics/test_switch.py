"""Metrics of a soft switch: each counter, under its own name and labels."""

from __future__ import annotations

import dataclasses
import socket

import pytest

from ina.cli import main
from ina.metrics import MetricsServer
from ina.switch.metrics import SwitchCollector
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.switch.stats import PORT_DROPS, PortStats, SwitchStats
from tests.worlds.fakes.scrape import scrape
from tests.worlds.processes.switch import running_switch


def served(stats: SwitchStats) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        sample.name: {
            tuple(s.labels.values()): s.value for s in family.samples if s.name == sample.name
        }
        for family in SwitchCollector(7, lambda: stats).collect()
        for sample in family.samples
    }


def test_every_counter_is_served_once() -> None:
    counted = [
        f.name for f in dataclasses.fields(PortStats) if "packets" in f.name or "bytes" in f.name
    ]
    port = PortStats(**{name: 100 + index for index, name in enumerate(counted)})  # type: ignore[arg-type]
    totals = [f.name for f in dataclasses.fields(SwitchStats) if f.name != "ports"]
    stats = SwitchStats(
        ports={3: port},
        **{name: 200 + index for index, name in enumerate(totals)},
    )
    values = [v for samples in served(stats).values() for v in samples.values() if v >= 100]
    assert sorted(values) == [*range(100, 100 + len(counted)), *range(200, 200 + len(totals))]


def test_drops_are_told_apart_by_direction_and_reason() -> None:
    port = PortStats(loss_in_packets=1, loss_out_packets=2, kernel_drop_packets=3)
    found = served(SwitchStats({1: port}, 0, 0, 0, 4, 0))
    drops = found["ina_switch_port_dropped_packets_total"]
    assert drops["1", "rx", "injected_loss"] == 1
    assert drops["1", "tx", "injected_loss"] == 2
    assert drops["1", "rx", "receive_buffer_full"] == 3
    assert len(drops) == len(PORT_DROPS)
    assert found["ina_switch_dropped_packets_total"]["cpu_queue_full",] == 4


def test_the_command_serves_them(capsys: pytest.CaptureFixture[str]) -> None:
    with running_switch("--port", "1=udp:", "--metrics", "127.0.0.1:0") as switch:
        address = switch.ready["metrics"]
        assert scrape(address).value("ina_switch_info", device_id="1") == 1
        taken = ["switch", "--port", "1=udp:", "--grpc-addr", "127.0.0.1:0", "--metrics", address]
        assert main.run(taken) == 2
        said = f"error: metrics: cannot listen on {address}: Address already in use\n"
        assert capsys.readouterr().err == said
    with MetricsServer(address, []):  # nothing of it is left
        pass


def test_a_running_switch_counts_what_arrives() -> None:
    with SoftSwitch([UdpPort(1)]) as switch:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x" * 100, switch.udp_address(1))
        collector = SwitchCollector(1, switch.stats)
        with MetricsServer("127.0.0.1:0", [collector]) as server:
            found = scrape(server.address)
            while found.value("ina_switch_packets_total", port="1", direction="rx") == 0:
                found = scrape(server.address)  # the test's own deadline bounds this
    assert found.value("ina_switch_bytes_total", direction="rx") == 14 + 20 + 8 + 100
    assert found.value("ina_switch_port_dropped_packets_total", port="1", reason="no_pipeline") == 1
