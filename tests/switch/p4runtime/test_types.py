"""What P4Info and the BMv2 JSON say differently: translated types, errors, folded tables."""

from __future__ import annotations

import json

import pytest
from finsy.proto import p4r, rpc_code

from ina.switch.ir import load_program
from ina.switch.p4runtime.schema import build_schema
from tests.switch.p4runtime.conftest import Connect, refused, update_refused
from tests.worlds.fakes.p4runtime import Client, Ids, config_of, entry, exact, p4info_of

IDS = Ids(p4info_of("types"))
CPU_PORT = b"\x01\xfe"
HEADER_TOO_SHORT = b"\x04"  # its number in the JSON's "errors"


@pytest.fixture
def client(connect: Connect) -> Client:
    primary = connect().become_primary()
    primary.set_config(config_of("types"))
    return primary


def test_packets_meet_entries_of_such_keys(client: Client) -> None:
    rows = [
        entry("by_port", "set", (CPU_PORT,), IDS, match=[exact(CPU_PORT)]),
        entry("by_error", "drop", (), IDS, match=[exact(HEADER_TOO_SHORT)]),
    ]
    for row in rows:
        client.write("INSERT", table_entry=row)
        assert client.tables(table_id=row.table_id) == [row]
    for payload in (b"\x00\x00\x00\x00", b"\x01\x02\x00\x00"):
        packet = p4r.PacketOut(payload=payload)
        client.send(p4r.StreamMessageRequest(packet=packet))
    answer = client.receive().packet  # the first one has the parser error
    assert answer.payload == b"\x01\x07\x00\x00"  # marked by the table that runs in place
    assert {m.metadata_id: m.value for m in answer.metadata} == {1: CPU_PORT, 2: b"\x00"}


def test_translated_values_must_fit_the_program(client: Client) -> None:
    """32 bits for clients, 9 in the program."""
    row = entry("by_port", "set", (b"\x02\x00",), IDS, match=[exact(b"\x01")])
    update_refused(lambda: client.write("INSERT", table_entry=row), rpc_code.OUT_OF_RANGE, "9 bits")
    row = entry("by_port", "set", (b"\x01",), IDS, match=[exact(b"\x02\x00")])
    update_refused(lambda: client.write("INSERT", table_entry=row), rpc_code.OUT_OF_RANGE, "9 bits")
    row = entry("by_name", "NoAction", (), IDS, match=[exact(b"eth0")])
    update_refused(
        lambda: client.write("INSERT", table_entry=row), rpc_code.UNIMPLEMENTED, "string"
    )


def test_a_table_that_runs_in_place_is_there_and_cannot_change(client: Client) -> None:
    (default,) = client.tables(table_id=IDS.table["keyless"], is_default_action=True)
    assert default.action.action.action_id == IDS.action["mark"]
    assert client.tables(table_id=IDS.table["keyless"]) == []
    update_refused(
        lambda: client.write("MODIFY", table_entry=default), rpc_code.PERMISSION_DENIED, "const"
    )
    update_refused(
        lambda: client.write("INSERT", table_entry=entry("keyless", "mark", (), IDS)),
        rpc_code.INVALID_ARGUMENT, "without key",
    )  # fmt: skip


def test_an_empty_const_table_takes_no_entries(client: Client) -> None:
    row = entry("empty", "drop", (), IDS, match=[exact(b"\x01")])
    update_refused(
        lambda: client.write("INSERT", table_entry=row), rpc_code.PERMISSION_DENIED, "const"
    )


def test_a_p4info_of_another_program_is_refused(connect: Connect) -> None:
    client = connect().become_primary()
    mixed = config_of("types")
    mixed.p4info.CopyFrom(p4info_of("features"))
    refused(lambda: client.set_config(mixed), rpc_code.INVALID_ARGUMENT, "disagree")
    wider = config_of("types")
    wider.p4info.tables[-2].match_fields[0].bitwidth = 9
    refused(lambda: client.set_config(wider), rpc_code.INVALID_ARGUMENT, "disagree")
    config = config_of("types")
    removed = "MyIngress.unreachable"
    assert removed in {table.preamble.name for table in config.p4info.tables}
    assert removed not in config.p4_device_config.decode()


@pytest.mark.parametrize("metadata", [False, True])
def test_a_controller_header_is_the_one_whose_other_fields_fit(metadata: bool) -> None:
    """P4Info says 32 and 7 bits; of the headers with these fields one has 9 and 7."""
    config = config_of("types")
    program = json.loads(config.p4_device_config)
    fields = [["port", 16, False], ["padding", 7 if metadata else 8, False]]
    program["header_types"].insert(0, {"name": "other_t", "id": 90, "fields": fields})
    other = {"name": "other", "id": 90, "header_type": "other_t", "metadata": metadata}
    program["headers"].insert(0, other)
    schema = build_schema(config.p4info, load_program(json.dumps(program)))
    assert [field.width_bits for field in schema.packet_in] == [9, 7]
