"""Packets that between them set every bit of the header, for the tests of the emitted codecs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from ina.protocol.codec import Header, encode
from ina.protocol.layout import LAYOUT
from ina.protocol.spec import VERSION, Flag, Kind, ValueType


def sample_packets(count: int, seed: int) -> list[tuple[Header, list[int], bytes]]:
    """Returns each header, values and bytes: one all-ones packet, then seeded random ones."""
    rng = random.Random(seed)
    ones: dict[str, Any] = {field.name: field.mask for field in LAYOUT}
    ones |= {"version": VERSION, "kind": Kind.REFUSAL, "flags": Flag(255), "value_count": 3}
    headers = [Header(**ones)]
    for _ in range(count - 1):
        numbers: dict[str, Any] = {
            field.name: rng.getrandbits(field.bits) for field in LAYOUT if field.name != "version"
        }
        header = replace(Header(), **numbers)
        headers.append(
            replace(
                header,
                kind=rng.choice(list(Kind)),
                flags=Flag(header.flags),
                value_type=rng.choice(list(ValueType)),
                value_count=rng.choice([0, 1, 5, 256]),
            )
        )
    samples = []
    for header in headers:
        values = [rng.randrange(-(2**31), 2**31) for _ in range(header.value_count)]
        samples.append((header, values, encode(header, values)))
    return samples
