"""BMv2's short queues: the controller keeps windows small; too large a window only costs time."""

from __future__ import annotations

from pathlib import Path

from bmv2_tests import jobs
from bmv2_tests.network import running
from bmv2_tests.plans import star
from bmv2_tests.switches import CONTROL_PORT
from ina.controller.config import TARGET_WINDOWS

HOSTS = 4
BMV2_WINDOW = TARGET_WINDOWS["bmv2"]
SHORT_QUEUE = "tbf rate 2mbit burst 4kb limit 8kb"  # BMv2 makes 4 Mbit/s here


def test_the_controller_limits_the_packets_in_flight(kind: str, tmp_path: Path) -> None:
    with running(star(HOSTS), kind, tmp_path, target="bmv2") as network:
        stats = jobs.start(network, jobs.plan_of("narrow", HOSTS, steps=2, elems=10_000)).finish()
    assert {one["in_flight_limit"] for one in stats} == {BMV2_WINDOW}
    # More than half are, where libpcap's ring is short (see Bmv2Switch.start).
    assert all(one["retransmissions"] < one["packets_sent"] / 4 for one in stats)


def test_nothing_is_lost_after_the_first_second(kind: str, tmp_path: Path) -> None:
    """Timers may run out where the machine is busy; no packet needs them. BMv2's queues hold 64."""
    with running(star(HOSTS), kind, tmp_path, target="bmv2") as network:
        plan = jobs.plan_of("lasting", HOSTS, steps=40, elems=20_000)
        assert jobs.start(network, plan).later("losses") == [0] * HOSTS


def test_overflowing_queues_are_recovered(kind: str, tmp_path: Path) -> None:
    """Windows that the switch's ports cannot bear. How soon BMv2's own queues are full depends on
    the machine, so that each port gets a short queue of the kernel's behind it."""
    config = '[jobs]\nslots = 4096\n[congestion]\nalgorithm = "fixed"'
    with running(star(HOSTS), kind, tmp_path, target="soft", config=config) as network:
        for place in network.plan.switches:
            switch = network.net[place.name]
            for port, interface in switch.intfs.items():
                if port != CONTROL_PORT:
                    assert switch.cmd(f"tc qdisc replace dev {interface} root {SHORT_QUEUE}") == ""
        stats = jobs.start(network, jobs.plan_of("wide", HOSTS, steps=2, elems=10_000)).finish()
    assert all(one["in_flight_limit"] > 16 * BMV2_WINDOW for one in stats)
    assert all(one["retransmissions"] > 0 for one in stats), "no queue has overflowed"
