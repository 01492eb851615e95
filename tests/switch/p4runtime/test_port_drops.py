"""What ports dropped is read over P4Runtime."""

from __future__ import annotations

import socket

from ina.p4 import compiled
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.port_drops import decode, wanted
from ina.tables.values import PortDrop
from tests.worlds.processes.controllers import until

PACKETS = 5
PROGRAM = compiled(64)


async def test_a_session_is_told_what_ports_dropped() -> None:
    ports = [UdpPort(number, "127.0.0.1", 0) for number in (1, 2)]
    with (
        SoftSwitch(ports, port_loss={2: 1.0}) as switch,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
    ):
        session = await P4RuntimeSession.connect(switch.grpc_addr, 1, PROGRAM)
        try:
            await session.set_pipeline()
            assert await session.read_port_drops() == []
            for _ in range(PACKETS):
                sock.sendto(bytes(100), switch.udp_address(2))
            await until(lambda: switch.stats().ports[2].loss_in_packets == PACKETS)
            dropped = [PortDrop(2, "rx injected_loss", PACKETS)]
            assert await session.read_port_drops() == dropped
            assert decode(switch.read([wanted()])) == dropped
        finally:
            await session.close()
