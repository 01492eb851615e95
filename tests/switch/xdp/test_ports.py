"""Interfaces as ports of the kernel's programs: real frames on virtual cables. Needs root."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from ina import netns
from ina.p4 import compiled, names
from ina.switch.errors import InvalidEntryError
from ina.switch.match import Exact
from ina.switch.pipeline import Pipeline
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import AfPacketPort, InvalidPortError, Port, UdpPort
from ina.switch.targets import xdp_target
from ina.switch.xdp.attached import AttachedPorts
from ina.switch.xdp.features import features_of
from ina.switch.xdp.libbpf import Object, XdpError, library
from ina.switch.xdp.links import XdpMode
from ina.testing.links import Links, cannot_link
from ina.testing.soft_device import cannot_run_xdp

WHY = cannot_run_xdp() or cannot_link()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it can run")
FORWARD, DMAC = "PoolIngress.forwarding.forward", "PoolIngress.forwarding.dmac"
TO_CONTROLLER = "PoolIngress.forwarding.send_to_controller"
MAC, LLDP = 0x02AA0000000B, 0x0180C200000E
PAYLOAD = b"\x88\xb5" + bytes(50)


def frame(mac: int) -> bytes:
    return mac.to_bytes(6, "big") + bytes(6) + PAYLOAD


@pytest.fixture
def links() -> Iterator[Links]:
    with Links(2, switch_outside=True, mtu_bytes=3400) as made:
        yield made


@contextmanager
def attached(ends: Mapping[int, str], mode: XdpMode = XdpMode.native) -> Iterator[PortSet]:
    specs = [AfPacketPort(port, end) for port, end in ends.items()]
    target = xdp_target(at_ports=True, mode=mode)
    made = target.ports(specs, names.CPU_PORT, Impairment())
    made.open()
    made.start()
    try:
        yield made
    finally:
        made.stop()
        made.close()


@pytest.fixture
def ports(links: Links) -> Iterator[PortSet]:
    with attached(links.switch_ends) as made:
        yield made


@pytest.fixture
def pool() -> Iterator[Pipeline]:
    with xdp_target(at_ports=True).load(compiled(64).bmv2_json) as pipeline:
        yield pipeline


def arrived(links: Links, wanted: bytes, most_s: float = 2.0) -> list[int]:
    """By which ports such a frame came, in so much time or as soon as one did."""
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        found = [port for port, data in links.wire.receive(0.1) if data == wanted]
        if found:
            return found
    return []


def test_frames_leave_by_interfaces_and_are_counted(
    links: Links, ports: PortSet, pool: Pipeline
) -> None:
    handle = pool.insert(DMAC, [Exact(MAC)], FORWARD, [2])
    ports.install(pool)
    links.wire.send(1, frame(MAC))
    assert arrived(links, frame(MAC)) == [2]
    assert pool.direct_counter(DMAC, handle) == (1, len(frame(MAC)))
    stats = ports.stats().ports
    assert stats[1].rx_packets >= 1
    assert stats[2].tx_packets >= 1


def test_frames_that_a_port_cannot_send_are_counted(
    links: Links, ports: PortSet, pool: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pool.insert(DMAC, [Exact(MAC)], FORWARD, [2])
    with netns.inside(links.namespace):
        netns.set_offload("eth2", netns.SET_GRO, on=False)
    ports.install(pool)
    end = links.switch_ends[2]
    warned = [it.getMessage() for it in caplog.records if "loses what leaves" in it.message]
    assert features_of(end) is None or [it.split(":")[0] for it in warned] == [
        f"interface {end} loses what leaves by it"
    ]
    for _ in range(5):
        links.wire.send(1, frame(MAC))
    assert arrived(links, frame(MAC), most_s=0.2) == []
    stats = ports.stats().ports
    assert stats[1].kernel_drop_packets + stats[2].failed_packets == 5


def test_another_pipeline_takes_over_and_none_is_left(
    links: Links, ports: PortSet, pool: Pipeline
) -> None:
    ports.install(pool)
    with xdp_target(at_ports=True).load(compiled(64).bmv2_json) as other:
        other.insert(DMAC, [Exact(MAC)], FORWARD, [1])
        ports.install(other)
        links.wire.send(2, frame(MAC))
        assert arrived(links, frame(MAC)) == [1]
        ports.stop()
        links.wire.send(2, frame(MAC))
        assert arrived(links, frame(MAC), most_s=0.2) == []


def test_packets_to_and_from_the_controller(links: Links, ports: PortSet, pool: Pipeline) -> None:
    pool.insert(DMAC, [Exact(LLDP)], TO_CONTROLLER, [])
    ports.install(pool)
    assert ports.next_cpu_packet(1_000_000) is None
    links.wire.send(2, frame(LLDP))
    told = None
    for _ in range(20):
        told = told or ports.next_cpu_packet(100_000_000)
    assert told == (2 << 7).to_bytes(2, "big") + frame(LLDP)  # who came in by port 2
    assert ports.inject(names.CPU_PORT, (1 << 7).to_bytes(2, "big") + frame(MAC))
    assert arrived(links, frame(MAC)) == [1]
    assert not ports.inject(1, frame(MAC))
    assert ports.stats().cpu_packets == 1


def test_a_group_has_no_copy_for_the_controller(ports: PortSet, pool: Pipeline) -> None:
    ports.install(pool)
    with pytest.raises(InvalidEntryError, match="group 5: a copy to the controller's port"):
        pool.set_multicast(5, [(1, 1), (names.CPU_PORT, 2)])
    with pytest.raises(InvalidEntryError, match="65 copies, and device xdp makes at most 64"):
        pool.set_multicast(5, [(1, number) for number in range(65)])


def fill(kernel: Object, group: int, others: range) -> None:
    """Groups of the same copies, in one call: after each call the kernel waits for its programs."""
    groups = kernel.maps["ina_groups"]
    copies = groups.read(struct.pack("<I", group))  # what is read of a map of maps is an id
    assert copies is not None
    inner = library().bpf_map_get_fd_by_id(*struct.unpack("<I", copies))
    count = ctypes.c_uint32(len(others))
    names = struct.pack(f"<{len(others)}I", *others)
    values = struct.pack("<i", inner) * len(others)
    descriptor = groups.descriptor
    code = library().bpf_map_update_batch(descriptor, names, values, ctypes.byref(count), None)
    os.close(inner)
    assert (code, count.value) == (0, len(others))


def test_more_groups_than_there_is_room_for_are_refused(links: Links, pool: Pipeline) -> None:
    assert pool.generated is not None
    kernel = Object(pool.generated.with_suffix(".o"))
    index = socket.if_nametoindex(links.switch_ends[1])
    attached = AttachedPorts(kernel, {1: index}, names.CPU_PORT)
    try:
        attached.set_group(1, [(1, 1)])
        fill(kernel, 1, range(2, 1025))
        with pytest.raises(MemoryError, match="no memory for multicast group 1025"):
            attached.set_group(1025, [(1, 1)])
        attached.set_group(1, [])
        attached.set_group(1025, [(1, 1)])
    finally:
        attached.close()
        kernel.close()


@pytest.mark.parametrize(
    ("port", "why"),
    [
        (UdpPort(1), "port 1: device xdp has interfaces for ports"),
        (AfPacketPort(1, "none"), "port 1, interface none: No such device"),
    ],
)
def test_what_is_no_port(port: Port, why: str) -> None:
    made = xdp_target(at_ports=True).ports([port], names.CPU_PORT, Impairment())
    with pytest.raises(InvalidPortError, match=why):
        made.open()


@pytest.mark.parametrize(
    ("impairment", "why"),
    [
        (Impairment(delay_us=1), "device xdp makes no delays"),
        (Impairment(loss_rate=0.1, loss_seed=1), "by chance, which has no seed"),
    ],
)
def test_it_delays_nothing_and_draws_from_no_seed(impairment: Impairment, why: str) -> None:
    made = xdp_target(at_ports=True).ports([], names.CPU_PORT, impairment)
    with pytest.raises(InvalidPortError, match=why):
        made.open()


@pytest.mark.parametrize("lossy", [1, 2])
def test_a_port_loses_what_it_is_to_lose(links: Links, pool: Pipeline, lossy: int) -> None:
    """At port 1 as it comes, at port 2 as it leaves."""
    pool.insert(DMAC, [Exact(MAC)], FORWARD, [2])
    specs = [AfPacketPort(port, end) for port, end in links.switch_ends.items()]
    impairment = Impairment(loss_rate=0.0, port_loss={lossy: 0.3})
    made = xdp_target(at_ports=True).ports(specs, names.CPU_PORT, impairment)
    made.open()
    made.start()
    try:
        made.install(pool)
        for _ in range(20):
            for _ in range(50):
                links.wire.send(1, frame(MAC))
        came = sum(data == frame(MAC) for _, data in links.wire.receive(0.2))
        assert 600 < came < 800
    finally:
        made.stop()
        made.close()


def test_an_interface_without_native_programs_wants_generic_mode(
    pool: Pipeline, links: Links
) -> None:
    wanted = "interface lo: no native XDP program: .*; --xdp-mode generic asks nothing of"
    with netns.inside(links.namespace):  # whose loopback nobody needs
        with attached({1: "lo"}) as made, pytest.raises(XdpError, match=wanted):
            made.install(pool)
        with attached({1: "lo"}, XdpMode.generic) as made:
            made.install(pool)


def test_in_generic_mode_copies_know_what_ingress_found(links: Links, pool: Pipeline) -> None:
    pool.insert(DMAC, [Exact(MAC)], FORWARD, [2])
    pool.insert(DMAC, [Exact(LLDP)], TO_CONTROLLER, [])
    with attached(links.switch_ends, XdpMode.generic) as made:
        made.install(pool)
        links.wire.send(1, frame(MAC))
        assert arrived(links, frame(MAC)) == [2]
        links.wire.send(2, frame(LLDP))
        told = [made.next_cpu_packet(100_000_000) for _ in range(20)]
        assert (2 << 7).to_bytes(2, "big") + frame(LLDP) in told
