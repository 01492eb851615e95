"""UDP ports where addresses and routes are not the plain loopback's."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from ina._native import switch as native
from tests.switch.ports.conftest import Reflector, wait_until
from tests.worlds.processes.namespaces import hosts, ip

Make = Callable[..., Reflector]
Run = Callable[..., native.PortLoop]


def any_port(number: int = 1) -> native.UdpPort:
    return native.UdpPort(number, 0, 0, 17760, 0.0, 0)


def test_a_wildcard_port_answers_from_the_address_that_was_asked(
    reflector: Make, run_loop: Run
) -> None:
    """Bound to 0.0.0.0: each frame names the address that its datagram was sent to."""
    port = any_port()
    loop = run_loop([port], reflector(answer=True))
    udp_port = port.bound[1]
    for address in ("127.0.0.1", "127.0.0.77"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
            host.settimeout(5)
            host.sendto(b"x", (address, udp_port))
            assert host.recvfrom(10) == (b"x", (address, udp_port))
    pipeline = reflector(to_port=510)
    loop.set_pipeline(pipeline.pipeline, pipeline.state)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
        host.sendto(b"x", ("127.0.0.77", udp_port))
        frame = loop.next_cpu_packet(5_000_000_000)
    assert frame is not None
    assert Ether(frame)[IP].dst == "127.0.0.77"
    assert Ether(frame).dst == "02:00:7f:00:00:4d"


def test_what_does_not_fit_the_mtu_goes_in_fragments(reflector: Make, run_loop: Run) -> None:
    """UDP_SEGMENT refuses datagrams over the MTU; they are sent one by one then, and all arrive."""
    with hosts(1) as (host,), host.inside():
        ip("-n", host.namespace, "link", "set", "lo", "mtu", "1300")
        sender, receiver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        loopback = int(ipaddress.IPv4Address("127.0.0.1"))
        port = native.UdpPort(1, loopback, 0, 17760, 0.0, 0)
        with sender, receiver:
            receiver.bind(("127.0.0.1", 0))
            receiver.settimeout(5)
            udp_port = receiver.getsockname()[1]
            loop = run_loop([port], reflector(udp_port=udp_port, copies=1))
            payload = bytes(range(250)) * 6
            frame_count = 20
            sender.sendto(payload, ("127.0.0.1", port.bound[1]))
            assert receiver.recv(65536) == payload
            # In one batch, so that they would be one super-datagram.
            copies = reflector(udp_port=0, copies=frame_count)
            loop.set_pipeline(copies.pipeline, copies.state)
            headers = Ether() / IP(dst="127.0.0.1") / UDP(dport=udp_port)
            assert loop.inject(1, bytes(headers / Raw(payload)))
            assert [receiver.recv(65536) for _ in range(frame_count)] == [payload] * frame_count
    wait_until(lambda: port.stats()["tx_packets"] == 1 + frame_count, "all counted")
    assert port.stats()["failed_packets"] == 0
