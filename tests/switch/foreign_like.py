"""More programs like those of foreign_programs.py."""

from __future__ import annotations

from typing import Any

from tests.switch.bmv2 import (
    Builder,
    Json,
    apply,
    assign,
    const,
    copy,
    if_,
    inside,
    op,
    param,
    primitive,
    ref,
    register_read,
    register_write,
    send,
    set_invalid,
    set_valid,
    state,
    valid,
)
from tests.switch.foreign_case import AB, ALL_AB, IP, OF_PROTO, SET, Case

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

CHANGED_BY_PARSER = state("inner", ["ip2"])
CHANGED_BY_PARSER["parser_ops"].append({"op": "set", "parameters": [ref("ip.proto"), const(17)]})
changed_by_the_parser = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=[OF_PROTO[0], CHANGED_BY_PARSER],
        ingress=[if_(op("==", "ip.proto", 4), [send(2)], [send(3)])],
    ),
    "04aa11bb",
    [(3, "11aa11bb")],
)

CHANGED_ALONE = state("start", ["ip", "ip2"])
CHANGED_ALONE["parser_ops"].append({"op": "set", "parameters": [ref("ip.id"), const(17)]})
changed_by_parser_and_ingress = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=[CHANGED_ALONE],
        ingress=[assign("standard_metadata.egress_spec", "ip.id"), assign("ip.id", 1)],
    ),
    "04aa11bb",
    [(17, "040111bb")],
)


def sets_x(*ingress: Any, packet: str = "0722", port: int, out: str = "0722") -> Case:
    """With a table T on b.v whose entry sets meta.x to 9; egress writes it into b.v."""
    return Case(
        Builder(
            headers=AB,
            parser=ALL_AB,
            metadata=[("x", 8)],
            actions={"t": ([8], [assign("meta.x", param(0))])},
            tables={"T": (["b.v"], ["t"])},
            ingress=ingress,
            egress=[assign("b.v", "meta.x")],
        ),
        packet,
        [(port, out)],
        [("T", 0x22, "t", [9])],
    )


PORT = "standard_metadata.egress_spec"
read_before_the_table = sets_x(assign(PORT, op("+", "meta.x", 2)), apply("T"), port=2, out="0709")
set_behind_the_table = sets_x(
    send(2), apply("T"), assign("meta.x", op("+", "meta.x", 1)), port=2, out="070a"
)
left_before_the_table = sets_x(
    send(2), if_(op("==", "a.k", 7), [primitive("exit")]), apply("T"), port=2, out="0700"
)

carried_on = Case(
    Builder(
        headers={"a": [(f"v{i}", 8) for i in range(8)], "b": [(f"w{i}", 8) for i in range(8)]},
        parser=[state("start", ["a", "b"])],
        metadata=[("t", 8)],
        ingress=[
            [
                step
                for i in range(8)
                for step in (assign(f"b.w{i}", "meta.t"), assign("meta.t", f"a.v{i}"))
            ],
            send(2),
        ],
    ),
    "0102030405060708" + "ff" * 8,
    [(2, "0102030405060708" + "0001020304050607")],
)

condition_of_each = Case(
    Builder(
        headers={"a": [(f"v{i}", 8) for i in range(8)]},
        parser=[state("start", ["a"])],
        ingress=[
            [
                step
                for i in range(8)
                for step in inside(op("==", f"a.v{i}", 2), [assign(f"a.v{i}", 7)], at=2 * i)
            ],
            send(2),
        ],
    ),
    "0102030201020302",
    [(2, "0107030701070307")],
)

key_that_changes_later = Case(
    Builder(
        headers=AB,
        parser=ALL_AB,
        actions=SET,
        tables={"T": (["a.k"], ["set"])},
        ingress=[apply("T"), assign("a.k", 1)],
    ),
    "0722",
    [(5, "0122")],
    [("T", 7, "set", [5])],
)

valid_by_a_copy = Case(
    Builder(
        headers={"a": [("k", 8)], "b": [("k", 8)]},
        parser=[state("start", ["a"])],
        ingress=[copy("b", "a"), if_(valid("b"), [send(2)], [send(3)])],
    ),
    "07",
    [(2, "0707")],
)

made_and_copied = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=[state("start", ["ip", "ip2"])],
        ingress=[
            [set_invalid("ip"), set_valid("ip"), assign("ip.proto", 5), copy("ip2", "ip")],
            send(2),
        ],
    ),
    "04aa11bb",
    [(2, "05000500")],
)

set_by_a_hash = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=OF_PROTO,
        ingress=[
            primitive(
                "modify_field_with_hash_based_offset",
                ref("ip.proto"), const(17), {"type": "calculation", "value": "sum"}, const(1),
            ),
            if_(op("==", "ip.proto", 4), [send(2)], [send(3)]),
        ],
        calculations=[{"name": "sum", "id": 0, "algo": "crc16", "input": [ref("ip.id")]}],
    ),
    "04aa11bb",
    [(3, "11aa11bb")],
)  # fmt: skip

set_from_a_register = Case(
    Builder(
        headers={"ip": IP, "ip2": IP},
        parser=OF_PROTO,
        registers={"r": (4, 8)},
        ingress=[
            register_read("ip.proto", "r", 0),
            if_(op("==", "ip.proto", 4), [send(2)], [send(3)]),
        ],
    ),
    "04aa11bb",
    [(3, "00aa11bb")],
)


def summed(*then: Any) -> Case:
    """Sums that stay in the packet, whatever happens to the registers then."""
    return Case(
        Builder(
            headers={"a": [(f"v{i}", 8) for i in range(8)]},
            parser=[state("start", ["a"])],
            registers={f"r{i}": (4, 8) for i in range(8)},
            metadata=[(f"{name}{i}", 8) for name in "tu" for i in range(8)],
            ingress=[summed_in_registers(8), *then, send(2)],
        ),
        "0102030405060708",
        [(2, "0102030405060708")],
    )


summed_and_more = summed(
    [
        step
        for i in range(8)
        for step in (
            register_read(f"meta.u{i}", f"r{i}", 0),
            assign(f"meta.u{i}", op("&", op("+", f"meta.u{i}", 1), 0xFF)),
            register_write(f"r{i}", 0, f"meta.u{i}"),
        )
    ]
)
summed_and_one_written = summed(register_write("r3", 0, 99))

LIKE = {
    "prefix sums": prefix_sums,
    "other scratch in the first row": other_scratch_in_the_first_row,
    "sent in a run": sent_in_a_run,
    "gate of a wrong checksum": gate_of_a_wrong_checksum,
    "condition on a late array": condition_on_a_late_array,
    "narrower registers": narrower_registers,
    "default that is not listed": default_that_is_not_listed,
    "equal to more than it holds": equal_to_more_than_it_holds,
    "read before it is extracted": read_before_it_is_extracted,
    "selected before it is extracted": selected_before_it_is_extracted,
}
"""That passes have made wrong, too."""

FOR_MUTANTS = {
    "copied before egress": copied_before_egress,
    "changed by the parser": changed_by_the_parser,
    "changed by parser and ingress": changed_by_parser_and_ingress,
    "read before the table": read_before_the_table,
    "set behind the table": set_behind_the_table,
    "left before the table": left_before_the_table,
    "carried on": carried_on,
    "condition of each": condition_of_each,
    "key that changes later": key_that_changes_later,
    "valid by a copy": valid_by_a_copy,
    "made and copied": made_and_copied,
    "set by a hash": set_by_a_hash,
    "set from a register": set_from_a_register,
    "summed and more": summed_and_more,
    "summed and one written": summed_and_one_written,
}
"""That only mutants of passes make wrong."""
