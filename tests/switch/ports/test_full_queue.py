"""A way out that is full: what waits for room does so for 5 ms, then drops and counts."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from ina import netns
from ina._native import switch as native
from ina.host import Session, WorkerOptions
from ina.netns import End
from tests.switch.ports.conftest import Reflector, wait_until
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.processes.namespaces import Host, hosts, ip

OURS = "10.77.0.254"
PACKETS, BYTES, COPIES = 1500, 1400, 60
"""Together more than the 64 MiB that a port's send buffer may have."""
SLOW_BIT_S, BURST_BYTES, QUEUE_BYTES = 1e6, 1600, 400 << 20

Run = Callable[..., native.PortLoop]
Make = Callable[..., Reflector]


@pytest.fixture
def host() -> Iterator[Host]:
    """A host that reaches this process at OURS."""
    with hosts(1) as (made,):
        ip("addr", "add", f"{OURS}/24", "dev", made.interface)
        yield made


def flood(host: Host) -> None:
    with contextlib.closing(host.udp_socket()) as sock:
        for number in range(PACKETS):
            sock.sendto(number.to_bytes(2, "big") * (BYTES // 2), (OURS, 17760))


@pytest.mark.parametrize("kind", ["udp", "afpacket"])
def test_a_port_of_the_switch(reflector: Make, run_loop: Run, host: Host, kind: str) -> None:
    netns.shape(End(None, host.interface), SLOW_BIT_S, BURST_BYTES, QUEUE_BYTES)
    address = int(ipaddress.IPv4Address(OURS))
    port = (
        native.UdpPort(1, address, 17760, 17760, 0.0, 0)
        if kind == "udp"
        else native.AfPacketPort(1, host.interface, 0.0, 0)
    )
    run_loop([port], reflector(answer=True, copies=COPIES))
    flood(host)
    wait_until(lambda: port.stats()["blocked_packets"] > 0, "dropped for want of room")


def test_a_worker(host: Host) -> None:
    """Its packets count as lost, and are sent again in time."""
    netns.shape(End(host.namespace, "eth0"), SLOW_BIT_S, BURST_BYTES, QUEUE_BYTES)
    with contextlib.closing(host.udp_socket()) as sock:
        sock.connect((OURS, 17760))
        session = Session.direct(
            direct_ticket("j", 1, 1, 0, 2, 512, 256, OURS, 17760), sock, WorkerOptions(threads=1)
        )
        with contextlib.closing(session):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            session.all_reduce(np.ones(256 * 1000, np.int32), async_op=True)
            wait_until(lambda: session.stats().send_drops > 0, "lost for want of room")
