"""Ports whose datagrams are whole frames, with real sockets on the loopback interface."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator

import pytest

from ina._native import switch as native
from ina.switch.ports import FramesPort, InvalidPortError, check_port, parse_port
from tests.switch.ports.conftest import Reflector, wait_until

LOOPBACK = int(ipaddress.IPv4Address("127.0.0.1"))
A, B, NOBODY = (bytes([2, 0, 0, 0, 0, n]) for n in (1, 2, 3))
EVERYBODY = b"\xff" * 6

Make = Callable[..., Reflector]
Run = Callable[..., native.PortLoop]


@pytest.fixture
def hosts() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        for sock in (one, other):
            sock.bind(("127.0.0.1", 0))
            sock.settimeout(5)
        yield one, other


def frame(to: bytes, source: bytes, text: bytes = b"") -> bytes:
    return to + source + b"\x12\x34" + text


def test_a_frame_comes_back_to_its_socket(
    reflector: Make, run_loop: Run, hosts: tuple[socket.socket, socket.socket]
) -> None:
    """The reflector sends it as it came: to the address that it was for, which is B's."""
    port = native.FramesPort(1, LOOPBACK, 0, 0.0, 0)
    run_loop([port], reflector(answer=False, to_port=1))
    address, udp_port = port.bound
    assert address == LOOPBACK
    one, other = hosts
    there = ("127.0.0.1", udp_port)
    other.sendto(frame(B, B), there)  # so that it is known
    assert other.recv(2048) == frame(B, B)
    one.sendto(frame(B, A, b"x" * 4000), there)
    assert other.recv(8192) == frame(B, A, b"x" * 4000)
    for unknown in (NOBODY, EVERYBODY):
        one.sendto(frame(unknown, A), there)
        assert one.recv(2048) == other.recv(2048) == frame(unknown, A)
    one.sendto(b"short", there)
    wait_until(lambda: port.stats()["malformed_packets"] == 1, "counted")
    assert port.stats()["rx_packets"] == 5


def test_who_moves_is_found_where_it_sends_from(
    reflector: Make, run_loop: Run, hosts: tuple[socket.socket, socket.socket]
) -> None:
    port = native.FramesPort(1, LOOPBACK, 0, 0.0, 0)
    run_loop([port], reflector(answer=False, to_port=1))
    there = ("127.0.0.1", port.bound[1])
    for sock in hosts:
        sock.sendto(frame(A, A, b"here"), there)
        assert sock.recv(2048) == frame(A, A, b"here")


def test_losses_on_purpose_are_counted(
    reflector: Make, run_loop: Run, hosts: tuple[socket.socket, socket.socket]
) -> None:
    port = native.FramesPort(1, LOOPBACK, 0, 1.0, 7)
    run_loop([port], reflector(answer=False, to_port=1))
    hosts[0].sendto(frame(A, A), ("127.0.0.1", port.bound[1]))
    wait_until(lambda: port.stats()["loss_in_packets"] == 1, "lost")


def test_how_it_is_written() -> None:
    assert parse_port("3=frames:10.0.0.1:9000") == FramesPort(3, "10.0.0.1", 9000)
    assert parse_port("3=frames:") == FramesPort(3)
    for bad in (FramesPort(1, "host"), FramesPort(1, udp_port=65536)):
        with pytest.raises(InvalidPortError):
            check_port(bad)
