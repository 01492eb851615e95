"""Inputs that are several messages: one byte says of which kind, two how long, then its bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Record = tuple[int, bytes]
MAX_RECORDS = 16
_MAX_BYTES = 0xFFFF


def read_records(data: bytes) -> list[Record]:
    """At most :data:`MAX_RECORDS`; the last may be shorter than it says."""
    records: list[Record] = []
    at = 0
    while at + 3 <= len(data) and len(records) < MAX_RECORDS:
        kind, size = struct.unpack_from("<BH", data, at)
        records.append((kind, data[at + 3 : at + 3 + size]))
        at += 3 + size
    return records


def write_records(records: Sequence[Record]) -> bytes:
    """What :func:`read_records` reads. A message that is too long for a record is cut."""
    return b"".join(
        struct.pack("<BH", kind, len(data[:_MAX_BYTES])) + data[:_MAX_BYTES]
        for kind, data in records
    )
