"""What ranks give to all-reduces in the virtual network."""

from __future__ import annotations

import numpy as np

from ina.sim.scenario import TensorSpec
from ina.sim.tensors import Place


def test_sums_of_int32_may_wrap_in_some_and_do_not_in_most() -> None:
    spec = TensorSpec(elems=500, dtype="int32")
    places = [Place(7, "job", step, 0) for step in range(100)]
    parts = [np.stack([place.values(spec, rank) for rank in range(4)]) for place in places]
    wrap = [bool((np.abs(part.sum(axis=0, dtype=np.int64)) >= 2**31).any()) for part in parts]
    assert 10 < sum(wrap) < 40
