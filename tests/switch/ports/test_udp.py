"""UDP ports, with real sockets on the loopback interface."""

from __future__ import annotations

import contextlib
import ipaddress
import random
import socket
import struct
from collections.abc import Callable, Iterator

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from ina._native import switch as native
from tests.switch.ports.conftest import Reflector, wait_until

LOOPBACK = int(ipaddress.IPv4Address("127.0.0.1"))
UDP_SEGMENT = 103
UDP_GRO = 104

Make = Callable[..., Reflector]
Run = Callable[..., native.PortLoop]


def udp_port(number: int = 1, loss: float = 0.0, seed: int = 0) -> native.UdpPort:
    return native.UdpPort(number, LOOPBACK, 0, 17760, loss, seed)


def address_of(port: native.UdpPort) -> tuple[str, int]:
    address, number = port.bound
    return str(ipaddress.IPv4Address(address)), number


@pytest.fixture
def host() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        sock.settimeout(5)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        yield sock


def received(sock: socket.socket, count: int) -> list[bytes]:
    return [sock.recv(65536) for _ in range(count)]


@pytest.mark.parametrize("size", [0, 1, 24, 1048, 9000, 65507])
def test_a_datagram_comes_back(
    reflector: Make, run_loop: Run, host: socket.socket, size: int
) -> None:
    port = udp_port()
    run_loop([port], reflector(answer=True))
    payload = random.Random(size).randbytes(size)
    host.sendto(payload, address_of(port))
    data, source = host.recvfrom(65536)
    assert data == payload
    assert source == address_of(port)
    wait_until(lambda: port.stats()["tx_packets"] == 1, "counted")
    assert port.stats()["rx_bytes"] == port.stats()["tx_bytes"] == size + 42


def test_the_frame_the_program_sees(reflector: Make, run_loop: Run, host: socket.socket) -> None:
    port = udp_port()
    loop = run_loop([port], reflector(to_port=510))
    host.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0x2B)
    host.sendto(b"values", address_of(port))
    raw = loop.next_cpu_packet(5_000_000_000)
    assert raw is not None
    frame = Ether(raw)
    ip, udp = frame[IP], frame[UDP]
    assert (frame.src, frame.dst) == ("02:00:7f:00:00:01",) * 2
    assert (ip.src, ip.dst, ip.tos, ip.flags, ip.ttl) == ("127.0.0.1", "127.0.0.1", 0x2B, "DF", 64)
    assert (udp.sport, udp.dport) == (host.getsockname()[1], 17760)
    assert bytes(udp.payload) == b"values"
    stated = ip.chksum
    del ip.chksum
    assert IP(bytes(ip)).chksum == stated


@pytest.mark.parametrize("size", [1, 24, 280, 1048, 1472])
def test_a_super_datagram_is_many_packets(
    reflector: Make, run_loop: Run, host: socket.socket, size: int
) -> None:
    port = udp_port()
    loop = run_loop([port], reflector(to_port=510))
    segments = [bytes([i]) * size for i in range(40)] + [b"tail"[:size]]
    try:
        host.sendmsg(
            [b"".join(segments)], [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", size))],
            0, address_of(port),
        )  # fmt: skip
    except OSError:
        pytest.skip("this kernel has no UDP_SEGMENT")
    frames = [loop.next_cpu_packet(5_000_000_000) for _ in segments]
    assert [frame and frame[42:] for frame in frames] == segments
    for frame in frames:
        assert frame is not None
        ip = Ether(frame)[IP]
        assert ip.len == len(frame) - 14
        stated = ip.chksum
        del ip.chksum
        assert IP(bytes(ip)).chksum == stated


def test_super_datagrams_of_changing_sizes(
    reflector: Make, run_loop: Run, host: socket.socket
) -> None:
    """The port guesses where segments will lie: right, wrong, too many, too few, and alone."""
    port = udp_port()
    loop = run_loop([port], reflector(to_port=510))
    rng = random.Random(8)
    sizes = [1048, 1048, 1048, 24, 1048, 280, 280, 1, 1472, 700, 700]
    counts = [40, 40, 3, 1, 40, 40, 40, 40, 40, 1, 20]
    for size, count in [
        *zip(sizes, counts, strict=True),
        (0, 1),
        (1048, 1),
        (24, 20),
        (64, 60),
        (1048, 40),
    ]:
        segments = [rng.randbytes(size) for _ in range(count)]
        if count > 3:
            segments.append(rng.randbytes(rng.randrange(1, size + 1)))
        control = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", size))] if count > 1 else []
        try:
            host.sendmsg([b"".join(segments)], control, 0, address_of(port))
        except OSError:
            pytest.skip("this kernel has no UDP_SEGMENT")
        frames = [loop.next_cpu_packet(5_000_000_000) for _ in segments]
        assert [frame and frame[42:] for frame in frames] == segments, (size, count)
        for frame in frames:
            assert frame is not None
            assert Ether(frame)[IP].len == len(frame) - 14


def test_copies_are_coalesced_for_each_receiver(
    reflector: Make, run_loop: Run, host: socket.socket
) -> None:
    """4 consecutive UDP ports each get all packets, in order, of the sizes they were sent in."""
    receivers = _consecutive_ports(4)
    port = udp_port()
    loop = run_loop([port])
    for receiver in receivers:
        receiver.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    sizes = [1048] * 70 + [24] * 3 + [1048] * 5 + [0, 0] + [1472] * 50
    payloads = [
        struct.pack("!I", i)[-size:] * (size // 4) if size else b"" for i, size in enumerate(sizes)
    ]
    pipeline = reflector(copies=4, udp_port=receivers[0].getsockname()[1])
    loop.set_pipeline(pipeline.pipeline, pipeline.state)
    for payload in payloads:
        host.sendto(payload, address_of(port))
    for receiver in receivers:
        assert list(_segments(receiver, len(payloads))) == payloads
        receiver.close()
    assert port.stats()["tx_packets"] == 4 * len(payloads)
    assert port.stats()["failed_packets"] == 0


def _segments(sock: socket.socket, count: int) -> Iterator[bytes]:
    while count > 0:
        data, control, _, _ = sock.recvmsg(65536, 256)
        size = next((struct.unpack("=i", v)[0] for _, k, v in control if k == UDP_GRO), len(data))
        parts = [data[i : i + size] for i in range(0, len(data), size)] if data else [b""]
        count -= len(parts)
        yield from parts


def _consecutive_ports(count: int) -> list[socket.socket]:
    rng = random.Random()
    for _ in range(100):
        first = rng.randrange(20000, 30000)
        sockets: list[socket.socket] = []
        try:
            for i in range(count):
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                sockets.append(sock)
                # Room for packets that a busy machine's loop sends one by one.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
                sock.bind(("127.0.0.1", first + i))
                sock.settimeout(5)
            return sockets
        except OSError:
            for sock in sockets:
                sock.close()
    raise AssertionError("no free ports")


def test_tos_is_sent_as_the_frame_says(reflector: Make, run_loop: Run, host: socket.socket) -> None:
    host.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    port = udp_port()
    run_loop([port], reflector(answer=True, tos=3))  # CE
    host.sendto(b"x", address_of(port))
    _, control, _, _ = host.recvmsg(100, 100)
    assert [value[0] for _, kind, value in control if kind == socket.IP_TOS] == [3]


def test_what_udp_cannot_carry_is_counted(reflector: Make, run_loop: Run) -> None:
    port = udp_port()
    loop = run_loop([port], reflector())
    whole = bytes(Ether() / IP(src="127.0.0.1", dst="127.0.0.1") / UDP(sport=9, dport=9) / b"data")
    bad = [
        b"",
        whole[:41],
        bytes(Ether(type=0x0806)) + b"\0" * 60,  # ARP
        bytes(Ether() / IP(proto=6, dst="127.0.0.1") / Raw(bytes(40))),  # TCP
        bytes(Ether() / IP(dst="127.0.0.1", flags="MF") / UDP(dport=9) / b"data"),
        bytes(Ether() / IP(dst="127.0.0.1", frag=3) / UDP(dport=9) / b"data"),
        bytes(Ether() / IP(dst="127.0.0.1", ihl=15) / UDP(dport=9) / b"data"),
        bytes(Ether() / IP(dst="127.0.0.1", len=9000) / UDP(dport=9) / b"data"),
        bytes(Ether() / IP(dst="127.0.0.1") / UDP(dport=9, len=900) / b"data"),
        bytes(Ether() / IP(dst="127.0.0.1") / UDP(dport=9, len=7) / b"data"),
        bytes(Ether() / IP(dst="127.0.0.1") / UDP(dport=0) / b"data"),
        bytes(Ether() / IP(dst="127.0.0.1") / UDP(dport=address_of(port)[1]) / b"loop"),
    ]
    for frame in bad:
        assert loop.inject(1, frame)
    wait_until(lambda: port.stats()["undeliverable_packets"] == len(bad), "all counted")
    assert port.stats()["tx_packets"] == 0


def test_options_of_the_ip_header_are_skipped(
    reflector: Make, run_loop: Run, host: socket.socket
) -> None:
    loop = run_loop([udp_port()], reflector())
    ip = bytes(Ether() / IP(dst="127.0.0.1", ihl=6, proto=17, len=36))
    udp = bytes(UDP(dport=host.getsockname()[1], len=12))
    assert loop.inject(1, ip + b"\1\1\1\0" + udp + b"data")
    assert host.recv(100) == b"data"


def test_no_pipeline_no_forwarding(run_loop: Run, host: socket.socket) -> None:
    port = udp_port()
    run_loop([port])
    for _ in range(3):
        host.sendto(b"x", address_of(port))
    wait_until(lambda: port.stats()["no_pipeline_packets"] == 3, "dropped")


def test_depth_restarts_at_every_batch(reflector: Make, run_loop: Run, host: socket.socket) -> None:
    """Queue depth is what waits in a batch, so it cannot grow from batch to batch."""
    port = udp_port()
    pipeline = reflector(answer=True)
    run_loop([port], pipeline)
    for _ in range(2000):
        host.sendto(b"x", address_of(port))
        host.recv(100)
    assert pipeline.max_depth < 512


def test_pipelines_are_swapped_under_load(
    reflector: Make, run_loop: Run, host: socket.socket
) -> None:
    """After set_pipeline() returns, the old state may be freed."""
    port = udp_port()
    loop = run_loop([port], reflector(answer=True))
    host.setblocking(False)
    for round_ in range(300):
        for _ in range(20):
            host.sendto(b"x", address_of(port))
        fresh = reflector(answer=bool(round_ % 2))
        loop.set_pipeline(fresh.pipeline, fresh.state)
    wait_until(
        lambda: port.stats()["rx_packets"] + port.stats()["kernel_drop_packets"] >= 6000, "drained"
    )


def test_a_taken_port_is_an_oserror() -> None:
    port = udp_port()
    with pytest.raises(OSError, match="bind"):
        native.UdpPort(2, LOOPBACK, port.bound[1], 17760, 0.0, 0)


def test_small_buffers_are_many(reflector: Make, run_loop: Run) -> None:
    """Where the kernel grants little, several sockets share the address; senders notice nothing."""
    port = native.UdpPort(1, LOOPBACK, 0, 17760, 0.0, 0, socket_buffer_bytes=100_000)
    assert port.stats()["receive_buffer_bytes"] > 2_000_000
    run_loop([port], reflector(answer=True))
    with contextlib.ExitStack() as stack:
        for i in range(40):
            sock = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sock.settimeout(5)
            for k in range(5):
                sock.sendto(bytes([i, k]), address_of(port))
            answers = [sock.recvfrom(10) for _ in range(5)]
            assert answers == [(bytes([i, k]), address_of(port)) for k in range(5)]
    with pytest.raises(OSError, match="bind"):
        native.UdpPort(2, LOOPBACK, port.bound[1], 17760, 0.0, 0)
    wait_until(lambda: port.stats()["tx_packets"] == 200, "counted")


def test_buffers_granted_are_told() -> None:
    stats = udp_port().stats()
    assert stats["receive_buffer_bytes"] > 0
    assert stats["send_buffer_bytes"] > 0
