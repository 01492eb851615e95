"""Multicast groups, and packets to and from the controller."""

from __future__ import annotations

import socket
from functools import partial

import pytest
from finsy.proto import p4r, rpc_code
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.switch.server import SoftSwitch
from tests.switch.p4runtime.conftest import Connect, update_refused
from tests.switch.p4runtime.groups import FRAME, group
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.p4runtime import Client, entry, lpm, optional


def groups(client: Client, number: int = 0) -> list[p4r.PacketReplicationEngineEntry]:
    read = client.read(packet_replication_engine_entry=group(number))
    return [e.packet_replication_engine_entry for e in read]


@pytest.mark.parametrize("old_form", [False, True])
def test_life_of_a_group(client: Client, old_form: bool) -> None:
    first = group(3, (1, 0), (2, 7), (300, 7), old_form=old_form)
    second = group(4, (1, 1), (1, 2), old_form=old_form)
    client.write("INSERT", packet_replication_engine_entry=first)
    client.write("INSERT", packet_replication_engine_entry=second)
    assert groups(client) == [first, second]
    assert groups(client, 4) == [second]
    assert groups(client, 5) == []
    changed = group(3, (2, 2))
    client.write("MODIFY", packet_replication_engine_entry=changed)
    assert groups(client, 3) == [changed]
    update_refused(
        lambda: client.write("INSERT", packet_replication_engine_entry=first),
        rpc_code.ALREADY_EXISTS,
    )
    client.write("DELETE", packet_replication_engine_entry=group(3))
    assert groups(client) == [second]
    for kind in ("MODIFY", "DELETE"):
        update_refused(
            partial(client.write, kind, packet_replication_engine_entry=first),
            rpc_code.NOT_FOUND,
        )


@pytest.mark.parametrize(
    "wrong",
    [
        group(0, (1, 1)),
        group(1 << 16, (1, 1)),
        group(1, (1, 1), (1, 1)),
        group(1, (511, 1)),
        group(1, (1, 1 << 16)),
    ],
)
def test_wrong_groups(client: Client, wrong: p4r.PacketReplicationEngineEntry) -> None:
    update_refused(
        lambda: client.write("INSERT", packet_replication_engine_entry=wrong),
        rpc_code.INVALID_ARGUMENT,
    )
    assert groups(client) == []


def test_what_the_replication_engine_lacks(client: Client) -> None:
    backup = group(1, (1, 1))
    backup.multicast_group_entry.replicas[0].backup_replicas.add(port=b"\x02", instance=1)
    update_refused(
        partial(client.write, "INSERT", packet_replication_engine_entry=backup),
        rpc_code.UNIMPLEMENTED,
    )
    # A client that clears the switch reads all of them first.
    everything = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry())
    assert client.read(packet_replication_engine_entry=everything) == []


def test_packet_in(client: Client, switch: SoftSwitch) -> None:
    """ACL sends it to the CPU port with metadata of 9 and 7 bits."""
    row = entry("acl", "to_cpu", (b"\x55",), match=[optional(b"\x01")], priority=1)
    client.write("INSERT", table_entry=row)
    assert switch._ports is not None
    assert switch._ports.inject(1, FRAME)
    packet = client.receive().packet
    assert packet.payload == FRAME
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x01"), (2, b"\x55")]


def test_packets_go_to_the_primary_only(
    client: Client, connect: Connect, switch: SoftSwitch
) -> None:
    backup = connect()
    backup.arbitrate(0)
    backup.receive()
    row = entry("acl", "to_cpu", (b"\x01",), match=[optional(b"\x01")], priority=1)
    client.write("INSERT", table_entry=row)
    assert switch._ports is not None
    assert switch._ports.inject(1, FRAME)
    assert client.receive().HasField("packet")
    assert backup.nothing_more()


def packet_out(port: int, payload: bytes = FRAME) -> p4r.StreamMessageRequest:
    packet = p4r.PacketOut(payload=payload)
    packet.metadata.add(metadata_id=1, value=port.to_bytes(2, "big"))
    packet.metadata.add(metadata_id=2, value=b"\x00")
    return p4r.StreamMessageRequest(packet=packet)


def test_packet_out(client: Client, switch: SoftSwitch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
        host.bind(("127.0.0.1", 0))
        host.settimeout(5)
        frame = Ether() / IP(dst="127.0.0.1") / UDP(dport=host.getsockname()[1]) / b"out"
        client.send(packet_out(2, bytes(frame)))
        assert host.recvfrom(100) == (b"out", switch.udp_address(2))
    client.send(packet_out(400))
    wait_until(lambda: switch.stats().unknown_port_packets == 1, "no such port, counted")


def test_wrong_packet_out(client: Client, connect: Connect) -> None:
    missing = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"x"))
    wide = packet_out(512)
    long = packet_out(1, bytes(65534))
    for request, code in (
        (missing, rpc_code.INVALID_ARGUMENT),
        (wide, rpc_code.OUT_OF_RANGE),
        (long, rpc_code.INVALID_ARGUMENT),
    ):
        client.send(request)
        error = client.receive().error
        assert error.canonical_code == code
        assert error.packet_out.packet_out == request.packet
    backup = connect()
    backup.arbitrate(0)
    backup.receive()
    backup.send(packet_out(1))
    assert backup.receive().error.canonical_code == rpc_code.PERMISSION_DENIED


def test_a_multicast_reaches_every_port(client: Client, switch: SoftSwitch) -> None:
    client.write("INSERT", packet_replication_engine_entry=group(9, (1, 1), (2, 2), (400, 3)))
    row = entry("routes", "multicast", (b"\x09",), match=[lpm(b"\x0a\x01\x00\x00", 16)])
    client.write("INSERT", table_entry=row)
    assert switch._ports is not None
    frame = FRAME[:36] + b"\x00\x09" + FRAME[38:]  # to UDP port 9 of 10.1.2.3
    assert switch._ports.inject(1, frame)
    wait_until(
        lambda: (
            all(
                (p.tx_packets + p.failed_packets + p.undeliverable_packets) == 1
                for p in switch.stats().ports.values()
            )
            and switch.stats().unknown_port_packets == 1
        ),
        "three copies",
    )
