"""A soft switch with its controller, and somebody on the way between it and the workers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from ina.controller.config import Config, make_config
from ina.protocol.peer import Peer
from ina.switch.ports import AfPacketPort, Port, UdpPort
from ina.switch.server import SoftSwitch
from tests.flips.jobs import SLOTS, VALUES, WORKERS
from tests.worlds.fakes.cable import cables
from tests.worlds.fakes.stranger import (
    SWITCH_ADDRESS,
    SWITCH_MAC,
    SWITCH_UDP_PORT,
    inside_of,
    scene,
)
from tests.worlds.fakes.tap import Meddler, Tap
from tests.worlds.processes.namespaces import hosts, ip

_LOSS = 0.005
"""So that some results are read from the slots once more."""

Way = Callable[[Meddler], contextlib.AbstractContextManager[object]]


@dataclass
class Place:
    """Where jobs can be."""

    controller: str
    switch: SoftSwitch
    hosts: Sequence[str | None]
    """Addresses of the workers."""
    way: Way
    """Within it, what workers and switch send each other passes a meddler."""


def config_of(grpc_addr: str, table: Sequence[dict[str, Any]] = (), **switch: Any) -> Config:
    return make_config(
        {
            "listen": "127.0.0.1:0",
            "switch": {"grpc_addr": grpc_addr, "values": VALUES, **switch},
            "jobs": {"slots": SLOTS},
            "host": list(table),
        },
        "test",
    )


@contextlib.contextmanager
def at_udp_ports() -> Iterator[Place]:
    """One port, and between it and each worker's socket another one."""
    switch = SoftSwitch([UdpPort(1)], loss_rate=_LOSS)

    def config(grpc_addr: str) -> Config:
        address, port = switch.udp_address(1)
        return config_of(grpc_addr, data_host=address, data_udp_port=port)

    @contextlib.contextmanager
    def way(meddle: Meddler) -> Iterator[None]:
        taps: list[Tap] = []

        def opened(to: Peer, own_host: str | None = None) -> Any:
            if len(taps) >= WORKERS:  # of a job that has ended
                taps.pop(0).__exit__(None, None, None)
            taps.append(Tap(meddle=meddle))
            return taps[-1].open(to, own_host)

        with mock.patch("ina.host.udp.open_socket", opened):
            yield
        for tap in taps:
            tap.__exit__(None, None, None)

    with scene(switch, config) as found:
        yield Place(found.app.listen_addr, switch, [None] * WORKERS, way)


@contextlib.contextmanager
def at_packet_sockets() -> Iterator[Place]:
    """A port for each worker, which is in a namespace of its own."""
    with contextlib.ExitStack() as stack:
        machines = stack.enter_context(hosts(WORKERS))
        for host in machines:
            ip(*("-n", host.namespace, "neigh", "add", SWITCH_ADDRESS),
               *("lladdr", SWITCH_MAC, "dev", "eth0"))  # fmt: skip
        between = stack.enter_context(cables(machines))
        ports: list[Port] = [AfPacketPort(n, end) for n, end in enumerate(between.ports, 1)]
        table = [{"address": h.address, "port": n, "mac": h.mac} for n, h in enumerate(machines, 1)]

        def config(grpc_addr: str) -> Config:
            where = {"data_host": SWITCH_ADDRESS, "data_udp_port": SWITCH_UDP_PORT}
            return config_of(grpc_addr, table, **where)

        @contextlib.contextmanager
        def way(meddle: Meddler) -> Iterator[None]:
            before, between.meddle = between.meddle, meddle
            try:
                with mock.patch("ina.host.udp.open_socket", inside_of(machines)):
                    yield
            finally:
                between.meddle = before

        found = stack.enter_context(scene(SoftSwitch(ports, loss_rate=_LOSS), config))
        yield Place(found.app.listen_addr, found.switch, [h.address for h in machines], way)
