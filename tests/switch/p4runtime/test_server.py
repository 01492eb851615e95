"""SoftSwitch as its users in ina have it: start, stop, statistics, failures that leave nothing."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from finsy.proto import p4r
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.errors import InvalidInputError, UnavailableError
from ina.protocol.bth import ROCE_UDP_PORT
from ina.switch.errors import InvalidProgramError
from ina.switch.p4runtime.status import StatusError
from ina.switch.ports import (
    AddressError,
    AfPacketPort,
    InvalidPortError,
    PcapPort,
    Port,
    PortInUseError,
    UdpPort,
    parse_port,
)
from ina.switch.server import SoftSwitch
from ina.switch.targets import default_target
from tests.switch.ports.conftest import wait_until
from tests.switch.ports.pcap_files import frames_of, pcap_bytes
from tests.worlds.fakes.p4runtime import Client, entry, exact, features_config, lpm, update


def open_files() -> list[str]:
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return sorted(link for link in links if "socket" in link or "event" in link or "pcap" in link)


def test_stop_closes_what_start_opened(tmp_path: Path) -> None:
    SoftSwitch([UdpPort(1)]).stop()  # never started

    def use() -> None:
        with SoftSwitch([UdpPort(1), PcapPort(2, write=tmp_path / "o.pcap")]) as switch:
            with Client(switch.grpc_addr) as client:
                client.become_primary()
            wait_until(lambda: any("o.pcap" in name for name in open_files()), "opened")

    use()  # gRPC keeps some descriptors for as long as the process may want them
    before, threads = open_files(), threading.active_count()
    for _ in range(5):
        use()
    wait_until(lambda: len(open_files()) <= len(before), "descriptors are closed")
    wait_until(lambda: threading.active_count() <= threads, "threads are gone")


def test_after_stop() -> None:
    switch = SoftSwitch([UdpPort(1)])
    with pytest.raises(UnavailableError):
        switch.stats()
    with switch:
        pass
    switch.stop()
    assert switch.stats().ports[1].rx_packets == 0
    with pytest.raises(UnavailableError):
        switch.start()
    with pytest.raises(UnavailableError):
        switch.preload(features_config())


def test_a_failed_start_leaves_nothing(tmp_path: Path) -> None:
    with SoftSwitch([UdpPort(1)]) as first:
        taken = first.udp_address(1)[1]
        free = UdpPort(1, udp_port=_free_port())
        for ports, grpc_addr in (
            ([free, UdpPort(2, udp_port=taken)], "127.0.0.1:0"),
            ([free], first.grpc_addr),
            ([free], "192.0.2.1:0"),
        ):
            with pytest.raises((PortInUseError, AddressError)) as info:
                SoftSwitch(ports, grpc_addr=grpc_addr).start()
            assert str(taken) in str(info.value) or grpc_addr.split(":")[0] in str(info.value)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", free.udp_port))
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(pcap_bytes([b"x" * 20])[:-1])
    with pytest.raises(InvalidPortError, match=r"broken\.pcap, byte 40: the file ends inside"):
        SoftSwitch([PcapPort(1, broken)]).start()


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SoftSwitch([UdpPort(1), UdpPort(1)]),
        lambda: SoftSwitch([UdpPort(510)]),
        lambda: SoftSwitch([UdpPort(1, frame_udp_port=0)]),
        lambda: SoftSwitch([UdpPort(1, host="::1")]),
        lambda: SoftSwitch([PcapPort(1)]),
        lambda: SoftSwitch([AfPacketPort(1, "a-name-of-16-byt")]),
        lambda: SoftSwitch([], loss_rate=-0.1),
        lambda: SoftSwitch([], loss_rate=float("nan")),
        lambda: SoftSwitch([], device_id=-1),
        lambda: SoftSwitch([], device_id=1 << 64),
    ],
)
def test_wrong_arguments(wrong: type[SoftSwitch]) -> None:
    with pytest.raises(InvalidInputError):
        wrong()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("1=udp:", UdpPort(1)),
        ("1=udp:10.0.0.1:99", UdpPort(1, "10.0.0.1", 99)),
        ("0=afpacket:veth0", AfPacketPort(0, "veth0")),
        ("3=pcap:in.pcap,out.pcap", PcapPort(3, Path("in.pcap"), Path("out.pcap"))),
        ("3=pcap:,out.pcap", PcapPort(3, None, Path("out.pcap"))),
        ("3=pcap:in.pcap", PcapPort(3, Path("in.pcap"), None)),
        ("1=rocev2:127.0.0.1:17760", UdpPort(1, "127.0.0.1", 17760, ROCE_UDP_PORT)),
    ],
)
def test_port_specs(text: str, port: Port) -> None:
    assert parse_port(text) == port


def test_preload(switch: SoftSwitch) -> None:
    bad = features_config()
    bad.p4_device_config = b"{"
    with pytest.raises(StatusError) as info:
        switch.preload(bad)
    assert isinstance(info.value.__cause__, InvalidProgramError)
    switch.preload(features_config())
    with Client(switch.grpc_addr) as client:
        assert client.get_config().config == features_config()


def test_packets_from_a_file_through_the_program_to_files(tmp_path: Path, cache_dir: Path) -> None:
    """pcap in, a table that a client filled, two pcaps out."""
    source, left, right = (tmp_path / name for name in ("in.pcap", "left.pcap", "right.pcap"))
    frames = [
        bytes(Ether(dst="00:00:00:00:00:05", src="00:00:00:00:00:01") / IP(dst=dst) / UDP())
        for dst in ("10.1.0.1", "10.2.0.1", "10.2.0.2")
    ]
    source.write_bytes(pcap_bytes(frames))
    ports = [PcapPort(1, source), PcapPort(2, write=left), PcapPort(3, write=right)]
    rows = [
        entry("bridge", "forward", (b"\x02",), match=[exact(b"\x05")]),
        entry("routes", "route", (b"\x03", b"\x07"), match=[lpm(b"\x0a\x02\x00\x00", 16)]),
    ]
    actions = p4r.SetForwardingPipelineConfigRequest
    with SoftSwitch(ports, target=default_target(cache_dir)) as switch:
        with Client(switch.grpc_addr) as client:
            client.become_primary()
            client.set_config(features_config(), actions.VERIFY_AND_SAVE)
            client.write_updates([update("INSERT", table_entry=row) for row in rows])
            assert switch.stats().ports[1].rx_packets == 0  # a file waits for the program
            client.set_config(None, actions.COMMIT)
        wait_until(lambda: switch.stats().ports[1].finished, "the file is read")
    assert frames_of(left) == frames[:1]
    assert frames_of(right) == [b"\0\0\0\0\0\x07" + frame[6:] for frame in frames[1:]]


def test_loss_is_passed_to_every_port(cache_dir: Path) -> None:
    with SoftSwitch(
        [UdpPort(1), UdpPort(2)], loss_rate=1.0, target=default_target(cache_dir)
    ) as switch:
        switch.preload(features_config())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for number in (1, 2):
                sock.sendto(b"lost", switch.udp_address(number))
        wait_until(lambda: switch.stats().loss_in_packets == 2, "both lost")
    assert switch.stats().rx_packets == 2
    assert switch.stats().tx_packets == 0


def test_datagrams_are_forwarded_between_ports(switch: SoftSwitch) -> None:
    """From a host behind port 1 to one behind port 2, by MAC table and by route."""
    rows = [
        entry("bridge", "forward", (b"\x02",), match=[exact(bytes.fromhex("02007f000001"))]),
        entry("routes", "route", (b"\x02", b"\x01"), match=[lpm(b"\x7f\x00\x00\x01", 32)]),
    ]
    with Client(switch.grpc_addr) as client, socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM
    ) as host:  # fmt: skip
        client.become_primary()
        host.bind(("127.0.0.1", 0))
        for sent, row in enumerate(rows):
            client.set_config(features_config())
            client.write("INSERT", table_entry=row)
            host.sendto(b"x", switch.udp_address(1))
            # The frame goes to 127.0.0.1, UDP port 17760: nobody listens, but port 2 sent it.
            wait_until(lambda n=sent: switch.stats().ports[2].tx_packets == n + 1, "sent")  # type: ignore[misc]
