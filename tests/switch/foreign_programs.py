"""Eleven small programs that passes have made wrong; copies and loops on the general path, too."""

from __future__ import annotations

from tests.switch.bmv2 import (
    Builder,
    apply,
    assign,
    copy,
    if_,
    inside,
    op,
    ref,
    send,
    set_invalid,
    set_valid,
    state,
    valid,
)
from tests.switch.foreign_case import AB, ALL_AB, IP, OF_PROTO, SET, Case

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
}
