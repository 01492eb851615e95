"""Table entries: written in any form the spec allows, read back canonical, refused as it says."""

from __future__ import annotations

import pytest
from finsy.proto import p4r, rpc_code
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from ina.switch.server import SoftSwitch
from tests.switch.p4runtime.conftest import refused, update_refused
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.p4runtime import (
    IDS,
    Client,
    between,
    entry,
    errors_of,
    exact,
    lpm,
    optional,
    ternary,
    update,
)

BAD = rpc_code.INVALID_ARGUMENT
BRIDGE = entry("bridge", "forward", (b"\x01",), match=[exact(b"\x05")])
ROUTE = entry("routes", "route", (b"\x02", b"\xaa\xbb"), match=[lpm(b"\x0a\x00\x00\x00", 8)])
ACL = entry("acl", "to_cpu", (b"\x03",), priority=7,
            match=[ternary(b"\x0a\x00\x00\x01", b"\xff\x00\x00\xff"), between(b"\x06", b"\x11"),
                   optional(b"\x01")])  # fmt: skip


@pytest.mark.parametrize("row", [BRIDGE, ROUTE, ACL], ids=["exact", "lpm", "mixed"])
def test_life_of_an_entry(client: Client, row: p4r.TableEntry) -> None:
    row = p4r.TableEntry.FromString(row.SerializeToString())
    row.metadata, row.controller_metadata = b"mine", 42
    client.write("INSERT", table_entry=row)
    assert client.tables(table_id=row.table_id) == [row]
    update_refused(lambda: client.write("INSERT", table_entry=row), rpc_code.ALREADY_EXISTS)
    changed = p4r.TableEntry.FromString(row.SerializeToString())
    changed.action.action.params[0].value = b"\x04"
    changed.metadata = b"changed"
    client.write("MODIFY", table_entry=changed)
    assert client.tables(table_id=row.table_id) == [changed]
    key = p4r.TableEntry(table_id=row.table_id, match=row.match, priority=row.priority)
    client.write("MODIFY", table_entry=key)  # no action: only the metadata changes
    (left,) = client.tables(table_id=row.table_id)
    assert (left.action, left.metadata) == (changed.action, b"")
    nonsense = p4r.TableEntry.FromString(key.SerializeToString())
    nonsense.action.action.action_id = 1  # what is not the key does not matter
    client.write("DELETE", table_entry=nonsense)
    assert client.tables(table_id=row.table_id) == []
    update_refused(lambda: client.write("DELETE", table_entry=key), rpc_code.NOT_FOUND)
    update_refused(lambda: client.write("MODIFY", table_entry=row), rpc_code.NOT_FOUND)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(data=st.data())
def test_whatever_is_written_is_read_back(client: Client, data: st.DataObject) -> None:
    """Random rows of the table with ternary, range and optional fields, with leading zeros."""
    mask = data.draw(st.integers(0, 2**32 - 1))
    value = data.draw(st.integers(0, 2**32 - 1)) & mask
    low, high = sorted(data.draw(st.tuples(st.integers(0, 255), st.integers(0, 255))))
    port = data.draw(st.none() | st.integers(0, 511))
    zeros = data.draw(st.integers(0, 3))
    priority = data.draw(st.integers(1, 2**31 - 1))

    def row(extra: int) -> p4r.TableEntry:
        match = []
        if mask:
            match.append(ternary(as_bytes(value, extra), as_bytes(mask, extra)))
        if (low, high) != (0, 255):
            match.append(between(as_bytes(low, extra), as_bytes(high, extra)))
        if port is not None:
            match.append(optional(as_bytes(port, extra)))
        return entry("acl", "to_cpu", (as_bytes(3, extra),), match=match, priority=priority)

    client.write("INSERT", table_entry=row(zeros))
    assert client.tables(table_id=IDS.table["acl"]) == [row(0)]
    assert client.tables(table_id=IDS.table["acl"], match=row(zeros).match, priority=priority) == [
        row(0)
    ]
    client.write("DELETE", table_entry=row(0))
    assert client.tables(table_id=IDS.table["acl"]) == []


def as_bytes(value: int, leading_zeros: int) -> bytes:
    return bytes(leading_zeros) + value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def test_a_batch_goes_on_after_an_error(client: Client) -> None:
    rows = [BRIDGE, entry("bridge", "discard"), BRIDGE, ROUTE]
    with pytest.raises(Exception, match="Write: 2 of 4 failed") as info:
        client.write_updates([update("INSERT", table_entry=row) for row in rows])
    codes = [error.canonical_code for error in errors_of(info.value)]  # type: ignore[arg-type]
    assert codes == [rpc_code.OK, BAD, rpc_code.ALREADY_EXISTS, rpc_code.OK]
    assert client.tables(table_id=ROUTE.table_id) == [ROUTE]


def test_a_large_failing_batch_keeps_its_codes(client: Client) -> None:
    """gRPC refuses more than 8 KiB of metadata; the codes fit."""
    wrong = [update("INSERT", table_entry=entry("bridge", "discard"))] * 100
    with pytest.raises(Exception, match="100 of 100") as info:
        client.write_updates(wrong)
    assert [e.canonical_code for e in errors_of(info.value)] == [BAD] * 100  # type: ignore[arg-type]


@pytest.mark.parametrize("atomicity", [1, 2, 7])
def test_other_atomicity_is_refused_whole(client: Client, atomicity: int) -> None:
    updates = [update("INSERT", table_entry=BRIDGE)]
    refused(
        lambda: client.write_updates(updates, atomicity=atomicity),
        rpc_code.UNIMPLEMENTED, "atomicity",
    )  # fmt: skip
    assert client.tables(table_id=BRIDGE.table_id) == []


def test_updates_without_type_or_entity(client: Client) -> None:
    update_refused(lambda: client.write("UNSPECIFIED", table_entry=BRIDGE), BAD)
    update_refused(lambda: client.write("INSERT"), BAD)
    update_refused(lambda: client.read(), BAD)


def test_a_full_table(client: Client) -> None:
    rows = [entry("bridge", "forward", (b"\x01",), match=[exact(bytes([i]))]) for i in range(17)]
    with pytest.raises(Exception, match="1 of 17") as info:
        client.write_updates([update("INSERT", table_entry=row) for row in rows])
    assert errors_of(info.value)[16].canonical_code == rpc_code.RESOURCE_EXHAUSTED  # type: ignore[arg-type]
    assert len(client.tables(table_id=BRIDGE.table_id)) == 16


def test_default_entries(client: Client) -> None:
    def default(table: str) -> p4r.TableEntry:
        (found,) = client.tables(table_id=IDS.table[table], is_default_action=True)
        return found

    original = entry("bridge", "discard", is_default_action=True)
    assert default("bridge") == original
    changed = entry("bridge", "forward", (b"\x04",), is_default_action=True, metadata=b"m")
    client.write("MODIFY", table_entry=changed)
    assert default("bridge") == changed
    client.write("MODIFY", table_entry=entry("bridge", is_default_action=True))
    assert default("bridge") == original
    update_refused(
        lambda: client.write("DELETE", table_entry=original), BAD, "can only be modified"
    )
    update_refused(
        lambda: client.write("MODIFY", table_entry=entry("acl", "drop", is_default_action=True)),
        rpc_code.PERMISSION_DENIED, "const",
    )  # fmt: skip
    with_key = entry("bridge", "discard", is_default_action=True, match=[exact(b"\x01")])
    update_refused(lambda: client.write("MODIFY", table_entry=with_key), BAD, "no match")
    # Other tables' defaults, and wildcards over tables, do not mix with entries.
    assert default("routes").action.action.action_id == IDS.action["NoAction"]
    assert all(e.is_default_action for e in client.tables(is_default_action=True))


def test_const_entries_are_read_and_never_written(client: Client) -> None:
    rows = client.tables(table_id=IDS.table["kinds"])
    assert rows == [
        entry("kinds", "set_tag", (b"\x04",), match=[exact(b"\x08\x00")], is_const=True),
        entry("kinds", "set_tag", (b"\x06",), match=[exact(b"\x86\xdd")], is_const=True),
    ]
    key = entry("kinds", match=[exact(b"\x08\x00")])
    update_refused(lambda: client.write("DELETE", table_entry=key), rpc_code.PERMISSION_DENIED)
    action = entry("kinds", "set_tag", (b"\x04",), match=[exact(b"\x08\x00")])
    update_refused(lambda: client.write("MODIFY", table_entry=action), rpc_code.PERMISSION_DENIED)


def test_filters_of_a_read(client: Client) -> None:
    rows = [
        entry("acl", "drop", match=[optional(b"\x01")], priority=1, metadata=b"a"),
        entry("acl", "drop", match=[optional(b"\x01")], priority=2),
        entry("acl", "to_cpu", (b"\x01",), match=[optional(b"\x02")], priority=2,
              controller_metadata=9),
    ]  # fmt: skip
    client.write_updates([update("INSERT", table_entry=row) for row in [*rows, BRIDGE]])
    table = IDS.table["acl"]
    assert client.tables(table_id=table) == rows
    assert client.tables(table_id=table, priority=2) == rows[1:]
    assert client.tables(table_id=table, match=rows[0].match) == rows[:2]
    assert client.tables(table_id=table, match=rows[0].match, priority=2) == rows[1:2]
    assert client.tables(table_id=table, metadata=b"a") == rows[:1]
    assert client.tables(table_id=table, controller_metadata=9) == rows[2:]
    by_action = p4r.TableAction(action=p4r.Action(action_id=IDS.action["to_cpu"]))
    assert client.tables(table_id=table, action=by_action) == rows[2:]
    everything = client.tables()
    assert [e for e in everything if e.table_id == table] == rows
    assert BRIDGE in everything
    update_refused(lambda: client.tables(table_id=99), rpc_code.NOT_FOUND)


def test_good_requests_of_a_read_are_answered_before_the_error(client: Client) -> None:
    client.write("INSERT", table_entry=BRIDGE)
    wanted = [
        p4r.Entity(table_entry=p4r.TableEntry(table_id=99)),
        p4r.Entity(table_entry=p4r.TableEntry(table_id=BRIDGE.table_id)),
    ]
    stream = client.read_stream(wanted)
    assert next(stream).table_entry == BRIDGE
    with pytest.raises(Exception, match="Read: 1 of 2") as info:
        next(stream)
    codes = [error.canonical_code for error in errors_of(info.value)]  # type: ignore[arg-type]
    assert codes == [rpc_code.NOT_FOUND, rpc_code.OK]


def test_const_entries_of_every_match_kind(client: Client, switch: SoftSwitch) -> None:
    """Priorities fall from the first entry to the last; each entry has its own counter."""
    rows = [
        entry("classes", "set_class", (b"\x01",), priority=3, is_const=True,
              match=[ternary(b"\x01", b"\x03"), between(b"\x00", b"\x09")]),
        entry("classes", "set_class", (b"\x02",), priority=2, is_const=True,
              match=[between(b"\x0a", b"\x3f")]),
        entry("classes", "set_class", (b"\x03",), priority=1, is_const=True,
              match=[ternary(b"\x03", b"\xff")]),
    ]  # fmt: skip
    assert client.tables(table_id=IDS.table["classes"]) == rows
    assert client.tables(table_id=IDS.table["reserved"]) == [
        entry("reserved", "set_tag", (b"\x01",), match=[lpm(b"\x7f\0\0\0", 8)], is_const=True),
        entry("reserved", "set_tag", (b"\x02",), match=[lpm(b"\x0a\0\0\0", 24)], is_const=True),
    ]
    packets = [(1, 5), (2, 20), (3, 20), (3, 100), (3, 100)]  # type of service, time to live
    assert switch._ports is not None
    for tos, ttl in packets:
        assert switch._ports.inject(1, bytes(Ether() / IP(dst="10.9.9.9", tos=tos, ttl=ttl)))

    def counted() -> list[int]:
        found = client.tables(table_id=IDS.table["classes"], counter_data=p4r.CounterData())
        return [row.counter_data.packet_count for row in found]

    wait_until(lambda: counted() == [1, 2, 2], "each by the entry that wins")
    reset = p4r.TableEntry(table_id=IDS.table["classes"], match=rows[1].match, priority=2)
    reset.counter_data.packet_count = 50  # all that may be modified
    client.write("MODIFY", table_entry=reset)
    assert counted() == [1, 50, 2]
