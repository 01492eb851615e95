"""AF_PACKET ports between network namespaces: what a kernel leaves to hardware is completed."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from ina._native import switch as native
from tests.switch.ports.conftest import OTHER_PORT, Reflector, wait_until
from tests.worlds.processes.namespaces import Host, hosts, ip

UDP_SEGMENT = 103
Run = Callable[..., native.PortLoop]
Make = Callable[..., Reflector]


@pytest.fixture
def pair() -> Iterator[list[Host]]:
    with hosts(2) as found:
        yield found


def port_of(host: Host, number: int = 1) -> native.AfPacketPort:
    return native.AfPacketPort(number, host.interface, 0.0, 0)


def of_udp(loop: native.PortLoop) -> bytes:
    """The next frame at the CPU port that is IPv4/UDP (kernels also send IPv6 of their own)."""
    while True:
        frame = loop.next_cpu_packet(5_000_000_000)
        assert frame is not None
        if frame[12:14] == b"\x08\x00" and frame[23] == 17:
            return frame


def checksums_hold(frame: bytes) -> bool:
    packet = Ether(frame)
    layer = UDP if UDP in packet else TCP
    stated = (packet[IP].chksum, packet[layer].chksum)
    del packet[IP].chksum, packet[layer].chksum
    again = Ether(bytes(packet))
    return stated == (again[IP].chksum, again[layer].chksum)


def test_checksums_are_completed(reflector: Make, run_loop: Run, pair: list[Host]) -> None:
    """veth hands over frames whose UDP checksum was left to a card that there is not."""
    host, other = pair
    loop = run_loop([port_of(host)], reflector(to_port=510))
    with host.udp_socket() as sock:
        for size in (0, 1, 24, 1048, 1472):
            sock.sendto(b"v" * size, (other.address, 17760))
            frame = of_udp(loop)
            assert checksums_hold(frame)
            assert len(frame) == 42 + size


@pytest.mark.parametrize("size", [24, 280, 1048])
def test_super_frames_are_cut(reflector: Make, run_loop: Run, pair: list[Host], size: int) -> None:
    host, other = pair
    loop = run_loop([port_of(host)], reflector(to_port=510))
    segments = [bytes([i]) * size for i in range(30)] + [b"end"]
    with host.udp_socket() as sock:
        control = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", size))]
        sock.sendmsg([b"".join(segments)], control, 0, (other.address, 17760))
        frames = [of_udp(loop) for _ in segments]
    assert [frame[42:] for frame in frames] == segments
    assert all(checksums_hold(frame) for frame in frames)
    assert all(Ether(frame)[IP].len == len(frame) - 14 for frame in frames)


def test_tcp_flows_through(reflector: Make, run_loop: Run, pair: list[Host]) -> None:
    """Between two hosts: TCP's large segments are cut, and a megabyte arrives."""
    first, second = pair
    run_loop([port_of(first, 1), port_of(second, 2)], reflector(to_port=OTHER_PORT))
    data = bytes(range(256)) * 4096
    with second.inside():
        server = socket.create_server((second.address, 0))
    server.settimeout(10)
    with first.inside():
        client = socket.socket()
    client.settimeout(10)
    received = bytearray()

    def take() -> None:
        connection, _ = server.accept()
        with connection:
            connection.settimeout(10)
            while part := connection.recv(65536):
                received.extend(part)

    thread = threading.Thread(target=take)
    thread.start()
    with client, server:
        client.connect(server.getsockname())
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        thread.join(20)
    assert bytes(received) == data


def test_answers_reach_the_host(reflector: Make, run_loop: Run, pair: list[Host]) -> None:
    host, other = pair
    port = port_of(host)
    run_loop([port], reflector(answer=True))
    with host.udp_socket() as sock:
        sock.sendto(b"values", (other.address, 17760))
        assert sock.recvfrom(100) == (b"values", (other.address, 17760))
    # Its own frames are not heard again: one in, one out.
    wait_until(lambda: port.stats()["tx_packets"] >= 1, "sent")
    stats = port.stats()
    assert stats["rx_packets"] == stats["tx_packets"]


def test_vlan_tags_are_put_back(reflector: Make, run_loop: Run, pair: list[Host]) -> None:
    host, _ = pair
    loop = run_loop([port_of(host)], reflector(to_port=510))
    frame = bytes(Ether(dst="02:00:00:00:00:99") / Dot1Q(vlan=7, prio=3) / Raw(b"tagged" * 10))
    with host.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("eth0", 0))
        raw.send(frame)
    while (heard := loop.next_cpu_packet(5_000_000_000)) != frame:
        assert heard is not None


def test_wrong_checksums_are_dropped(reflector: Make, run_loop: Run, pair: list[Host]) -> None:
    """Of what is to the aggregation; what is not goes on to its receiver, who checks it."""
    host, other = pair
    port = port_of(host)
    loop = run_loop([port], reflector(to_port=510))

    def frame(payload: bytes, to: int = 17760) -> bytes:
        ethernet = Ether(src=host.mac, dst=other.mac)
        return bytes(ethernet / IP(src=host.address, dst=other.address) / UDP(dport=to) / payload)

    wrong = bytearray(frame(b"values"))
    wrong[-1] ^= 0x10
    ordinary = bytearray(frame(b"values", to=17761))
    ordinary[-1] ^= 0x10
    without = bytearray(wrong)
    without[40:42] = bytes(2)
    right = frame(b"values")
    with host.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("eth0", 0))
        for each in (wrong, ordinary, without, right):
            raw.send(each)
    assert [of_udp(loop) for _ in range(3)] == [bytes(ordinary), bytes(without), right]
    assert port.stats()["wrong_checksum_packets"] == 1


def test_frames_over_the_mtu_are_counted(reflector: Make, run_loop: Run, pair: list[Host]) -> None:
    port = port_of(pair[0])
    loop = run_loop([port], reflector())
    assert loop.inject(1, bytes(Ether() / Raw(bytes(3000))))
    wait_until(lambda: port.stats()["failed_packets"] == 1, "counted")


def test_an_interface_that_goes_away(reflector: Make, run_loop: Run, pair: list[Host]) -> None:
    """The loop goes on with its other ports."""
    gone, kept = port_of(pair[0], 1), port_of(pair[1], 2)
    loop = run_loop([gone, kept], reflector(answer=True))
    ip("link", "del", pair[0].interface)
    assert loop.inject(1, bytes(Ether() / Raw(bytes(60))))
    wait_until(lambda: gone.stats()["failed_packets"] == 1, "counted")
    with pair[1].udp_socket() as sock:
        sock.sendto(b"still", (pair[0].address, 17760))
        assert sock.recv(100) == b"still"
