"""Hashes over memory: which are, and that what comes of a packet stays the same."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from ina.p4 import compiled, names
from ina.p4.builds import builds_of
from ina.switch.ir import load_program
from ina.switch.ir.expr import WholeArray
from ina.switch.ir.stmt import Hash
from ina.switch.ir.walk import walk
from ina.switch.passes.hash_plans import Headed, Patched
from ina.switch.passes.plan import MainPath, make_plan
from ina.switch.pipeline import Pipeline
from tests.switch.bmv2 import (
    Builder,
    Json,
    assign,
    const,
    if_,
    op,
    primitive,
    ref,
    register_read,
    register_write,
    send,
    state,
)
from tests.switch.quick import quick

VALUES = 16
COPIES = 3
ONES = (1 << 64) - 1
_PORT, _DROP = 2, 511


def crc(target: str) -> Json:
    calc, size = {"type": "calculation", "value": "calc"}, const(1 << 32)
    return primitive("modify_field_with_hash_based_offset", ref(target), const(0), calc, size)


def program(covered: Sequence[str], *, before: bool = True) -> Builder:
    """Sums packets whose CRC is right, and gives each copy of a sum its own. ``covered``: what is
    in front of the values; ``before``: whether eight bytes stand in front of it in the packet."""
    values = range(VALUES)
    hide = [assign("meta.ones", ONES), assign("meta.hidden", 0xFF)]
    summed = [
        step
        for it in values
        for step in (
            register_read(f"meta.s{it}", f"r{it}", 0),
            assign(f"meta.s{it}", op("&", op("+", f"meta.s{it}", f"v.v{it}"), 0xFFFFFFFF)),
            register_write(f"r{it}", 0, f"meta.s{it}"),
            assign(f"v.v{it}", f"meta.s{it}"),
        )
    ]
    to_all = assign("standard_metadata.mcast_grp", 1)
    wrong = op("!=", "meta.crc", "t.crc")
    inputs = [*map(ref, covered), {"type": "header", "value": "v"}]
    headers = {
        **({"e": [("mac", 64)]} if before else {}),
        "h": [("x", 8), ("hop", 8), ("rid", 16), ("half", 4), ("rest", 28)],
        "v": [(f"v{it}", 32) for it in values],
        "t": [("crc", 32)],
    }
    return Builder(
        headers=headers,
        parser=[state("start", list(headers))],
        metadata=[
            *(("crc", 32), ("ones", 64), ("hidden", 8)),
            *((f"s{it}", 32) for it in values),
        ],
        registers={f"r{it}": (1, 32) for it in values},
        ingress=[*hide, crc("meta.crc"), if_(wrong, [send(_DROP)], [*summed, to_all])],
        egress=[
            assign("h.rid", "standard_metadata.egress_rid"),
            assign("h.hop", op("&", op("+", "h.hop", 1), 0xFF)),
            *(*hide, crc("t.crc")),
        ],
        calculations=[{"name": "calc", "id": 0, "algo": "crc32", "input": inputs}],
    )


USUAL = ("meta.ones", "h.x", "meta.hidden", "h.rid", "h.half", "h.rest")
PROGRAMS = {
    "as RoCE has it": program(USUAL),
    "nothing is before it": program(USUAL, before=False),
    "of no whole words": program(USUAL[1:]),
    "out of order": program(("meta.ones", "h.rid", "h.x", "h.half", "h.rest")),
    "of half a byte": program(("h.rid", "h.half")),
    "values alone": program(()),
}
PLANS = {
    "as RoCE has it": (Patched, Headed),
    "nothing is before it": (Headed,),
    "of no whole words": (Patched, Headed),
    "out of order": (),
    "of half a byte": (),
    "values alone": (Patched,),
}


@cache
def main_of(name: str) -> MainPath:
    main = make_plan(load_program(PROGRAMS[name].json())).main
    assert main is not None
    return main


def covered_by(name: str, head: bytes, values: bytes) -> bytes:
    """What the CRC is over; ``head``: of header h."""
    x, rid, half, rest = head[:1], head[2:4], head[4] >> 4, head[4:]
    whole = {
        "out of order": b"\xff" * 8 + rid + x + rest,
        "of no whole words": x + b"\xff" + rid + rest,
        "values alone": b"",
    }.get(name, b"\xff" * 8 + x + b"\xff" + rid + rest)
    if name != "of half a byte":
        return whole + values
    in_front = int.from_bytes(rid, "big") << 4 | half
    bits = in_front << 8 * len(values) | int.from_bytes(values, "big")
    return (bits << 4).to_bytes(len(rid + values) + 1, "big")


def packet(name: str, head: bytes, values: bytes, wrong: bool) -> bytes:
    before = b"" if name == "nothing is before it" else b"ethernet"
    right = zlib.crc32(covered_by(name, head, values))
    return before + head + values + (right ^ wrong).to_bytes(4, "big")


def check(name: str, pipeline: Pipeline, packets: Sequence[tuple[bytes, bytes, bool]]) -> None:
    pipeline.set_multicast(1, [(port, 7 * port) for port in range(1, COPIES + 1)])
    sums = [0] * VALUES
    for head, values, wrong in packets:
        sent = pipeline.process(0, packet(name, head, values, wrong))
        if wrong:
            assert sent == []
            continue
        each = zip(sums, struct.unpack(f">{VALUES}I", values), strict=True)
        sums = [(a + b) % (1 << 32) for a, b in each]
        result = struct.pack(f">{VALUES}I", *sums)
        assert sent == [
            (port, packet(name, _left(head, 7 * port), result, wrong=False))
            for port in range(1, COPIES + 1)
        ]


def _left(head: bytes, rid: int) -> bytes:
    return head[:1] + bytes([(head[1] + 1) % 256]) + rid.to_bytes(2, "big") + head[4:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_taken_from_memory(name: str) -> None:
    main = main_of(name)
    assert tuple(sorted(type(it).__name__ for it in main.hashes.values())) == tuple(
        sorted(it.__name__ for it in PLANS[name])
    )
    assert main.late_arrays["v"].has_trailer
    assert main.of_computed


def test_packets_stay_what_they_are() -> None:
    rng = random.Random(1)
    packets = [(rng.randbytes(8), rng.randbytes(4 * VALUES), rng.random() < 0.2) for _ in range(50)]
    with quick([it.json() for it in PROGRAMS.values()]) as made:
        for name, both in zip(PROGRAMS, made, strict=True):
            check(name, both.main, packets)
            check(name, both.general, packets)


def test_a_hash_that_nothing_is_asked_of_stays_where_it_is() -> None:
    built = program(USUAL)
    ingress = [*built.ingress[:-1], assign("h.rest", "meta.crc"), built.ingress[-1]]
    main = make_plan(load_program(replace(built, ingress=ingress).json())).main
    assert main is not None
    assert not main.computed
    assert not main.of_computed
    assert any(isinstance(node, Hash) for node in walk(main.ingress))


def test_values_that_a_hash_decides_over_are_in_the_frame() -> None:
    """Somebody else may write where a frame goes on meanwhile."""
    built = program(USUAL)
    headers = {name: it for name, it in built.headers.items() if name != "t"}
    last = {**headers, "h": [("x", 8), ("hop", 8), ("rid", 16), ("half", 4), ("rest", 28)]}
    wrong = op("!=", "meta.crc", "e.mac")
    anew = replace(
        built,
        headers=last,
        parser=[state("start", list(last))],
        ingress=[*built.ingress[:-1], if_(wrong, [send(_DROP)], built.ingress[-1].otherwise)],
        egress=[],
    )
    main = make_plan(load_program(anew.json())).main
    assert main is not None
    assert main.tail_header is None
    assert "v" in main.late_arrays


def test_mode_roce_is_as_fast_as_it_can_be() -> None:
    values = min(builds_of(names.ROCE))
    plan = make_plan(load_program(compiled(values, names.ROCE).bmv2_json))
    main = plan.main
    assert main is not None
    assert [type(it) for it in main.hashes.values()] == [Patched, Headed]
    assert main.late_arrays["values"].has_trailer
    assert main.early == (names.JOBS, names.MEMBERS)
    assert not any(name.startswith("tmp") for name in plan.program.headers)
    arrays = [node for node in walk(plan.program.egress) if isinstance(node, WholeArray)]
    assert [it.count for it in arrays] == [values]
