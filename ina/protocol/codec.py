"""Packets to bytes and back: one UDP payload is the header and ``value_count`` int32 values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ina.protocol.errors import (
    FieldRangeError,
    OverlongPacketError,
    TruncatedPacketError,
    UnknownKindError,
    UnknownVersionError,
    ValueCountError,
)
from ina.protocol.generated.header_fields import HeaderFields
from ina.protocol.layout import LAYOUT
from ina.protocol.spec import (
    ALL_WORKERS,
    HEADER_BYTES,
    VALUE_BYTES,
    VERSION,
    Flag,
    Kind,
)

Values = npt.NDArray[np.int32]

WIRE_INT32 = np.dtype(">i4")
"""The values on the wire: int32, big endian."""

_COUNT = next(field for field in LAYOUT if field.name == "value_count")


@dataclass(frozen=True)
class Header(HeaderFields):
    """The 32 bytes behind UDP, field by field; spec.FIELDS says what each means.

    ``value_type`` may hold a number outside :class:`ValueType` when it was decoded: a switch only
    echoes it, and its meaning is the workers' affair.
    """

    @property
    def is_to_all(self) -> bool:
        """Whether it is a result for whoever of the job receives it."""
        return self.kind is Kind.RESULT and self.worker == ALL_WORKERS


def encode_header(header: Header) -> bytes:
    """Returns the 32 header bytes. Raises FieldRangeError when a number does not fit its field."""
    whole = 0
    for field in LAYOUT:
        value = getattr(header, field.name)
        if not 0 <= value <= field.mask:
            raise FieldRangeError(f"{field.name} {value} does not fit {field.bits} bits")
        whole |= value << field.header_shift
    return whole.to_bytes(HEADER_BYTES, "big")


def decode_header(payload: bytes | memoryview) -> Header:
    """Returns the header at the start of a UDP payload, whatever follows it.

    Raises TruncatedPacketError (fewer than 32 bytes), UnknownVersionError, UnknownKindError.
    """
    _check_header_is_there(payload)
    whole = int.from_bytes(payload[:HEADER_BYTES], "big")
    numbers = {field.name: whole >> field.header_shift & field.mask for field in LAYOUT}
    version, kind, flags = numbers.pop("version"), numbers.pop("kind"), numbers.pop("flags")
    if version != VERSION:
        raise UnknownVersionError(f"wire format version {version}, this build speaks {VERSION}")
    if kind not in Kind.__members__.values():
        raise UnknownKindError(f"packet kind {kind} is unknown")
    return Header(version, Kind(kind), Flag(flags), **numbers)


def announced_bytes(payload: bytes | memoryview) -> int:
    """Returns the UDP payload bytes that a header's value_count announces, whatever else it says.

    Raises TruncatedPacketError (fewer than 32 bytes).
    """
    _check_header_is_there(payload)
    count = int.from_bytes(payload[:HEADER_BYTES], "big") >> _COUNT.header_shift & _COUNT.mask
    return HEADER_BYTES + VALUE_BYTES * count


def encode(header: Header, values: npt.ArrayLike | None = None) -> bytes:
    """Returns one UDP payload.

    ``values`` is one-dimensional, of an integer dtype that fits int32, ``value_count`` long; None
    stands for none. Raises ValueCountError when the length differs from the header's count, and
    FieldRangeError when a header number or a value does not fit.
    """
    array = np.asarray([] if values is None else values)
    if array.size and array.dtype.kind not in "iu":
        raise FieldRangeError(f"values are {array.dtype}, the wire carries int32")
    if array.shape != (header.value_count,):
        raise ValueCountError(
            f"values of shape {array.shape} in a packet with value_count {header.value_count}"
        )
    wire = array.astype(WIRE_INT32)
    if not np.array_equal(wire, array):
        raise FieldRangeError("a value does not fit int32")
    return encode_header(header) + wire.tobytes()


def decode(
    payload: bytes | memoryview, *, value_counts: Collection[int] | None = None
) -> tuple[Header, Values]:
    """Returns the header and a read-only big-endian int32 view of the values, shape (value_count,).

    ``value_counts`` lists what this build accepts; None accepts any count. Raises what
    decode_header raises, ValueCountError, TruncatedPacketError and OverlongPacketError.
    """
    header = decode_header(payload)
    if value_counts is not None and header.value_count not in value_counts:
        raise ValueCountError(
            f"value_count {header.value_count}, this build accepts {sorted(value_counts)}"
        )
    expected_bytes = announced_bytes(payload)
    if len(payload) != expected_bytes:
        error = TruncatedPacketError if len(payload) < expected_bytes else OverlongPacketError
        raise error(
            f"packet of {len(payload)} bytes, {header.value_count} values make {expected_bytes}"
        )
    values = np.frombuffer(payload, WIRE_INT32, count=header.value_count, offset=HEADER_BYTES)
    values.flags.writeable = False
    return header, values


def _check_header_is_there(payload: bytes | memoryview) -> None:
    if len(payload) < HEADER_BYTES:
        raise TruncatedPacketError(
            f"packet of {len(payload)} bytes is shorter than the {HEADER_BYTES}-byte header"
        )
