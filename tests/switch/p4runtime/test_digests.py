"""Digests: configured, told over the stream, acknowledged."""

from __future__ import annotations

from functools import partial

import pytest
from finsy.proto import p4r, rpc_code

from ina.switch.p4runtime.digests import DigestStore
from ina.switch.p4runtime.schema import DigestSchema, build_schema
from ina.switch.pipeline import Pipeline
from ina.switch.server import SoftSwitch
from ina.switch.targets import default_target
from tests.switch.ir.small import Json, back, number, op, small_program
from tests.switch.p4runtime.conftest import Connect, refused, update_refused
from tests.switch.p4runtime.small import small_config
from tests.worlds.fakes.p4runtime import Client

ID = 0x17000001
BIT8 = "bitstring { bit { bitwidth: 8 } }"
STRUCT = f"""
digests {{ preamble {{ id: {ID} name: "seen" alias: "seen" }}
           type_spec {{ struct {{ name: "seen" }} }} }}
type_info {{ structs {{ key: "seen" value {{
    members {{ name: "a" type_spec {{ {BIT8} }} }}
    members {{ name: "b" type_spec {{ {BIT8} }} }} }} }} }}
"""
HOUR_NS = 3600 * 10**9


def program(*fields: str) -> Json:
    seen = [{"type": "field", "value": ["h", name]} for name in fields]
    return small_program(
        back(), op("generate_digest", number(1), number(1)),
        learn_lists=[{"id": 1, "name": "seen", "elements": seen}],
    )  # fmt: skip


def told(size: int = 0, wait_ns: int = 0, ack_ns: int = 0) -> p4r.DigestEntry:
    entry = p4r.DigestEntry(digest_id=ID)
    entry.config.max_list_size, entry.config.max_timeout_ns = size, wait_ns
    entry.config.ack_timeout_ns = ack_ns
    return entry


@pytest.fixture
def primary(connect: Connect) -> Client:
    client = connect().become_primary()
    client.set_config(small_config(program("a", "b"), STRUCT))
    return client


def test_a_list_is_told(primary: Client, switch: SoftSwitch) -> None:
    """Lists of two; nothing is told of what came before somebody asked for it."""
    assert switch._ports is not None
    assert switch._ports.inject(1, b"\x09\x09!")
    primary.write("INSERT", digest_entry=told(2, HOUR_NS))
    assert [e.digest_entry for e in primary.read(digest_entry=p4r.DigestEntry())] == [
        told(2, HOUR_NS)
    ]
    while True:  # the first packet may have been on its way when the digest was asked for
        assert switch._ports.inject(1, b"\x01\x02!")
        assert switch._ports.inject(1, b"\x00\xff!")
        digests = primary.receive().digest
        members = [[m.bitstring for m in data.struct.members] for data in digests.data]
        if b"\x09" not in members[0]:
            break
    assert (digests.digest_id, len(members)) == (ID, 2)
    assert {tuple(each) for each in members} == {(b"\x01", b"\x02"), (b"\x00", b"\xff")}
    assert digests.timestamp > 0
    ack = p4r.DigestListAck(digest_id=ID, list_id=digests.list_id)
    primary.send(p4r.StreamMessageRequest(digest_ack=ack))
    primary.write("DELETE", digest_entry=told())
    assert primary.read(digest_entry=p4r.DigestEntry()) == []


def test_a_wrong_acknowledgement(primary: Client, connect: Connect) -> None:
    ack = p4r.DigestListAck(digest_id=7, list_id=1)
    primary.send(p4r.StreamMessageRequest(digest_ack=ack))
    error = primary.receive().error
    assert error.canonical_code == rpc_code.NOT_FOUND
    assert error.digest_list_ack.digest_list_ack == ack
    backup = connect()
    backup.arbitrate(0)
    backup.receive()
    backup.send(p4r.StreamMessageRequest(digest_ack=ack))
    assert backup.receive().error.canonical_code == rpc_code.PERMISSION_DENIED


def test_wrong_entries(primary: Client) -> None:
    primary.write("INSERT", digest_entry=told(1))
    negative = told(-1)
    for kind, entry, code in (
        ("INSERT", told(1), rpc_code.ALREADY_EXISTS),
        ("INSERT", p4r.DigestEntry(digest_id=3), rpc_code.NOT_FOUND),
        ("MODIFY", negative, rpc_code.INVALID_ARGUMENT),
    ):
        update_refused(partial(primary.write, kind, digest_entry=entry), code)
    primary.write("DELETE", digest_entry=told())
    update_refused(partial(primary.write, "MODIFY", digest_entry=told()), rpc_code.NOT_FOUND)


@pytest.mark.parametrize(
    ("p4info", "code", "text"),
    [
        (STRUCT.replace('name: "seen" alias', 'name: "other" alias'), "INVALID", "no digest other"),
        (STRUCT, "INVALID", "digest seen of 2 fields"),
        (STRUCT.replace(BIT8, 'header { name: "h" }'), "UNIMPLEMENTED", "anything but fields"),
    ],
)
def test_p4info_of_another_program(connect: Connect, p4info: str, code: str, text: str) -> None:
    client = connect().become_primary()
    config = small_config(program("a"), p4info)
    wanted = rpc_code.UNIMPLEMENTED if code == "UNIMPLEMENTED" else rpc_code.INVALID_ARGUMENT
    refused(lambda: client.set_config(config), wanted, text)


class Store:
    """A store without a server: time is what the test says."""

    def __init__(self, pipeline: Pipeline, p4info: str) -> None:
        config = small_config({}, p4info)
        self.pipeline = pipeline
        self.digests = DigestStore(build_schema(config.p4info, pipeline.program), pipeline)

    def after(self, now_ns: int, *packets: bytes) -> list[p4r.DigestList]:
        self.pipeline.process_batch([(1, packet) for packet in packets])
        return self.digests.due(now_ns, 0)


def values(lists: list[p4r.DigestList]) -> list[list[bytes]]:
    return [[data.bitstring for data in each.data] for each in lists]


SINGLE = f"""
digests {{ preamble {{ id: {ID} name: "seen" alias: "seen" }} type_spec {{ {BIT8} }} }}
"""


@pytest.fixture
def store(cache_dir):  # type: ignore[no-untyped-def]
    text = small_config(program("a"), SINGLE).p4_device_config
    with default_target(cache_dir).load(text) as pipeline:
        yield Store(pipeline, SINGLE)


def test_lists_are_sent_when_full_or_late(store: Store) -> None:
    store.digests.write(p4r.Update.INSERT, told(3, 1000))
    assert store.after(0, b"1.", b"2.") == []
    assert values(store.after(10, b"3.", b"4.")) == [[b"1", b"2", b"3"]]
    assert store.after(999) == []
    assert values(store.after(1010)) == [[b"4"]]  # it has waited for 1000 ns
    assert store.after(5000) == []
    store.digests.write(p4r.Update.MODIFY, told(0, 0))
    assert values(store.after(5000, b"5.", b"5.")) == [[b"5", b"5"]]


def test_what_is_not_acknowledged_is_not_told_again(store: Store) -> None:
    store.digests.write(p4r.Update.INSERT, told(1, 0, 1000))
    first, second = store.after(0, b"1.", b"1.", b"2.")
    assert values([first, second]) == [[b"1"], [b"2"]]
    assert store.after(500, b"1.", b"2.") == []
    store.digests.acknowledge(p4r.DigestListAck(digest_id=ID, list_id=first.list_id))
    assert values(store.after(600, b"1.", b"2.")) == [[b"1"]]
    assert values(store.after(1100, b"2.")) == [[b"2"]]  # the time for its acknowledgement is over


def test_the_schema_names_the_form(store: Store) -> None:
    assert store.digests._schemas[ID] == DigestSchema(ID, "seen", "bitstring")
