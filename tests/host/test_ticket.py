"""What a ticket says of the sums: who is in them, how many, by what an average is divided."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ina._native.host import RtoLimits, WorkerCore
from ina.controller.embedded import Embedded
from ina.host import Session
from ina.host.arrays import VALUE_TYPES
from ina.host.errors import InvalidTicketError
from ina.host.join import JoinRequest, _grant
from ina.host.ticket import Ticket
from ina.host.trees import TreePlace
from ina.host.wishes import NO_WISHES
from ina.p4.catalogue import ProgramId
from ina.protocol.codec import decode, encode
from ina.protocol.spec import Kind
from ina.rpc import controller_pb2 as pb2

TICKET = Ticket("j", 1, 1, 1, 3, 64, 64, "127.0.0.1", 17760)


def numbers(ticket: Ticket) -> tuple[int, int, int]:
    return ticket.expected_bitmap, ticket.summands, ticket.divisor


def test_where_nothing_is_said_all_ranks_are_in_each_sum() -> None:
    assert numbers(TICKET) == (0b111, 3, 3)
    assert numbers(replace(TICKET, expected_bitmap=0b10, summands=12, divisor=24)) == (2, 12, 24)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"expected_bitmap": 0b101}, "expected_bitmap 0x5 lacks rank 1"),
        ({"expected_bitmap": 1 << 32 | 2}, "expected_bitmap is 4294967298, must be 1..4294967295"),
        ({"summands": 1 << 16}, "summands is 65536, must be 1..65535"),
        ({"mode": "sparse"}, "its switch runs sparse, 64 values a packet; workers speak pool"),
        ({"divisor": -1}, "divisor is -1, must be 1..65535"),
    ],
)
def test_what_cannot_be(change: dict[str, int], says: str) -> None:
    with pytest.raises(InvalidTicketError, match=says):
        replace(TICKET, **cast(Any, change))


def test_a_first_tree_begins_at_the_ticket_s_switch() -> None:
    tree = TreePlace(TICKET.job, "10.0.0.9", 1, 0, 0, 1, 0, TICKET.lanes)
    says = r"its first tree begins at 10\.0\.0\.9:1, and not at its switch "
    with pytest.raises(InvalidTicketError, match=says):
        replace(TICKET, trees=(tree,), expected_bitmap=1)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (pb2.JoinReply(), (0b111, 3, 3)),  # of a controller that does not know them
        (pb2.JoinReply(expected_bitmap=6, summands=8, divisor=9), (6, 8, 9)),
    ],
)
def test_the_controller_s_answer_decides(said: pb2.JoinReply, meant: tuple[int, int, int]) -> None:
    said.MergeFrom(pb2.JoinReply(job=1, epoch=1, world_size=3, slots=64, window=32))
    created = pb2.CreateJobReply(
        job=1, switch_host="127.0.0.1", switch_udp_port=17760, values_per_packet=64, slots=64
    )
    request = SimpleNamespace(job="j", rank=1, wishes=NO_WISHES)
    grant = _grant(cast(JoinRequest, request), created, said, cast(Any, None), None)
    assert numbers(grant.ticket) == meant


def test_the_ticket_names_the_program() -> None:
    assert TICKET.program == ProgramId("pool", "v1model", 64)
    assert str(replace(TICKET, target="tofino").program) == "pool on tofino, 64 values a packet"


def test_the_core_is_told_each_of_them() -> None:
    ticket = replace(TICKET, expected_bitmap=0b11, summands=12, divisor=24)
    config = ticket.worker_config(stall_timeout_ns=1, rto=RtoLimits(), keep_results=False)
    assert (config.expected_bitmap, config.summands, config.divisor) == (0b11, 12, 24)


def test_a_whole_sum_is_what_the_bitmap_and_the_summands_say() -> None:
    """Twelve summands in the packets of ranks 1 and 2: as where switches sum what others summed."""
    ticket = replace(TICKET, expected_bitmap=0b110, summands=12, divisor=24)
    config = ticket.worker_config(stall_timeout_ns=10**12, rto=RtoLimits(), keep_results=False)
    core = WorkerCore(config)
    ours, out = np.full(64, 1.5, np.float32), np.zeros(64, np.float32)
    value_type = VALUE_TYPES[ours.dtype]
    core.submit(1, ours.ctypes.data, out.ctypes.data, ours.size, value_type, True, 0)

    def result(contributors: int, summands: int) -> bytes:
        digest = header.digest * summands & 0xFFFF
        whole = replace(header, kind=Kind.RESULT, contributors=contributors, digest=digest)
        return encode(whole, values * 12)

    for _ in ("exponent", "values"):
        header, values = decode(*core.poll_transmit(0))
        mismatched = core.counters.mismatched
        for contributors in (0b010, 0b111, 0b100):
            core.on_result(result(contributors, 12), 0)
        assert core.counters.mismatched == mismatched + 3
        core.on_result(result(0b110, 12), 0)
        assert core.mismatch is None
    assert core.take_completions() == [1]
    # The scale leaves room for twelve: no sum of as many values as large as ours overflows.
    assert abs(int(values[0])) * 12 < 2**31 <= abs(int(values[0])) * 12 * 4
    assert np.allclose(out, 1.5 * 12 / 24)

    core.submit(2, ours.ctypes.data, out.ctypes.data, ours.size, value_type, True, 0)
    header, values = decode(*core.poll_transmit(0))
    core.on_result(result(0b110, 3), 0)
    assert core.mismatch is not None


def test_an_average_is_divided_by_the_ticket_s_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so the ticket's, not the world's size, is what the core has."""
    made = Ticket.__post_init__

    def of_ten(ticket: Ticket) -> None:
        object.__setattr__(ticket, "divisor", 10)
        made(ticket)

    monkeypatch.setattr(Ticket, "__post_init__", of_ten)
    with (
        Embedded(values=64) as place,
        Session.join(place.controller_addr, "tenth", 0, 1) as session,
    ):
        got = session.all_reduce(np.full(100, 20, np.int32), op="avg")
    assert (got == 2).all()
