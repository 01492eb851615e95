"""Clone sessions over P4Runtime."""

from __future__ import annotations

from functools import partial

import pytest
from finsy.proto import p4r, rpc_code

from ina.switch.server import SoftSwitch
from tests.switch.ir.small import back, field, number, op, small_program
from tests.switch.p4runtime.conftest import Connect, update_refused
from tests.switch.p4runtime.small import small_config
from tests.worlds.fakes.p4runtime import Client

CPU_PORT = 510


def session(
    number_: int, *ports: int, packet_length_bytes: int = 0, class_of_service: int = 0
) -> p4r.PacketReplicationEngineEntry:
    found = p4r.CloneSessionEntry(
        session_id=number_,
        packet_length_bytes=packet_length_bytes,
        class_of_service=class_of_service,
    )
    for port in ports:
        found.replicas.add(egress_port=port, instance=1)
    return p4r.PacketReplicationEngineEntry(clone_session_entry=found)


def sessions(client: Client, number_: int = 0) -> list[p4r.PacketReplicationEngineEntry]:
    read = client.read(packet_replication_engine_entry=session(number_))
    return [e.packet_replication_engine_entry for e in read]


def test_a_session_is_written_read_and_used(connect: Connect, switch: SoftSwitch) -> None:
    client = connect().become_primary()
    clone = op("clone_ingress_pkt_to_egress", field("h", "a"), number(0))
    client.set_config(small_config(small_program(back(), clone)))
    client.write("INSERT", packet_replication_engine_entry=session(7, 3))
    to_cpu = session(7, CPU_PORT, packet_length_bytes=4)
    client.write("MODIFY", packet_replication_engine_entry=to_cpu)
    client.write("INSERT", packet_replication_engine_entry=session(9, 1, 2))
    assert sessions(client) == [to_cpu, session(9, 1, 2)]
    assert sessions(client, 9) == [session(9, 1, 2)]
    assert sessions(client, 8) == []
    assert switch._ports is not None
    assert switch._ports.inject(1, b"\x07bcdef")
    assert client.receive().packet.payload == b"\x07bcd"
    client.write("DELETE", packet_replication_engine_entry=session(7))
    assert sessions(client) == [session(9, 1, 2)]
    assert switch._ports.inject(1, b"\x07bcdef")
    client.set_config(small_config(small_program(back(), clone)))
    assert sessions(client) == []


@pytest.mark.parametrize(
    ("kind", "wrong", "code"),
    [
        ("INSERT", session(0, 1), rpc_code.INVALID_ARGUMENT),
        ("INSERT", session(1 << 15, 1), rpc_code.INVALID_ARGUMENT),
        ("INSERT", session(1, 511), rpc_code.INVALID_ARGUMENT),
        ("INSERT", session(1, 1, 1), rpc_code.INVALID_ARGUMENT),
        ("INSERT", session(1, 1, packet_length_bytes=-1), rpc_code.INVALID_ARGUMENT),
        ("INSERT", session(1, 1, class_of_service=1), rpc_code.UNIMPLEMENTED),
        ("INSERT", session(3, 1), rpc_code.ALREADY_EXISTS),
        ("MODIFY", session(1, 1), rpc_code.NOT_FOUND),
        ("DELETE", session(1), rpc_code.NOT_FOUND),
    ],
)
def test_wrong_sessions(
    client: Client, kind: str, wrong: p4r.PacketReplicationEngineEntry, code: int
) -> None:
    """Of a program that makes no clones: controllers write sessions to every switch."""
    client.write("INSERT", packet_replication_engine_entry=session(3, 2))
    update_refused(partial(client.write, kind, packet_replication_engine_entry=wrong), code)
    assert sessions(client) == [session(3, 2)]
