"""Updates that must be refused: the code of the spec, what is wrong, and nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import p4r, rpc_code

from tests.switch.p4runtime.conftest import update_refused
from tests.worlds.fakes.p4runtime import (
    Client,
    between,
    entry,
    exact,
    lpm,
    optional,
    ternary,
)

BAD = rpc_code.INVALID_ARGUMENT


WRONG: list[tuple[str, p4r.TableEntry, int, str]] = [
    ("exact missing", entry("bridge", "discard"), BAD, "destination is missing"),
    ("exact as lpm", entry("bridge", "discard", match=[lpm(b"\x05", 8)]), BAD, "exact"),
    ("empty", entry("bridge", "discard", match=[exact(b"")]), rpc_code.OUT_OF_RANGE, "empty"),
    (
        "too wide",
        entry("bridge", "discard", match=[exact(b"\x01" + bytes(6))]),
        rpc_code.OUT_OF_RANGE,
        "hdr.ethernet.destination",
    ),
    (
        "field twice",
        entry("bridge", "discard", match=[exact(b"\x01"), exact(b"\x02")]),
        BAD,
        "twice",
    ),
    (
        "no such field",
        entry("bridge", "discard", match=[exact(b"\x01"), exact(b"\x02", 9)]),
        BAD,
        "id 9",
    ),
    ("lpm of 0", entry("routes", "drop", match=[lpm(b"\x00", 0)]), BAD, "leave out"),
    ("lpm of 33", entry("routes", "drop", match=[lpm(b"\x00", 33)]), BAD, "1..32"),
    ("lpm of -1", entry("routes", "drop", match=[lpm(b"\x00", -1)]), BAD, "1..32"),
    (
        "lpm tail",
        entry("routes", "drop", match=[lpm(b"\x0a\x01\x00\x00", 8)]),
        BAD,
        "beyond its prefix",
    ),
    (
        "mask 0",
        entry("acl", "drop", priority=1, match=[ternary(b"\x00", b"\x00")]),
        BAD,
        "leave out",
    ),
    (
        "value outside mask",
        entry("acl", "drop", priority=1, match=[ternary(b"\x03", b"\x01")]),
        BAD,
        "outside",
    ),
    (
        "range upside down",
        entry("acl", "drop", priority=1, match=[between(b"\x09", b"\x03")]),
        BAD,
        "above",
    ),
    (
        "full range",
        entry("acl", "drop", priority=1, match=[between(b"\x00", b"\xff")]),
        BAD,
        "leave out",
    ),
    (
        "wide optional",
        entry("acl", "drop", priority=1, match=[optional(b"\x02\x00")]),
        rpc_code.OUT_OF_RANGE,
        "ingress_port",
    ),
    (
        "no priority",
        entry("acl", "drop", match=[optional(b"\x01")]),
        BAD,
        "priority must be positive",
    ),
    (
        "negative priority",
        entry("acl", "drop", priority=-1, match=[optional(b"\x01")]),
        BAD,
        "positive",
    ),
    (
        "needless priority",
        entry("bridge", "discard", priority=1, match=[exact(b"\x01")]),
        BAD,
        "must be 0",
    ),
    ("no action", entry("bridge", match=[exact(b"\x01")]), BAD, "needs an action"),
    (
        "another table's action",
        entry("bridge", "set_tag", (b"\x01",), match=[exact(b"\x01")]),
        BAD,
        "no action",
    ),
    (
        "default-only action",
        entry("bridge", "NoAction", match=[exact(b"\x01")]),
        rpc_code.PERMISSION_DENIED,
        "NoAction",
    ),
    ("parameter missing", entry("bridge", "forward", match=[exact(b"\x01")]), BAD, "port (1)"),
    (
        "parameter too many",
        entry("bridge", "forward", (b"\x01", b"\x01"), match=[exact(b"\x01")]),
        BAD,
        "port (1)",
    ),
    (
        "parameter too wide",
        entry("bridge", "forward", (b"\x02\x00",), match=[exact(b"\x01")]),
        rpc_code.OUT_OF_RANGE,
        "port",
    ),
    (
        "const table",
        entry("kinds", "set_tag", (b"\x01",), match=[exact(b"\x01")]),
        rpc_code.PERMISSION_DENIED,
        "const",
    ),
    ("no such table", p4r.TableEntry(table_id=1), rpc_code.NOT_FOUND, "no table"),
    (
        "idle timeout",
        entry("bridge", "discard", match=[exact(b"\x01")], idle_timeout_ns=1),
        rpc_code.UNIMPLEMENTED,
        "idle timeout",
    ),
    (
        "is_const",
        entry("bridge", "discard", match=[exact(b"\x01")], is_const=True),
        BAD,
        "is_const",
    ),
    (
        "counter of a table without",
        entry(
            "routes", "drop", match=[lpm(b"\x0a", 32)], counter_data=p4r.CounterData(packet_count=1)
        ),
        BAD,
        "direct counter",
    ),
    ("default entry", entry("bridge", "discard", is_default_action=True), BAD, "default"),
]


@pytest.mark.parametrize(("row", "code", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_inserts(client: Client, row: p4r.TableEntry, code: int, text: str) -> None:
    before = client.tables()
    update_refused(lambda: client.write("INSERT", table_entry=row), code, text)
    assert client.tables() == before


def test_action_profiles_and_meters_are_named(client: Client) -> None:
    member = entry("bridge", match=[exact(b"\x01")])
    member.action.action_profile_member_id = 3
    update_refused(
        lambda: client.write("INSERT", table_entry=member),
        rpc_code.UNIMPLEMENTED, "action_profile_member_id",
    )  # fmt: skip
    metered = entry(
        "bridge", "discard", match=[exact(b"\x01")], meter_config=p4r.MeterConfig(cir=1)
    )
    update_refused(
        lambda: client.write("INSERT", table_entry=metered), rpc_code.UNIMPLEMENTED, "meter"
    )


@pytest.mark.parametrize(
    "entity",
    [
        {"meter_entry": p4r.MeterEntry(meter_id=1)},
        {"direct_meter_entry": p4r.DirectMeterEntry()},
        {"register_entry": p4r.RegisterEntry(register_id=1)},
        {"action_profile_member": p4r.ActionProfileMember(action_profile_id=1)},
        {"action_profile_group": p4r.ActionProfileGroup(action_profile_id=1)},
        {"value_set_entry": p4r.ValueSetEntry(value_set_id=1)},
        {"extern_entry": p4r.ExternEntry(extern_id=1)},
    ],
    ids=lambda entity: next(iter(entity)),
)
def test_what_is_not_there_is_named(client: Client, entity: dict[str, Any]) -> None:
    (kind,) = entity
    update_refused(lambda: client.write("INSERT", **entity), rpc_code.UNIMPLEMENTED, kind)
    if kind != "direct_meter_entry":  # names a table, not a meter
        update_refused(lambda: client.read(**entity), rpc_code.UNIMPLEMENTED, kind)
