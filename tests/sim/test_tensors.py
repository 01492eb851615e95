"""What of a wrong sum the virtual network takes for a broken promise."""

from __future__ import annotations

import numpy as np
import pytest

from ina.sim.tensors import passes_narrow_check

TOP = 1 << 31


@pytest.mark.parametrize(
    ("flips", "passes"),
    [
        ({3: TOP, 60: TOP}, True),  # of one chunk
        ({3: TOP, 64: TOP}, False),  # of two: each check sees its own
        ({3: TOP}, False),
        ({3: TOP, 4: TOP, 5: TOP}, False),
        ({3: TOP, 4: TOP, 70: TOP, 71: TOP}, True),
        ({3: TOP, 4: 1}, False),
        ({3: 1 << 30, 4: 1 << 30}, False),
    ],
)
def test_two_flips_of_bit_31_pass_the_check_of_int32(flips: dict[int, int], passes: bool) -> None:
    right = np.arange(200, dtype=np.int32)
    found = right.copy()
    for place, bits in flips.items():
        found.view(np.uint32)[place] ^= np.uint32(bits)
    assert passes_narrow_check(found, right, 64) is passes


def test_sums_of_floats_have_a_wide_check() -> None:
    right = np.ones(64, dtype=np.float32)
    found = right.copy()
    found.view(np.uint32)[:2] ^= np.uint32(TOP)
    assert not passes_narrow_check(found, right, 64)
