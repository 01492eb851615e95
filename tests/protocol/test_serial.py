"""Serial-number arithmetic against its definition on signed differences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ina.protocol import serial

numbers = st.integers(0, 2**32 - 1)


@given(numbers, st.integers(1, 2**31 - 1))
def test_what_is_ahead_is_newer_across_the_wrap(start: int, distance: int) -> None:
    ahead = serial.add(start, distance)
    assert serial.is_newer(ahead, start)
    assert not serial.is_newer(start, ahead)
    assert serial.add(ahead, -distance) == start


@given(numbers)
def test_equal_and_opposite_are_not_newer(number: int) -> None:
    assert not serial.is_newer(number, number)
    assert not serial.is_newer(serial.add(number, 2**31), number)


def test_the_wrap() -> None:
    assert serial.is_newer(0, 2**32 - 1)
    assert serial.add(2**32 - 1, 2) == 1
