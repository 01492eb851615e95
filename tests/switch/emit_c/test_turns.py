"""Packets that take further turns: clones, resubmission, recirculation; and digests."""

from __future__ import annotations

import json

import pytest

from ina.switch.errors import InvalidEntryError, UnsupportedProgramError
from ina.switch.ir import load_program
from tests.switch.emit_c.conftest import Run
from tests.switch.ir.small import PORTS, Json, back, field, number, op, small_program

STANDARD = PORTS | {"instance_type": 32, "packet_length": 32, "mcast_grp": 16}
META = {"meta": {"turns": 8, "lost": 8}}
A, B = field("h", "a"), field("h", "b")
TURNS, LOST = field("meta", "turns"), field("meta", "lost")
INSTANCE = field("standard_metadata", "instance_type")
LISTS = [
    {"id": 1, "name": "kept", "elements": [
        {"type": "field", "value": ["meta", "turns"]},
        {"type": "field", "value": ["standard_metadata", "ingress_port"]},
        {"type": "hexstr", "value": "0x00000063"}]},
    {"id": 2, "name": "nothing", "elements": []},
]  # fmt: skip


def expression(operator: str, left: Json, right: Json) -> Json:
    value = {"op": operator, "left": left, "right": right}
    return {"type": "expression", "value": {"type": "expression", "value": value}}


def add(target: Json, value: int) -> Json:
    return op("assign", target, expression("+", target, number(value)))


def program(*ingress: Json, egress: tuple[Json, ...] = (), **more: object) -> Json:
    return small_program(
        *ingress, egress=egress, standard=STANDARD, metadata=META, field_lists=LISTS, **more
    )


def unless(condition: Json, at: int, *body: Json) -> tuple[Json, ...]:
    """``body`` if the condition holds; the jump is primitive number ``at``."""
    return (op("_jump_if_zero", condition, number(at + 1 + len(body))), *body)


def test_resubmission(run: Run) -> None:
    """The packet as it came, with the fields of the list only, until ingress asks no more."""
    again = unless(expression("<", TURNS, number(3)), 5, op("resubmit", number(1)))
    pipeline = run(
        program(add(TURNS, 1), add(LOST, 1), add(A, 1), op("assign", B, TURNS), back(), *again,
                egress=(add(B, 0x10), op("assign", A, INSTANCE)))
    )  # fmt: skip
    assert pipeline.process(3, b"\x20\x20!") == [(3, b"\x00\x13!")]  # NORMAL again in egress
    lost = run(program(add(TURNS, 1), op("assign", A, INSTANCE), op("assign", B, TURNS), back(),
                       *unless(expression("==", INSTANCE, number(0)), 4,
                               op("resubmit", number(2)))))  # fmt: skip
    # No field is kept: it is metadata's first turn again, and of port 0; instance 6 is resubmitted.
    assert lost.process(3, b"\x20\x20!") == [(0, b"\x06\x01!")]


def test_recirculation(run: Run) -> None:
    """What the deparser wrote comes again, as a packet of its own length."""
    ingress = (add(TURNS, 1), op("assign", A, INSTANCE), back())
    again = unless(expression("<", TURNS, number(3)), 1, op("recirculate", number(1)))
    length = expression("+", B, field("standard_metadata", "packet_length"))
    pipeline = run(program(*ingress, egress=(op("assign", B, length), *again)))
    assert pipeline.process(2, b"\x00\x00!") == [(2, b"\x04\x09!")]  # 3 turns of 3 bytes


def test_clones_of_ingress(run: Run) -> None:
    """The packet as it came; to each replica, before the packet itself; cut; with its own kind."""
    clone = op("clone_ingress_pkt_to_egress", number(5), number(1))
    egress = (op("assign", A, INSTANCE), op("assign", B, TURNS))
    pipeline = run(program(add(TURNS, 7), add(A, 1), back(), clone, egress=egress))
    assert pipeline.process(1, b"\x20\x20!?") == [(1, b"\x00\x07!?")]  # no such session
    pipeline.set_clone_session(5, [(1, 0), (8, 1)], 3)
    clones = [(1, b"\x01\x07!"), (8, b"\x01\x07!")]
    assert pipeline.process(1, b"\x20\x20!?") == [*clones, (1, b"\x00\x07!?")]
    pipeline.set_clone_session(5, [])
    assert len(pipeline.process(1, b"\x20\x20!?")) == 1


def test_a_clone_of_a_packet_that_is_dropped(run: Run) -> None:
    clone = op("clone_ingress_pkt_to_egress", B, number(2))  # a session of the packet's own
    drop = op("mark_to_drop", {"type": "header", "value": "standard_metadata"})
    pipeline = run(program(add(A, 1), clone, drop))
    pipeline.set_clone_session(0, [(4, 0)])
    pipeline.set_clone_session(9, [(5, 0)])
    assert pipeline.process(1, b"\x20\x09!") == [(5, b"\x20\x09!")]
    assert pipeline.process(1, b"\x20\x00!") == [(4, b"\x20\x00!")]


def test_clones_of_egress(run: Run) -> None:
    """The packet as egress left it, through egress once more."""
    clone = unless(expression("==", INSTANCE, number(0)), 1,
                   op("clone_egress_pkt_to_egress", number(6), number(1)))  # fmt: skip
    pipeline = run(
        program(add(TURNS, 7), back(), egress=(add(A, 1), *clone, op("assign", B, TURNS)))
    )
    pipeline.set_clone_session(6, [(8, 0)])
    assert pipeline.process(1, b"\x20\x20!") == [(1, b"\x21\x07!"), (8, b"\x22\x07!")]


def test_each_copy_asks_for_itself(run: Run) -> None:
    """A multicast: one copy's clone is none of the next one's."""
    standard = STANDARD | {"egress_rid": 16}
    group = op("assign", field("standard_metadata", "mcast_grp"), number(1))
    mark = op("assign", A, field("standard_metadata", "egress_rid"))
    clone = unless(expression("==", field("standard_metadata", "egress_rid"), number(1)), 1,
                   op("clone_egress_pkt_to_egress", number(6), number(2)))  # fmt: skip
    pipeline = run(
        small_program(group, egress=(mark, *clone), standard=standard, field_lists=LISTS[1:])
    )
    pipeline.set_multicast(1, [(2, 1), (3, 2)])
    pipeline.set_clone_session(6, [(8, 5)])
    assert pipeline.process(1, b"\x20\x20") == [
        (2, b"\x01\x20"),
        (3, b"\x02\x20"),
        (8, b"\x05\x20"),
    ]


@pytest.mark.parametrize(
    ("ingress", "egress"),
    [
        ((back(), op("resubmit", number(1))), ()),
        ((back(),), (op("recirculate", number(1)),)),
        ((back(),), (op("clone_egress_pkt_to_egress", number(6), number(1)),)),
        ((back(),), (op("clone_egress_pkt_to_egress", number(6), number(1)),
                     op("recirculate", number(1)))),
    ],
)  # fmt: skip
def test_turns_without_end_end(
    run: Run, ingress: tuple[Json, ...], egress: tuple[Json, ...]
) -> None:
    """BMv2 goes on for ever; here a packet has 128 turns, and the next one its own."""
    pipeline = run(program(*ingress, egress=egress))
    pipeline.set_clone_session(6, [(port, 0) for port in range(4)])
    first = pipeline.process(1, b"ab" + bytes(1400))
    assert pipeline.process(1, b"ab" + bytes(1400)) == first
    assert len(first) <= 128 * 5


def test_more_packets_than_there_is_room_for(run: Run) -> None:
    """A full output ends a call, and the packet that had no room comes in the next."""
    clone = op("clone_ingress_pkt_to_egress", number(5), number(2))
    pipeline = run(program(back(), clone))
    pipeline.set_clone_session(5, [(port, 0) for port in range(60)])
    sent = [(1, bytes([i, 1]) + bytes(1000)) for i in range(200)]
    got = pipeline.process_batch(sent)
    assert len(got) == 200 * 61
    assert {data for _, data in got} == {data for _, data in sent}


def test_wrong_sessions(run: Run) -> None:
    pipeline = run(program(back(), op("clone_ingress_pkt_to_egress", number(5), number(2))))
    for session, replicas, most_bytes in ((32768, [(1, 0)], 0), (1, [(512, 0)], 0), (1, [], -1)):
        with pytest.raises(InvalidEntryError):
            pipeline.set_clone_session(session, replicas, most_bytes)
    run(small_program(back())).set_clone_session(1, [(1, 0)])  # a program that makes none


SEEN = [{"type": "field", "value": ["h", "a"]}, {"type": "field", "value": ["meta", "wide"]}]
LEARN = [{"id": 4, "name": "seen", "elements": SEEN}]


def digests(*ingress: Json) -> Json:
    return small_program(*ingress, back(), metadata={"meta": {"wide": 100}}, learn_lists=LEARN)


TELL = op("generate_digest", number(1), number(4))


def test_digests(run: Run) -> None:
    """The values are those of the statement; a ring of 4,096 that nobody reads loses the rest."""
    wide = op("assign", field("meta", "wide"), number((1 << 99) + 5))
    pipeline = run(digests(wide, TELL, add(A, 1)))
    assert pipeline.take_digest() is None
    assert pipeline.process(1, b"\x20\x20") == [(1, b"\x21\x20")]
    taken = pipeline.take_digest()
    assert taken is not None
    assert (taken[0].name, taken[1]) == ("seen", (0x20, (1 << 99) + 5))
    assert pipeline.take_digest() is None
    pipeline.process_batch([(1, b"\x30\x20")] * 5000)
    count = 0
    while pipeline.take_digest() is not None:
        count += 1
    assert count == 4096
    silent = run(small_program(back()))
    assert silent.take_digest() is None


def test_a_list_with_a_headers_field_is_refused() -> None:
    lists = [{"id": 1, "name": "x", "elements": [{"type": "field", "value": ["h", "a"]}]}]
    text = json.dumps(small_program(back(), op("resubmit", number(1)), field_lists=lists))
    with pytest.raises(UnsupportedProgramError, match="fields to keep with one of header 'h'"):
        load_program(text)
