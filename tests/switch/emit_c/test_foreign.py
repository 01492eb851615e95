"""Programs that p4c does not write: of other compilers, of older ones, of other switches."""

from __future__ import annotations

import json

import pytest

from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir import load_program
from ina.switch.match import Exact
from tests.switch.emit_c.conftest import Run
from tests.switch.ir.small import PORTS, Json, back, field, number, op, small_program

OLD = PORTS | {"egress_port": 9, "clone_spec": 32, "instance_type": 32, "packet_length": 32}
"""standard_metadata as P4_14 has it: no multicast group, no time stamps, no queues."""


@pytest.mark.parametrize("standard", [OLD, PORTS, {"egress_spec": 9}])
def test_fields_of_standard_metadata_may_be_absent(run: Run, standard: dict[str, int]) -> None:
    send = (
        back()
        if "ingress_port" in standard
        else op("assign", field("standard_metadata", "egress_spec"), number(3))
    )
    assert run(small_program(send, standard=standard)).process(3, b"ab!") == [(3, b"ab!")]
    drop = op("mark_to_drop", {"type": "header", "value": "standard_metadata"})
    assert run(small_program(drop, standard=standard)).process(3, b"ab!") == []


def test_fields_of_standard_metadata_have_the_programs_width(run: Run) -> None:
    """A group number wider than there are groups, a time stamp narrower than the time."""
    standard = PORTS | {"mcast_grp": 32, "ingress_global_timestamp": 8}
    group = op("assign", field("standard_metadata", "mcast_grp"), number(0x7FFF0001))
    pipeline = run(small_program(group, standard=standard))
    pipeline.set_multicast(1, [(2, 0), (4, 0)])
    assert pipeline.process(0, b"ab") == [(2, b"ab"), (4, b"ab")]
    time = op("assign", field("h", "a"), field("standard_metadata", "ingress_global_timestamp"))
    assert run(small_program(back(), time, standard=standard)).process(1, b"ab", 0x1234_000) == [
        (1, bytes([0x1234_000 // 1000 & 0xFF]) + b"b")
    ]


def test_metadata_of_p4_14_beside_standard_metadata(run: Run) -> None:
    """intrinsic_metadata and queueing_metadata are simple_switch's, too."""
    metadata = {
        "intrinsic_metadata": {"mcast_grp": 4, "egress_rid": 4, "ingress_global_timestamp": 48},
        "queueing_metadata": {"enq_qdepth": 16},
    }
    group = op("assign", field("intrinsic_metadata", "mcast_grp"), field("h", "a"))
    mark = op("assign", field("h", "a"), field("intrinsic_metadata", "egress_rid"))
    depth = op("assign", field("h", "b"), field("queueing_metadata", "enq_qdepth"))
    pipeline = run(small_program(back(), group, egress=(mark, depth), metadata=metadata))
    pipeline.set_multicast(5, [(2, 7), (2, 8)])
    assert pipeline.process(1, b"\x05x") == [(2, b"\x07\x00"), (2, b"\x08\x01")]
    assert pipeline.process(1, b"\x10x") == [(1, b"\x00\x00")]  # 4 bits: no group


@pytest.mark.parametrize(
    ("change", "construct"),
    [
        ({"pipelines": [{"name": "main_control"}]}, "pipelines: main_control; expected: ingress"),
        ({"standard": {"ingress_port": 9}}, "'standard_metadata' has no 'egress_spec'"),
    ],
)
def test_programs_of_other_switches_are_refused_as_such(change: Json, construct: str) -> None:
    with pytest.raises(UnsupportedProgramError) as caught:
        load_program(json.dumps(small_program(**change)))
    assert "an architecture other than v1model" in str(caught.value)
    assert construct in str(caught.value)


def table(*names: str, **more: object) -> Json:
    """Of P4_14: exact on ``h.a``, actions by name, no default; then "after", whatever happens."""
    return {
        "name": "t",
        "id": 0,
        "key": [{"match_type": "exact", "target": ["h", "a"], "mask": None}],
        "match_type": "exact",
        "type": "simple",
        "max_size": 8,
        "actions": list(names),
        "next_tables": dict.fromkeys(names, "after"),
        "base_default_next": "after",
        **more,
    }


def with_table(table: Json, *actions: Json) -> Json:
    """``table`` first; then the small program's own ingress."""
    program = small_program(back())
    ingress = program["pipelines"][0]
    ingress["init_table"], ingress["tables"] = "t", [table]
    ingress["action_calls"][0]["name"] = "after"
    program["actions"] += actions
    return program


def action(name: str, number_: int, *body: Json) -> Json:
    return {"name": name, "id": number_, "runtime_data": [], "primitives": list(body)}


B = field("h", "b")
OLD_PRIMITIVES = {
    "modify_field": ((B, number(7)), 7),
    "add_to_field": ((B, number(3)), 0x85),
    "subtract_from_field": ((B, number(0x83)), 0xFF),
    "add": ((B, B, number(0x80)), 0x02),
    "subtract": ((B, number(1), B), 0x7F),
    "bit_and": ((B, B, number(0x83)), 0x82),
    "bit_or": ((B, B, number(1)), 0x83),
    "bit_xor": ((B, B, number(0xFF)), 0x7D),
    "shift_left": ((B, B, number(1)), 0x04),
    "shift_right": ((B, B, number(1)), 0x41),
}


def test_primitives_of_p4_14(run: Run) -> None:
    """One action each, on a field that holds 0x82; chosen by the packet's first byte."""
    actions = [action(name, i, op(name, *args)) for i, (name, (args, _)) in
               enumerate(OLD_PRIMITIVES.items(), 10)]  # fmt: skip
    pipeline = run(with_table(table(*OLD_PRIMITIVES, max_size=16), *actions))
    for number_, (name, (_, expected)) in enumerate(OLD_PRIMITIVES.items()):
        pipeline.insert("t", [Exact(number_)], name, ())
        assert pipeline.process(1, bytes([number_, 0x82])) == [(1, bytes([number_, expected]))], (
            name
        )
    assert pipeline.process(1, b"\xff\x82") == [(1, b"\xff\x82")]  # no entry: nothing, and on


def test_drop_of_p4_14(run: Run) -> None:
    """It undoes a multicast group, too."""
    metadata = {"intrinsic_metadata": {"mcast_grp": 16}}
    group = op("modify_field", field("intrinsic_metadata", "mcast_grp"), number(1))
    pipeline = run(small_program(back(), group, op("drop"), metadata=metadata))
    pipeline.set_multicast(1, [(2, 0)])
    assert pipeline.process(1, b"ab") == []


def test_a_table_without_a_default_action(run: Run) -> None:
    """A miss runs nothing and goes where ``base_default_next`` says."""
    drop = action("away", 10, op("drop"))
    pipeline = run(with_table(table("away", next_tables={"away": None}), drop))
    pipeline.insert("t", [Exact(1)], "away", ())
    assert pipeline.process(3, b"\x01b") == []
    assert pipeline.process(3, b"\x02b") == [(3, b"\x02b")]
    nowhere = table("away", base_default_next=None)
    pipeline = run(with_table(nowhere, action("away", 10)))
    pipeline.insert("t", [Exact(1)], "away", ())
    assert pipeline.process(3, b"\x01b") == [(3, b"\x01b")]
    assert pipeline.process(3, b"\x02b") == [(0, b"\x02b")]


def test_an_action_that_is_none(run: Run) -> None:
    with pytest.raises(InvalidProgramError, match="no action 'other'"):
        run(with_table(table("other")))


def test_a_key_of_p4_14_that_asks_for_validity(run: Run) -> None:
    key = [{"match_type": "valid", "target": "h", "mask": None}]
    asked = table("away", key=key, next_tables={"away": None})
    pipeline = run(with_table(asked, action("away", 10, op("drop"))))
    pipeline.insert("t", [Exact(0)], "away", ())
    assert pipeline.process(3, b"ab") == [(3, b"ab")]
    assert pipeline.process(3, b"a") == []  # too short for the header


def test_many_alike_fields_of_metadata_that_egress_changes(run: Run) -> None:
    """They are kept for the next copy all at once; metadata has no validity to keep."""
    names = [f"x{i}" for i in range(9)]
    metadata = {"meta": dict.fromkeys(names, 8)}
    refs = [field("meta", name) for name in names]
    egress = [op("add_to_field", ref, number(1)) for ref in refs]
    egress += [op("add_to_field", field("h", "a"), ref) for ref in refs]
    group = op("modify_field", field("standard_metadata", "mcast_grp"), number(1))
    standard = PORTS | {"mcast_grp": 16}
    program = small_program(group, egress=tuple(egress), metadata=metadata, standard=standard)
    pipeline = run(program)
    pipeline.set_multicast(1, [(2, 0), (3, 0)])
    assert pipeline.process(1, b"\x10b") == [(2, b"\x19b"), (3, b"\x19b")]
