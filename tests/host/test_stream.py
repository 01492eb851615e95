"""Jobs of mode `stream`: the core that ships, over reference switches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina._native.host import VerifyMode, WorkerConfig, WorkerCore
from ina.host.arrays import VALUE_TYPES
from ina.protocol.coding import Coding
from ina.protocol.collective import REDUCTIONS, Collective
from tests.selection import examples
from tests.worlds.virtual.cores import Array, worker_config
from tests.worlds.virtual.grove import Fate, StreamGrove, rough, unharmed
from tests.worlds.virtual.trees import Node, deal, grown

VALUES = 8
BLOCK = VALUES - 1


def a_switch(workers: int) -> Node:
    return Node("switch", tuple(range(workers)))


def sparse(rng: np.random.Generator, length: int, density: float, dtype: Any) -> Array:
    """Blocks that are zero but for a share of them; some of the others hold few values."""
    values = rng.integers(-1000, 1000, length).astype(dtype)
    if dtype is not np.int32:
        values = (values * 2.0 ** rng.integers(-12, 3)).astype(dtype)
    blocks = np.arange(length) // BLOCK
    kept = rng.random(blocks[-1] + 1 if length else 0) < density
    thinned = rng.random(length) < 0.2
    values[~kept[blocks] | thinned] = 0
    return values


def rounds_of(parts: Sequence[Array], lanes: int) -> int:
    """How many blocks are sent: the first of each lane, and those that somebody has."""
    length = parts[0].size
    count = -(-length // BLOCK)
    held = {at // BLOCK for part in parts for at in np.flatnonzero(part)}
    return len(held | set(range(min(lanes, count))))


def check(grove: StreamGrove, parts: Sequence[Array], op: str = "sum") -> None:
    """Exact sums of integers; of floats as good as blocks of one exponent a lane allow."""
    inputs = [part.copy() for part in parts]
    outs = grove.all_reduce(parts, op)
    for out in outs[1:]:
        np.testing.assert_array_equal(out, outs[0])
    divisor = len(parts) if op == "avg" else 1
    if parts[0].dtype == np.int32:
        exact = np.sum(inputs, axis=0, dtype=np.int32)
        np.testing.assert_array_equal(
            outs[0] * np.int32(divisor) if op == "avg" else outs[0], exact
        )
        return
    exact = np.sum([part.astype(np.float64) for part in inputs], axis=0) / divisor
    largest = max((float(np.abs(part).max(initial=0.0)) for part in inputs), default=0.0)
    step = largest * 2.0**-24 * len(parts) + largest * np.finfo(parts[0].dtype).eps * len(parts)
    assert np.abs(outs[0].astype(np.float64) - exact).max(initial=0.0) <= step
    assert not np.signbit(outs[0][outs[0] == 0]).any()


@settings(max_examples=examples(120), deadline=None)
@given(st.data())
def test_sums_of_any_tensors_over_any_trees(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32 - 1))
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    workers = draw.randint(1, 5)
    lanes = draw.choice([1, 2, 4])
    count = draw.randint(1, min(lanes, 2))
    trees = [grown(draw, range(workers), draw.randint(1, 3), f"s{i}_") for i in range(count)]
    fate: Fate = rough(seed, 0.1, 0.1, 200_000) if draw.random() < 0.7 else unharmed
    grove = StreamGrove(trees, deal(count, lanes, draw), workers, VALUES, fate=fate)
    for _ in range(draw.randint(1, 3)):
        dtype = draw.choice([np.int32, np.float32, np.float16])
        length = draw.choice([1, BLOCK, 5 * BLOCK, 23 * BLOCK + 3])
        density = draw.choice([0.0, 0.1, 0.5, 1.0])
        check(grove, [sparse(rng, length, density, dtype) for _ in range(workers)])


@pytest.mark.parametrize("density", [0.0, 0.05, 0.3, 1.0])
def test_what_is_zero_on_all_ranks_is_not_sent(density: float) -> None:
    rng = np.random.default_rng(3)
    parts = [sparse(rng, 200 * BLOCK, density, np.int32) for _ in range(3)]
    grove = StreamGrove([a_switch(3)], [4], 3, VALUES)
    check(grove, parts)
    for (core,), part in zip(grove.cores, parts, strict=True):
        counters = core.counters
        rounds = rounds_of(parts, 4)
        assert counters.packets_sent == counters.chunks_done == rounds
        own = len({int(at) // BLOCK for at in np.flatnonzero(part)})
        header, word = 32, 4
        assert counters.payload_bytes_sent == rounds * (header + word) + own * BLOCK * word


def test_averages_and_results_in_the_place_of_what_they_are_of() -> None:
    rng = np.random.default_rng(5)
    grove = StreamGrove([a_switch(2)], [2], 2, VALUES)
    parts = [2 * sparse(rng, 90, 0.3, np.int32) for _ in range(2)]
    check(grove, [part * 2 for part in parts], "avg")
    exact = parts[0] + parts[1]
    for rank, part in enumerate(parts):
        grove.submit(rank, 2, part, part)
    grove.run(2)
    for part in parts:
        np.testing.assert_array_equal(part, exact)


def test_what_is_not_finite_is_never_zero() -> None:
    parts = [np.zeros(40 * BLOCK, np.float32) for _ in range(2)]
    parts[0][13 * BLOCK + 2], parts[1][30 * BLOCK] = np.inf, 2.5
    parts[1][1] = -0.0
    outs = StreamGrove([a_switch(2)], [2], 2, VALUES).all_reduce(parts)
    expected = np.zeros(40 * BLOCK, np.float32)
    expected[13 * BLOCK : 14 * BLOCK] = np.nan
    expected[30 * BLOCK] = 2.5
    for out in outs:
        np.testing.assert_array_equal(out, expected)
        assert not np.signbit(out[:BLOCK]).any()


def test_results_that_name_no_block_that_may_follow_are_not_taken() -> None:
    """A lane goes forward, to a block of its own, and to none behind what this worker has."""
    part = np.zeros(8 * BLOCK, np.int32)
    part[4 * BLOCK] = 7
    for named, is_taken in ((4, True), (2, True), (0, False), (3, False), (6, False), (8, False)):
        core = WorkerCore(stream_config(0, 1))
        out = np.full_like(part, 3)
        what = Collective(VALUE_TYPES[part.dtype], part.size, REDUCTIONS["sum"])
        core.submit(1, part.ctypes.data, out.ctypes.data, what, 0)
        packet = bytearray(core.poll_transmit(0)[0])
        packet[0] = packet[0] & 0xF0 | 2  # a result
        packet[11] = VALUES
        core.on_result(bytes(packet[:32]) + bytes(4 * BLOCK) + named.to_bytes(4, "big"), 1)
        assert core.counters.chunks_done == is_taken, named
        assert core.counters.mismatched == (not is_taken), named


def stream_config(rank: int, world_size: int, **more: Any) -> WorkerConfig:
    config = worker_config(rank, world_size, 4, VALUES)
    config.is_stream = True
    for name, value in more.items():
        setattr(config, name, value)
    return config


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"verify": VerifyMode.ACCIDENTS}, "verify of a stream"),
        ({"keep_results": True}, "keep_results of a stream"),
        ({"values_per_packet": 1}, "values_per_packet of a stream"),
    ],
)
def test_what_a_stream_cannot_have_is_refused(more: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        WorkerCore(stream_config(0, 1, **more))


def test_packed_words_are_refused() -> None:
    part = np.zeros(8, np.float32)
    what = Coding(16).of(Collective(VALUE_TYPES[part.dtype], part.size, REDUCTIONS["sum"]))
    with pytest.raises(ValueError, match="not packed"):
        WorkerCore(stream_config(0, 1)).submit(1, part.ctypes.data, part.ctypes.data, what, 0)
