"""A target whose ports are none of this process's: the switch asks it for them, and no more."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from ina.switch.pipeline import Pipeline
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import InvalidPortError, Port, UdpPort
from ina.switch.server import SoftSwitch
from ina.switch.stats import SwitchStats
from ina.switch.target import Image, ReadProgram, Target
from ina.switch.targets import default_target
from tests.worlds.fakes.p4runtime import features_config

STATS = SwitchStats({}, 0, 0, 7, 0, 0)


class OwnPorts(PortSet):
    """Somewhere else: it is told what to do, and no packet comes."""

    def __init__(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> None:
        self.made_of = (tuple(specs), cpu_port, impairment)
        self.told: list[str] = []
        self._stopped = threading.Event()

    def open(self) -> None:
        self.told.append("open")

    def start(self) -> None:
        self.told.append("start")

    def install(self, pipeline: Pipeline) -> None:
        self.told.append(f"install {len(pipeline.program.tables)} tables")

    def inject(self, number: int, packet: bytes) -> bool:
        return False

    def next_cpu_packet(self, timeout_ns: int) -> bytes | None:
        self._stopped.wait(timeout_ns / 1e9)
        return None

    def stats(self) -> SwitchStats:
        return STATS

    def stop(self) -> None:
        self.told.append("stop")
        self._stopped.set()

    def close(self) -> None:
        self.told.append("close")


class OtherTarget(Target):
    """Runs programs as usual, between ports of its own."""

    def __init__(self, usual: Target) -> None:
        self._usual = usual
        self.made: list[OwnPorts] = []

    def build(self, program: ReadProgram) -> Image:
        return self._usual.build(program)

    def ports(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> PortSet:
        self.made.append(OwnPorts(specs, cpu_port, impairment))
        return self.made[-1]


def test_a_switch_runs_over_its_targets_ports(cache_dir: Path) -> None:
    target = OtherTarget(default_target(cache_dir))
    with SoftSwitch([UdpPort(3)], target=target, grpc_addr=None, delay_us=7) as switch:
        (ports,) = target.made
        assert ports.made_of == ((UdpPort(3),), 510, Impairment(delay_us=7))
        assert ports.told == ["open", "start"]
        switch.preload(features_config())
        (installed,) = ports.told[2:]
        assert installed.startswith("install ")
        assert switch.stats() == STATS
        for ask in (switch.udp_address, switch.shm_address):
            with pytest.raises(InvalidPortError, match="port 3 is not an open"):
                ask(3)
    assert ports.told[3:] == ["stop", "close"]
    assert switch.stats() == STATS
