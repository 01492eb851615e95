"""Sizes and times for people."""

from __future__ import annotations

import pytest

from ina.units import size_text, time_text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"), (1, "1 B"), (999, "999 B"), (1000, "0.98 KiB"), (1024, "1 KiB"),
        (4228, "4.13 KiB"), (64 << 10, "64 KiB"), (1023 << 10, "1 MiB"), (25 << 20, "25 MiB"),
        (3 << 29, "1.5 GiB"), (5 << 50, "5120 TiB"),
    ],
)  # fmt: skip
def test_sizes(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        (0, "0 s"), (4e-9, "4 ns"), (999e-9, "999 ns"), (9.996e-7, "1 µs"), (150.322e-6, "150 µs"),
        (0.00999999, "10 ms"), (0.9996, "1 s"), (1.234, "1.23 s"), (7.5, "7.5 s"), (30, "30 s"),
        (59.94, "59.9 s"), (59.96, "1 min 00 s"), (125, "2 min 05 s"), (3599.6, "1 h 00 min"),
        (11_220, "3 h 07 min"), (-0.5, "-500 ms"), (float("inf"), "inf s"),
    ],
)  # fmt: skip
def test_times(time_s: float, text: str) -> None:
    assert time_text(time_s) == text
