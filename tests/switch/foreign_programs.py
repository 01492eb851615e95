"""Small programs that passes have made wrong, with a packet and what must come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.switch.bmv2 import (
    Builder,
    Json,
    apply,
    assign,
    copy,
    if_,
    inside,
    op,
    param,
    ref,
    register_read,
    register_write,
    send,
    set_invalid,
    set_valid,
    state,
    valid,
)


@dataclass(frozen=True)
class Case:
    """A program, its entries (table, key, action, parameters), a packet, what leaves."""

    program: Builder
    packet: str
    right: Sequence[tuple[int, str]]
    entries: Sequence[tuple[str, int, str, Sequence[int]]] = ()
    replicas: Sequence[tuple[int, int]] = field(default=())
    """Of multicast group 1: (port, rid)."""


IP = [("proto", 8), ("id", 8)]
AB = {"a": [("k", 8)], "b": [("v", 8)]}
ALL_AB = [state("start", ["a", "b"])]
OF_PROTO = [state("start", ["ip"], "ip.proto", {4: "inner"}), state("inner", ["ip2"])]
SET = {"set": ([9], [assign("standard_metadata.egress_spec", param(0))])}

copied = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=OF_PROTO,
        ingress=[
            if_(valid("ip2"), [[copy("ip", "ip2"), set_invalid("ip2")]]),
            if_(op("==", "ip.proto", 17), [send(2)], [send(3)]),
        ],
    ),
    "04aa11bb",
    [(2, "11bb")],
)

made_valid = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=OF_PROTO,
        ingress=[
            [set_invalid("ip"), set_valid("ip")],
            if_(op("==", "ip.proto", 4), [send(2)], [send(3)]),
        ],
    ),
    "04aa11bb",
    [(3, "000011bb")],
)

copied_after_equality = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=[state("start", ["ip", "ip2"])],
        actions=SET,
        tables={"T": (["ip.proto"], ["set"])},
        ingress=[
            if_(
                op("==", "ip.id", 0xAA),
                [
                    apply("T"),
                    [copy("ip", "ip2"), set_invalid("ip2")],
                    if_(op("==", "ip.id", 0xAA), [send(2)], [send(3)]),
                ],
                [send(3)],
            )
        ],
    ),
    "04aa11bb",
    [(3, "11bb")],
)

summed_in_a_loop = Case(
    Builder(
        headers={"a": [(f"v{i}", 16) for i in range(16)], "b": [("x", 8)]},
        parser=[state("start", ["a"], "a.v0", {5: "more"}), state("more", ["b"])],
        ingress=[
            [assign(f"a.v{i}", op("&", op("+", f"a.v{i}", 1), 0xFFFF)) for i in range(16)],
            if_(op("==", "a.v0", 5), [send(2)], [send(3)]),
        ],
    ),
    "0005" + "0001" * 15 + "aa",
    [(3, "0006" + "0002" * 15 + "aa")],
)

early_key_of_an_invalid_header = Case(
    Builder(
        headers=AB,
        parser=ALL_AB,
        actions=SET,
        tables={"T": (["a.k"], ["set"])},
        ingress=[set_invalid("a"), apply("T")],
    ),
    "0722",
    [(5, "22")],
    [("T", 0, "set", [5]), ("T", 7, "set", [9])],
)

gate_sets_signed = Case(
    Builder(
        headers=AB,
        parser=ALL_AB,
        metadata=[("s", 8, True)],
        actions={"g": ([], [assign("meta.s", 1)]), **SET},
        tables={"G": (["a.k"], ["g"]), "T": (["b.v"], ["set"])},
        ingress=[apply("G", [if_(op("==", "meta.s", 0), [apply("T")], [send(3)])], [send(3)])],
    ),
    "0722",
    [(3, "0722")],
    [("G", 7, "g", []), ("T", 0x22, "set", [9])],
)

gate_sets_a_key = Case(
    Builder(
        headers=AB,
        parser=ALL_AB,
        metadata=[("x", 8)],
        actions={"g1": ([], [assign("meta.x", 1)]), "g2": ([], []), **SET},
        tables={"G1": (["a.k"], ["g1"]), "G2": (["meta.x"], ["g2"]), "T": (["b.v"], ["set"])},
        ingress=[apply("G1", [apply("G2", [apply("T")], [send(3)])], [send(3)])],
    ),
    "0722",
    [(3, "0722")],
    [("G1", 7, "g1", []), ("G2", 0, "g2", []), ("T", 0x22, "set", [9])],
)

early_table_sets_a_key = Case(
    Builder(
        headers=AB,
        parser=ALL_AB,
        metadata=[("x", 8)],
        actions={"g": ([], []), "t": ([], [assign("meta.x", 9)])},
        tables={"G": (["meta.x"], ["g"]), "T": (["b.v"], ["t"])},
        ingress=[
            apply("G", [apply("T"), assign("standard_metadata.egress_spec", "meta.x")], [send(3)])
        ],
    ),
    "0722",
    [(3, "0722")],
    [("G", 9, "g", []), ("T", 0x22, "t", [])],
)

metadata_of_another_copy = Case(
    Builder(
        headers={"b": [("x", 16), ("csum", 16)]},
        parser=[state("start", ["b"])],
        metadata=[("f", 1)],
        ingress=[assign("standard_metadata.mcast_grp", 1)],
        egress=[if_(op("==", "standard_metadata.egress_rid", 1), [assign("meta.f", 1)])],
        calculations=[{"name": "sum", "id": 0, "algo": "csum16", "input": [ref("b.x")]}],
        checksums=[
            {
                "name": "c", "id": 0, "target": ["b", "csum"], "type": "generic",
                "calculation": "sum", "verify": False, "update": True,
                "if_cond": op("==", "meta.f", 1),
            }
        ],
    ),
    "11112222aabb",
    [(1, "1111eeeeaabb"), (2, "11112222aabb"), (3, "1111eeeeaabb")],
    replicas=[(1, 1), (2, 2), (3, 1)],
)  # fmt: skip

validity_changed_in_a_loop = Case(
    Builder(
        headers={"a": [(f"v{i}", 8) for i in range(8)], "b": [("x", 8)]},
        parser=[state("start", ["a", "b"])],
        ingress=[
            [
                step
                for i in range(8)
                for step in (
                    set_invalid("b"),
                    *inside(valid("b"), [assign(f"a.v{i}", 7)], at=3 * i + 1),
                )
            ],
            send(2),
        ],
    ),
    "0102030405060708" + "aa",
    [(2, "0102030405060708")],
)

length_after_a_header_went = Case(
    Builder(
        headers={"a": [("k", 16)], "b": [("len", 16)]},
        parser=[state("start", ["a", "b"])],
        ingress=[set_invalid("a"), send(2)],
        egress=[assign("b.len", op("&", "standard_metadata.packet_length", 0xFFFF))],
    ),
    "11112222aabb",
    [(2, "0004aabb")],
)

prefix_sums = Case(
    Builder(
        headers={"a": [(f"v{i}", 8) for i in range(8)], "b": [(f"w{i}", 8) for i in range(8)]},
        parser=[state("start", ["a", "b"])],
        metadata=[(f"m{i}", 8) for i in range(9)],
        ingress=[
            [
                step
                for i in range(8)
                for step in (
                    assign(f"meta.m{i + 1}", op("&", op("+", f"meta.m{i}", f"a.v{i}"), 0xFF)),
                    assign(f"b.w{i}", f"meta.m{i + 1}"),
                )
            ],
            send(2),
        ],
    ),
    "01" * 8 + "00" * 8,
    [(2, "01" * 8 + "0102030405060708")],
)

other_scratch_in_the_first_row = Case(
    Builder(
        headers={"a": [(f"v{i}", 8) for i in range(8)], "b": [(f"w{i}", 8) for i in range(8)]},
        parser=[state("start", ["a", "b"])],
        metadata=[(f"{name}{i}", 8) for name in "tu" for i in range(8)],
        ingress=[
            [
                step
                for i in range(8)
                for step in (
                    assign(f"meta.t{i}", f"a.v{i}"),
                    assign(f"meta.u{i}", 1),
                    assign(f"b.w{i}", f"meta.{'u' if i else 't'}{i}"),
                )
            ],
            send(2),
        ],
    ),
    "0708090a0b0c0d0e" + "00" * 8,
    [(2, "0708090a0b0c0d0e" + "0701010101010101")],
)

sent_in_a_run = Case(
    Builder(
        headers={"a": [("k", 8)]},
        parser=[state("start", ["a"])],
        ingress=[[send(2)] * 8],
    ),
    "07",
    [(2, "07")],
)

gate_of_a_wrong_checksum = Case(
    Builder(
        headers={"a": [("x", 16), ("csum", 16)], "b": [("v", 8)]},
        parser=[state("start", ["a", "b"])],
        actions={"g": ([], []), **SET},
        tables={"G": (["standard_metadata.checksum_error"], ["g"]), "T": (["b.v"], ["set"])},
        ingress=[apply("G", [apply("T")], [send(3)])],
        calculations=[{"name": "sum", "id": 0, "algo": "csum16", "input": [ref("a.x")]}],
        checksums=[
            {
                "name": "c", "id": 0, "target": ["a", "csum"], "type": "generic",
                "calculation": "sum", "verify": True, "update": False,
            }
        ],
    ),
    "1111222222",
    [(3, "1111222222")],
    [("G", 0, "g", []), ("T", 0x22, "set", [9])],
)  # fmt: skip


def summed_in_registers(field_bits: int) -> list[Json]:
    """Adds fields to registers of 8 bits, and puts the sums back."""
    return [
        step
        for i in range(8)
        for step in (
            register_read(f"meta.t{i}", f"r{i}", 0),
            assign(f"meta.t{i}", op("&", op("+", f"meta.t{i}", f"a.v{i}"), 2**field_bits - 1)),
            register_write(f"r{i}", 0, f"meta.t{i}"),
            assign(f"a.v{i}", f"meta.t{i}"),
        )
    ]


condition_on_a_late_array = Case(
    Builder(
        headers={"a": [(f"v{i}", 8) for i in range(8)]},
        parser=[state("start", ["a"])],
        registers={f"r{i}": (4, 8) for i in range(8)},
        metadata=[(f"t{i}", 8) for i in range(8)],
        ingress=[if_(op("!=", "a.v3", 7), [summed_in_registers(8), send(2)], [send(3)])],
    ),
    "0000000700000000",
    [(3, "0000000700000000")],
)

narrower_registers = Case(
    Builder(
        headers={"a": [(f"v{i}", 16) for i in range(8)]},
        parser=[state("start", ["a"])],
        registers={f"r{i}": (4, 8) for i in range(8)},
        metadata=[(f"t{i}", 16) for i in range(8)],
        ingress=[summed_in_registers(16), send(2)],
    ),
    "0102" * 8,
    [(2, "0102" * 8)],
)

default_that_is_not_listed = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=OF_PROTO,
        actions={**SET, "d": ([], [assign("ip.proto", 17)])},
        tables={"T": (["ip.id"], ["set"])},
        defaults={"T": "d"},
        ingress=[apply("T"), if_(op("==", "ip.proto", 17), [send(2)], [send(3)])],
    ),
    "04aa11bb",
    [(2, "11aa11bb")],
)

equal_to_more_than_it_holds = Case(
    Builder(
        headers=AB,
        parser=ALL_AB,
        actions=SET,
        tables={"T": (["b.v"], ["set"])},
        ingress=[if_(op("==", "a.k", 0x107), [apply("T")], [send(3)])],
    ),
    "0722",
    [(3, "0722")],
    [("T", 0x22, "set", [9])],
)

copied_before_egress = Case(
    Builder(
        headers={"a": [("k", 8)], "b": [("k", 8)]},
        parser=[state("start", ["a"])],
        ingress=[copy("b", "a"), send(2)],
        egress=[assign("a.k", op("&", op("+", "a.k", 1), 0xFF))],
    ),
    "07",
    [(2, "0807")],
)

TOO_SOON = state("start", ["ip"])
TOO_SOON["parser_ops"].insert(0, {"op": "set", "parameters": [ref("meta.port"), ref("ip.proto")]})
read_before_it_is_extracted = Case(
    Builder(
        headers={"ip": IP},
        parser=[TOO_SOON],
        metadata=[("port", 9)],
        ingress=[assign("standard_metadata.egress_spec", "meta.port")],
        egress=[assign("ip.proto", 9)],
    ),
    "0711",
    [(0, "0911")],
)

selected_before_it_is_extracted = Case(
    Builder(
        headers={"ip": IP},
        parser=[state("start", [], "ip.proto", {7: "its"}), state("its", ["ip"])],
        ingress=[if_(valid("ip"), [send(2)], [send(3)])],
    ),
    "0711",
    [(3, "0711")],
)

CASES = {
    "C": copied,
    "D": made_valid,
    "E": copied_after_equality,
    "M": summed_in_a_loop,
    "A": early_key_of_an_invalid_header,
    "B": gate_sets_signed,
    "O": gate_sets_a_key,
    "U": early_table_sets_a_key,
    "V": metadata_of_another_copy,
    "R5": validity_changed_in_a_loop,
    "F": length_after_a_header_went,
    "prefix sums": prefix_sums,
    "other scratch in the first row": other_scratch_in_the_first_row,
    "sent in a run": sent_in_a_run,
    "gate of a wrong checksum": gate_of_a_wrong_checksum,
    "condition on a late array": condition_on_a_late_array,
    "narrower registers": narrower_registers,
    "default that is not listed": default_that_is_not_listed,
    "equal to more than it holds": equal_to_more_than_it_holds,
    "copied before egress": copied_before_egress,
    "read before it is extracted": read_before_it_is_extracted,
    "selected before it is extracted": selected_before_it_is_extracted,
}
