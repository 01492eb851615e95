"""Both forms of ``p4_device_config``, and all that a controller of p4lang/tutorials does."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4r, rpc_code

from ina.switch.server import SoftSwitch
from ina.switch.targets import default_target
from tests.switch.p4runtime.conftest import Connect, refused
from tests.switch.p4runtime.groups import FRAME, group
from tests.worlds.fakes.p4runtime import (
    IDS,
    Client,
    entry,
    exact,
    features_config,
    lpm,
    optional,
)

Set = p4r.SetForwardingPipelineConfigRequest
ROW = entry("bridge", "forward", (b"\x01",), match=[exact(b"\x05")])


def varint(value: int) -> bytes:
    digits = []
    while value >> 7:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def device_config(program: bytes, extras: bytes = b"") -> bytes:
    """``reassign``, the map ``extras``, ``device_data``: as protobuf's own encoder writes them."""
    middle = b"\x12" + varint(len(extras)) + extras if extras else b""
    return b"\x08\x01" + middle + b"\x1a" + varint(len(program)) + program


def wrapped(extras: bytes = b"") -> p4r.ForwardingPipelineConfig:
    config = features_config()
    config.p4_device_config = device_config(config.p4_device_config, extras)
    return config


@pytest.mark.parametrize("extras", [b"", b"\x0a\x06\x0a\x01a\x12\x01b"])
@pytest.mark.parametrize("action", [Set.VERIFY_AND_COMMIT, Set.VERIFY_AND_SAVE])
def test_the_program_in_a_p4_device_config(connect: Connect, extras: bytes, action: int) -> None:
    client = connect().become_primary()
    client.set_config(wrapped(extras), action)
    if action == Set.VERIFY_AND_SAVE:
        client.set_config(None, Set.COMMIT)
    assert client.get_config().config == wrapped(extras)  # what was sent comes back
    client.write("INSERT", table_entry=ROW)
    assert client.tables(table_id=ROW.table_id) == [ROW]


def test_the_form_does_not_matter_to_reconcile(client: Client) -> None:
    client.write("INSERT", table_entry=ROW)
    client.set_config(wrapped(), Set.RECONCILE_AND_COMMIT)
    assert client.get_config().config == wrapped()
    assert client.tables(table_id=ROW.table_id) == [ROW]
    other = features_config()
    other.p4_device_config = device_config(other.p4_device_config + b" ")
    refused(lambda: client.set_config(other, Set.RECONCILE_AND_COMMIT), rpc_code.UNIMPLEMENTED)


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"not JSON",
        b"[]",
        b"\x08\x01",
        device_config(b""),
        device_config(b"[]"),
        device_config(b"{}")[:-1],
        device_config(device_config(b"{}")),
        b"\x7fELF\x02\x01\x01\x00",
    ],
)
def test_bytes_of_neither_form(client: Client, wrong: bytes) -> None:
    config = features_config()
    config.p4_device_config = wrong
    text = "BMv2 JSON, or a p4.tmp.P4DeviceConfig" if wrong else "p4_device_config"
    refused(lambda: client.set_config(config), rpc_code.INVALID_ARGUMENT, text)
    assert client.get_config().config == features_config()


def test_wrong_json_in_a_p4_device_config(client: Client) -> None:
    config = features_config()
    config.p4_device_config = device_config(b"{")
    refused(lambda: client.set_config(config), rpc_code.INVALID_ARGUMENT, "not JSON")


def test_what_controllers_of_the_tutorials_do(connect: Connect, switch: SoftSwitch) -> None:
    """Their sequence: mastership, pipeline, entries, groups, reads, packets in and out."""
    client = connect().become_primary()
    client.set_config(wrapped())
    route = entry(
        "routes", "route", (b"\x00\x02", bytes(5) + b"\x22"), match=[lpm(b"\x0a\0\0\0", 8)]
    )
    punt = entry("acl", "to_cpu", (b"\x07",), match=[optional(b"\x00\x01")], priority=1)
    default = entry("routes", "drop", is_default_action=True)
    client.write("INSERT", table_entry=route)
    client.write("INSERT", table_entry=punt)
    client.write("MODIFY", table_entry=default)  # theirs for default entries
    client.write("INSERT", packet_replication_engine_entry=group(1, (1, 1), (2, 1), old_form=True))
    read = client.read(table_entry=p4r.TableEntry())  # table_id 0: of all tables
    assert {e.table_entry.table_id for e in read} >= {route.table_id, punt.table_id}
    counters = p4r.CounterEntry(counter_id=IDS.counter["port_counter"])
    counters.index.index = 1
    assert [e.counter_entry.index.index for e in client.read(counter_entry=counters)] == [1]
    assert len(client.read(counter_entry=p4r.CounterEntry())) > 1
    assert switch._ports is not None
    assert switch._ports.inject(1, FRAME)
    punted = client.receive().packet
    assert (punted.payload[14:], punted.metadata[0].value) == (FRAME[14:], b"\x01")
    out = p4r.PacketOut(payload=FRAME)  # they pad a value of n bits to n bytes
    out.metadata.add(metadata_id=1, value=(400).to_bytes(9, "big"))
    out.metadata.add(metadata_id=2, value=bytes(7))
    client.send(p4r.StreamMessageRequest(packet=out))
    client.write("DELETE", table_entry=route)
    assert client.tables(table_id=route.table_id) == []
    assert client.nothing_more()  # no error came back for the packet


def test_device_0(cache_dir: Path) -> None:
    """The tutorials number their switches from 0."""
    with (
        SoftSwitch([], device_id=0, target=default_target(cache_dir)) as switch,
        Client(switch.grpc_addr) as it,
    ):
        it.arbitrate(1, device_id=0)
        assert it.standing() == (rpc_code.OK, 1)
        it.set_config(wrapped(), device_id=0)
