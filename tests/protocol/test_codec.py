"""The Python codec: round trips, refusals, and the order of bytes that the wire fixes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.errors import InvalidInputError
from ina.protocol import errors
from ina.protocol.codec import Header, Values, decode, decode_header, encode, encode_header
from ina.protocol.layout import LAYOUT, FieldLayout
from ina.protocol.spec import HEADER_BYTES, VERSION, Flag, Kind, ValueType
from tests.protocol.strategies import headers, packets

Packet = tuple[Header, list[int]]


def test_wire_bytes_are_as_documented() -> None:
    header = Header(
        kind=Kind.RESULT,
        flags=Flag.RESEND | Flag.NON_FINITE,
        job=0x0203,
        epoch=0x0405,
        worker=6,
        level=7,
        shape=8,
        slot=0x090A,
        value_type=ValueType.BFLOAT16,
        value_count=2,
        seq=0x0B0C0D0E,
        contributors=0x0F101112,
        exponent=0x13,
        next_exponent=0x14,
        digest=0x1516,
        check=0x1718191A,
        path=0x1B1C1D,
        copy=0x1E,
    )
    assert encode(header, [1, -2]).hex(" ") == (
        "52 11 02 03 04 05 06 78 09 0a 30 02 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a"
        " 1b 1c 1d 1e 00 00 00 01 ff ff ff fe"
    )


@given(packets())
def test_round_trip(packet: Packet) -> None:
    header, values = packet
    decoded, view = decode(encode(header, values))
    assert decoded == header
    assert view.tolist() == values
    assert view.dtype == np.dtype(">i4")
    assert not view.flags.writeable


@given(packets())
def test_values_are_a_view_of_the_packet(packet: Packet) -> None:
    header, values = packet
    buffer = bytearray(encode(header, values))
    view: Values = decode(memoryview(buffer))[1]
    buffer[HEADER_BYTES:] = bytes(len(buffer) - HEADER_BYTES)
    assert not view.any()


@given(packets(), st.data())
def test_every_shorter_packet_is_truncated(packet: Packet, data: st.DataObject) -> None:
    whole = encode(*packet)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(errors.TruncatedPacketError, match=f"packet of {cut} bytes"):
        decode(whole[:cut])


@given(packets(), st.binary(min_size=1, max_size=9))
def test_every_longer_packet_is_overlong(packet: Packet, tail: bytes) -> None:
    with pytest.raises(errors.OverlongPacketError):
        decode(encode(*packet) + tail)


@given(headers(st.just(0)), st.integers(0, 15).filter(lambda version: version != VERSION))
def test_unknown_version(header: Header, version: int) -> None:
    with pytest.raises(errors.UnknownVersionError, match=f"version {version}"):
        decode(encode_header(replace(header, version=version)))


@pytest.mark.parametrize("kind", [0, *range(6, 16)])
def test_unknown_kind(kind: int) -> None:
    payload = bytes([VERSION << 4 | kind]) + encode_header(Header())[1:]
    with pytest.raises(errors.UnknownKindError, match=f"kind {kind}"):
        decode(payload)


def test_value_count_of_another_build() -> None:
    payload = encode(Header(value_count=2), [1, 2])
    assert decode(payload, value_counts=(0, 2))[0].value_count == 2
    with pytest.raises(errors.ValueCountError, match=r"value_count 2.*\[0, 64\]"):
        decode(payload, value_counts=(0, 64))


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(payload: bytes) -> None:
    try:
        header, values = decode(payload)
    except errors.PacketError:
        return
    assert encode(header, values) == payload
    assert decode_header(payload) == header


def test_a_refusal_is_one_line_of_bad_input() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        decode(b"\x11" * 23)
    assert str(refusal.value) == "packet of 23 bytes is shorter than the 32-byte header"


@pytest.mark.parametrize("field", LAYOUT, ids=lambda field: field.name)
@pytest.mark.parametrize("beyond", [-1, 1])
def test_a_number_that_does_not_fit_its_field(field: FieldLayout, beyond: int) -> None:
    value = -1 if beyond < 0 else field.mask + 1
    fields: dict[str, Any] = {field.name: value}
    with pytest.raises(errors.FieldRangeError, match=f"^{field.name} "):
        encode_header(replace(Header(), **fields))


@pytest.mark.parametrize("values", [[2**31], [-(2**31) - 1], [0.5], np.array([2**40])])
def test_values_that_are_not_int32(values: Any) -> None:
    with pytest.raises(errors.FieldRangeError):
        encode(Header(value_count=1), values)


@pytest.mark.parametrize("values", [None, [1], [[1, 2]], [1, 2, 3]])
def test_values_that_are_not_as_many_as_announced(values: list[int] | None) -> None:
    with pytest.raises(errors.ValueCountError):
        encode(Header(value_count=2), values)
