"""What ranks give to all-reduces in the virtual network."""

from __future__ import annotations

import numpy as np

from ina.sim.scenario import TensorSpec
from ina.sim.tensors import Place
from ina.testing import sparse


def test_sums_of_int32_may_wrap_in_some_and_do_not_in_most() -> None:
    spec = TensorSpec(elems=500, dtype="int32")
    places = [Place(7, "job", step, 0) for step in range(100)]
    parts = [np.stack([place.values(spec, rank) for rank in range(4)]) for place in places]
    wrap = [bool((np.abs(part.sum(axis=0, dtype=np.int64)) >= 2**31).any()) for part in parts]
    assert 10 < sum(wrap) < 40


def test_tensors_of_a_density_have_blocks_of_zeros_of_either_sign() -> None:
    spec = TensorSpec(elems=5_000, density=0.1, block_elems=50)
    unions, signed = [], 0
    for step in range(20):
        place = Place(7, "job", step, 0)
        parts = [place.values(spec, rank) for rank in range(4)]
        unions.append(int(sparse.union(parts, 50).sum()))
        signed += sum(int(np.signbit(part[part == 0]).sum()) for part in parts)
        right = place.right(spec, 4, 64)
        assert not np.signbit(right[right == 0]).any()
    assert min(unions) < 20  # the same on all ranks
    assert max(unions) > 25
    assert signed > 0


def test_runs_of_zeros_are_of_either_sign_and_each_rank_has_its_own() -> None:
    spec = TensorSpec(elems=25_000, zeros=0.8)
    parts = [Place(7, "job", 0, 0).values(spec, rank) for rank in range(2)]
    runs = [(part[: 97 * 256].reshape(97, 256) == 0).all(axis=1) for part in parts]
    assert all(60 < run.sum() < 95 for run in runs)
    assert (runs[0] != runs[1]).any()
    for part, run in zip(parts, runs, strict=True):
        signs = np.signbit(part[: 97 * 256].reshape(97, 256)[run])
        assert 20 < signs.all(axis=1).sum() < 60
        assert (signs.all(axis=1) == signs.any(axis=1)).all()
