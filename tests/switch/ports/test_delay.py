"""A delay: every packet leaves so much later, in order, and not one of them early."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ina._native import switch as native
from ina.errors import InvalidInputError
from ina.switch.ports import UdpPort
from ina.switch.server import MAX_DELAY_US, SoftSwitch
from tests.switch.ports.conftest import Reflector, wait_until
from tests.switch.ports.pcap_files import frames_of, pcap_bytes

HOUR_NS = 3_600_000_000_000
MOST_PACKETS = 65536
LOOPBACK = 0x7F000001


def read_all(
    tmp_path: Path,
    run_loop: Callable[..., native.PortLoop],
    pipeline: Reflector,
    frames: list[bytes],
    delay_ns: int,
) -> tuple[native.PcapPort, native.PortLoop, Path]:
    source, target = tmp_path / "in.pcap", tmp_path / "out.pcap"
    source.write_bytes(pcap_bytes(frames))
    port = native.PcapPort(1, str(source), str(target), 0.0, 0)
    port.set_delay(delay_ns)
    loop = run_loop([port], pipeline)
    wait_until(lambda: port.stats()["finished"] == 1, "file read")
    return port, loop, target


def test_order_is_kept(
    tmp_path: Path, reflector: Callable[..., Reflector], run_loop: Callable[..., native.PortLoop]
) -> None:
    frames = [i.to_bytes(14, "big") for i in range(3000)]
    port, loop, target = read_all(tmp_path, run_loop, reflector(copies=2), frames, 20_000_000)
    wait_until(lambda: port.stats()["tx_packets"] == 2 * len(frames), "all sent")
    loop.stop()
    assert frames_of(target) == [frame for frame in frames for _ in range(2)]


def test_what_is_not_due_stays_and_too_many_are_dropped(
    tmp_path: Path, reflector: Callable[..., Reflector], run_loop: Callable[..., native.PortLoop]
) -> None:
    frames = [bytes(14)] * (MOST_PACKETS + 5)
    port, loop, target = read_all(tmp_path, run_loop, reflector(), frames, HOUR_NS)
    wait_until(lambda: port.stats()["blocked_packets"] == 5, "five too many")
    loop.stop()
    assert (port.stats()["tx_packets"], frames_of(target)) == (0, [])


@pytest.mark.parametrize("copies", [1, 3])
def test_no_packet_is_early(
    reflector: Callable[..., Reflector], run_loop: Callable[..., native.PortLoop], copies: int
) -> None:
    """Over UDP, where copies come in two parts, and whose memory the next packets take."""
    delay_ns = 5_000_000
    port = native.UdpPort(1, LOOPBACK, 0, 17760, 0.0, 0)
    port.set_delay(delay_ns)
    pipeline = reflector(answer=True, copies=copies)
    run_loop([port], pipeline)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.connect(("127.0.0.1", port.bound[1]))
        for number in range(20):
            sent_ns = time.monotonic_ns()
            packets = [bytes([number, i]) * 400 for i in range(4)]
            for packet in packets:
                sock.send(packet)
            got = [sock.recv(2000) for _ in range(copies * len(packets))]
            assert time.monotonic_ns() - sent_ns >= delay_ns
            assert got == [packet for packet in packets for _ in range(copies)]


@pytest.mark.parametrize("delay_us", [-1, MAX_DELAY_US + 1])
def test_a_delay_has_bounds(delay_us: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"delay {delay_us} us: not in 0\.\.10000000"):
        SoftSwitch([UdpPort(1)], delay_us=delay_us)
