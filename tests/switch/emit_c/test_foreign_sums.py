"""Checksums over the payload, and CRCs that programs name as custom."""

from __future__ import annotations

import binascii
import json

import pytest

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir import load_program
from tests.switch.emit_c.conftest import Run, csum16
from tests.switch.ir.small import PORTS, Json, back, field, number, op, small_program

PAYLOAD: Json = {"type": "payload", "value": None}
A, SUM = field("h", "a"), field("sum", "value")


def over(algorithm: str, *inputs: Json) -> list[Json]:
    return [{"name": "calc", "id": 0, "algo": algorithm, "input": list(inputs)}]


def checksum(*inputs: Json, verify: bool) -> Json:
    """Of header ``h``, whose two bytes are now one field; its place is another, ``sum``."""
    program = small_program(
        back(), standard=PORTS | {"checksum_error": 1}, calculations=over("csum16", *inputs),
        checksums=[{"name": "c", "id": 0, "type": "generic", "target": ["sum", "value"],
                    "calculation": "calc", "verify": verify, "update": not verify}],
    )  # fmt: skip
    program["header_types"].append({"name": "sum_t", "id": 9, "fields": [["value", 16]]})
    program["headers"].append({"name": "sum", "id": 9, "header_type": "sum_t", "metadata": False})
    state = program["parsers"][0]["parse_states"][0]
    state["parser_ops"].append(
        {"op": "extract", "parameters": [{"type": "regular", "value": "sum"}]}
    )
    program["deparsers"][0]["order"].append("sum")
    if verify:
        wrong = op("assign", A, field("standard_metadata", "checksum_error"))
        program["actions"][0]["primitives"].append(wrong)
    return program


def test_a_checksum_over_the_payload_is_updated(run: Run) -> None:
    """An odd number of bytes before it shifts the payload by one."""
    for inputs, before in (
        ((A, field("h", "b"), PAYLOAD), b"\x12\x34"),
        ((A, PAYLOAD), b"\x12"),
        ((PAYLOAD, A), b"\x12"),  # BMv2 has the payload last, wherever it is named
    ):
        pipeline = run(checksum(*inputs, verify=False))
        for payload in (b"", b"\x01", b"\xff" * 7, bytes(range(256)) * 5):
            [(port, sent)] = pipeline.process(1, b"\x12\x34\x56\x78" + payload)
            covered = before + payload
            expected = csum16(covered + bytes(len(covered) % 2))
            assert (port, sent) == (1, b"\x12\x34" + expected.to_bytes(2, "big") + payload)


def test_a_checksum_over_the_payload_is_verified(run: Run) -> None:
    pipeline = run(checksum(A, PAYLOAD, verify=True))
    total = csum16(b"\x12hello").to_bytes(2, "big")
    assert pipeline.process(1, b"\x12\x34" + total + b"hello")[0][1][0] == 0
    assert pipeline.process(1, b"\x12\x34" + total + b"hellp")[0][1][0] == 1
    assert pipeline.process(1, b"\x12\x34" + total + b"hello\x01")[0][1][0] == 1
    assert pipeline.process(1, b"\x12\x34")[0][1] == b"\x00\x34"  # no sum, no check


def test_a_sum_over_all_of_a_struct(run: Run) -> None:
    """Metadata is always there: it has no validity to ask for."""
    program = checksum({"type": "header", "value": "meta"}, {"type": "header", "value": "h"},
                       verify=False)  # fmt: skip
    program["header_types"].append({"name": "meta_t", "id": 10, "fields": [["x", 16]]})
    program["headers"].append({"name": "meta", "id": 10, "header_type": "meta_t", "metadata": True})
    set_it = op("assign", field("meta", "x"), number(0x0102))
    program["actions"][0]["primitives"].append(set_it)
    [(_, sent)] = run(program).process(1, b"\x12\x34\x00\x00")
    assert sent[2:] == csum16(b"\x01\x02\x12\x34").to_bytes(2, "big")


def hashed(algorithm: str, *inputs: Json) -> Json:
    size = number(1 << 32)
    calc = {"type": "calculation", "value": "calc"}
    place = op("modify_field_with_hash_based_offset", field("meta", "sum"), number(0), calc, size)
    shown = [
        op("assign", A, field("meta", "low")),
        op("assign", field("meta", "low"), field("meta", "sum")),
    ]
    return small_program(
        place, *reversed(shown), back(), metadata={"meta": {"sum": 32, "low": 8}},
        calculations=over(algorithm, *inputs),
    )  # fmt: skip


def test_custom_crcs_have_the_usual_polynomials(run: Run) -> None:
    for algorithm, expected in (("crc32", binascii.crc32(b"\x12\x34") & 0xFF), ("crc16", None)):
        [(_, custom)] = run(hashed(f"{algorithm}_custom", A, field("h", "b"))).process(
            1, b"\x12\x34"
        )
        [(_, usual)] = run(hashed(algorithm, A, field("h", "b"))).process(1, b"\x12\x34")
        assert custom == usual
        assert expected in (None, custom[0])


@pytest.mark.parametrize(
    ("algorithm", "inputs", "construct"),
    [
        ("crc64_custom", (A,), "the hash algorithm 'crc64_custom'"),
        ("crc32", (A, PAYLOAD), "a hash over the payload"),
    ],
)
def test_other_hashes_are_refused(algorithm: str, inputs: tuple[Json, ...], construct: str) -> None:
    with pytest.raises(UnsupportedProgramError, match=construct):
        load_program(json.dumps(hashed(algorithm, *inputs)))
