"""Programs whose hashes would be wrong if a pass overlooked what changes what they are over."""

from __future__ import annotations

import zlib

from tests.switch.bmv2 import (
    Builder,
    Json,
    assign,
    const,
    if_,
    op,
    primitive,
    ref,
    send,
    set_invalid,
    state,
)
from tests.switch.foreign_case import Case

VALUES = [(f"v{number}", 32) for number in range(8)]
BYTES = bytes(range(32))


def crc(target: str) -> Json:
    calc, size = {"type": "calculation", "value": "calc"}, const(1 << 32)
    return primitive("modify_field_with_hash_based_offset", ref(target), const(0), calc, size)


def over(*inputs: Json) -> list[Json]:
    return [{"name": "calc", "id": 0, "algo": "crc32", "input": list(inputs)}]


def of(data: bytes) -> str:
    return zlib.crc32(data).to_bytes(4, "big").hex()


changed_behind_the_copy = Case(
    Builder(
        headers={"a": [("x", 32), ("sum", 32)]},
        parser=[state("start", ["a"])],
        metadata=[("t", 32)],
        ingress=[assign("meta.t", "a.x"), assign("a.x", 5), crc("a.sum"), send(2)],
        calculations=over(ref("meta.t")),
    ),
    "0102030400000000",
    [(2, "00000005" + of(bytes([1, 2, 3, 4])))],
)

gone_before_the_copies = Case(
    Builder(
        headers={"h": [("x", 64)], "v": VALUES, "t": [("sum", 32)]},
        parser=[state("start", ["h", "v", "t"])],
        ingress=[if_(op("==", "h.x", 0), [send(2)], [send(3)])],
        egress=[set_invalid("h"), crc("t.sum")],
        calculations=over({"type": "header", "value": "h"}, {"type": "header", "value": "v"}),
    ),
    "ff" * 8 + BYTES.hex() + "00000000",
    [(3, BYTES.hex() + of(BYTES))],
)

HASHED = {
    "changed behind the copy": changed_behind_the_copy,
    "gone before the copies": gone_before_the_copies,
}
