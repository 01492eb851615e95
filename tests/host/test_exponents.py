"""How workers come to agree on exponents: rounds of their own, announcements, guesses."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ina._native.host import WorkerCore, WorkerCounters
from ina._native.sim import Trace
from ina.protocol.codec import decode, decode_header, encode
from ina.protocol.coding import CODINGS, WHOLE, Coding
from ina.protocol.collective import Collective
from ina.protocol.spec import Flag, Kind, ValueType
from ina.testing import numerics
from ina.testing.frames import PAYLOAD_OFFSET
from tests.selection import examples
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.cores import worker_config
from tests.worlds.virtual.star import Star, even, late, scattered

VALUES = 64
DELAY_NS = 50_000
ROUND_TRIP_NS = 2 * DELAY_NS
F32 = np.dtype(np.float32)
Parts = list[NDArray[Any]]


def quiet_star(workers: int = 2, slots: int = 16) -> Star:
    return Star(workers, slots=slots, way=even(DELAY_NS))


def constant(value: float, chunks: int, workers: int = 2) -> Parts:
    return [np.full(chunks * VALUES, value, np.float32) for _ in range(workers)]


def spent(star: Star, parts: Parts) -> tuple[int, WorkerCounters]:
    """Reduces, checks the sum; returns how long it took, and rank 0's counts so far."""
    begin_ns = star.now_ns
    for result in star.all_reduce(parts):
        assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", VALUES))
    return star.now_ns - begin_ns, star.workers[0].counters


def teach(star: Star, parts: Parts, turns: int) -> None:
    for _ in range(turns):
        spent(star, parts)


def test_a_small_tensor_takes_one_round_trip_when_its_like_has_been_there() -> None:
    star = quiet_star()  # W = 8: two turns of 4 chunks
    parts = constant(1.5, 4)
    assert [spent(star, parts)[0] for _ in range(2)] == [2 * ROUND_TRIP_NS] * 2
    before = star.workers[0].counters
    for value in (1.5, -1.1, 1.9):
        assert spent(star, constant(value, 4))[0] == ROUND_TRIP_NS
    after = star.workers[0].counters
    assert after.exponent_rounds == before.exponent_rounds == 8
    assert after.guessed_chunks == 12
    assert after.packets_sent == before.packets_sent + 12


@pytest.mark.parametrize("value", [2.0**20, 2.0**-20, 3e38, 1e-45])
def test_a_wrong_guess_costs_one_more_round_trip(value: float) -> None:
    star = quiet_star()
    teach(star, constant(1.0, 4), 2)
    took_ns, counters = spent(star, constant(value, 4))
    assert took_ns == 2 * ROUND_TRIP_NS
    assert (counters.guessed_chunks, counters.missed_guesses) == (0, 4)
    assert counters.packets_sent == 2 * 8 + 8


@pytest.mark.parametrize("taught", [WHOLE, CODINGS["16"], CODINGS["8"]])
def test_what_one_size_and_type_taught_no_other_guesses(taught: Coding) -> None:
    """Whatever the numbers by which the wire calls types. Tensors that took each other's history
    would read and write past its end: it has as many blocks as the first has chunks."""
    star = quiet_star()
    number = 0

    def guessed(dtype: type, elems: int, coding: Coding) -> int:
        nonlocal number
        number += 1
        before = star.workers[0].counters.guessed_chunks
        part: NDArray[Any] = np.full(elems, 1.5, dtype)
        outs = [np.zeros_like(part) for _ in range(2)]
        for rank, out in enumerate(outs):
            star.submit(rank, number, part, out, coding=coding)
        star.run(number)
        assert all((out == 3.0).all() for out in outs)
        return star.workers[0].counters.guessed_chunks - before

    elems = 4 * VALUES - 1
    for _ in range(16):  # 2 W, so each lane has been there before
        last = guessed(np.float16, elems, taught)
    assert last > 0
    for size in range(elems - 4, elems + 5):
        for dtype in (np.float32, np.float16):
            for coding in (WHOLE, CODINGS["16"], CODINGS["8"]):
                if (size, dtype, coding) != (elems, np.float16, taught):
                    assert guessed(dtype, size, coding) == 0, (size, dtype, coding)


def test_one_worker_is_enough_to_miss() -> None:
    """It says so, and no other worker takes the sum."""
    star = quiet_star(3)
    teach(star, constant(1.0, 1, 3), 8)
    parts = constant(1.0, 1, 3)
    parts[1][3] = 2.0**30
    trace = Trace(16)
    star.network.set_trace(trace)
    for rank, part in enumerate(parts):
        star.submit(rank, 9, part, part)
    sent = [decode_header(record.head[PAYLOAD_OFFSET:]) for record in trace.records()]
    assert [header.worker for header in sent] == [0, 1, 2]
    assert [header.flags for header in sent] == [Flag(0), Flag.OVERFLOW, Flag(0)]


@pytest.mark.parametrize(
    ("first", "second"), [(0.0, 0.0), (1.0, 0.0), (np.nan, 1.0), (np.inf, -np.inf), (0.0, np.nan)]
)
def test_a_block_without_a_scale_holds_whatever_was_guessed(first: float, second: float) -> None:
    star = quiet_star()
    teach(star, constant(1.0, 1), 8)
    parts = constant(first, 1)
    parts[1][0] = second
    expected = 2 * ROUND_TRIP_NS if (first, second) == (0.0, 1.0) else ROUND_TRIP_NS
    assert spent(star, parts)[0] == expected


def test_exponents_that_change_every_time_are_not_guessed_for_long() -> None:
    star = quiet_star(slots=2)
    for turn in range(40):
        spent(star, constant(2.0 ** (20 * (turn % 2)), 1))
    assert star.workers[0].counters.missed_guesses == 1


def test_a_tensor_that_is_queued_needs_no_round_of_its_own() -> None:
    """Large tensors, which take no guesses: the lane's last packet carries the next exponent."""
    star = quiet_star()
    tensors = [random_parts(dtype, 2, 24 * VALUES * 100, 1) for dtype in (F32, INT32, *[F32] * 3)]
    outs = [[np.empty_like(part) for part in parts] for parts in tensors]
    for number, parts in enumerate(tensors):
        for rank, part in enumerate(parts):
            star.submit(rank, number + 1, part, outs[number][rank])
    star.run(len(tensors))
    for parts, out in zip(tensors, outs, strict=True):
        assert numerics.same_bits(out[1], numerics.all_reduce(parts, "sum", VALUES))
    assert star.workers[0].counters.exponent_rounds == 8


def test_a_tensor_that_one_worker_submits_late_has_a_round_of_its_own() -> None:
    star = quiet_star()
    parts = random_parts(F32, 2, 320_000, 3)
    outs = [np.empty_like(part) for part in parts for _ in range(2)]
    for number in range(2):
        star.submit(0, number + 1, parts[0], outs[number])
    star.submit(1, 1, parts[1], outs[2])
    while not star.done[1]:
        star.step()
    star.submit(1, 2, parts[1], outs[3])
    star.run(2)
    assert all(numerics.same_bits(out, numerics.all_reduce(parts, "sum", VALUES)) for out in outs)
    assert {core.counters.exponent_rounds for core in star.workers} == {16}


def test_results_do_not_depend_on_what_came_before() -> None:
    """Else a job that goes on from a checkpoint would end with other bits."""
    parts = random_parts(F32, 2, 4 * VALUES, 5)
    results = []
    for past in ([], [1.0], [2.0**9] * 4, [2.0**30, 1e-30] * 5):
        star = quiet_star()
        for value in past:
            spent(star, constant(value, 4))
        results.append(star.all_reduce(parts)[0])
    assert all(numerics.same_bits(result, results[0]) for result in results)


@settings(max_examples=examples(600), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 4),
    slots=st.sampled_from([2, 4, 16]),
    lengths=st.lists(st.sampled_from([24, 24, 72, 240, 720]), min_size=8, max_size=24),
    loss=st.sampled_from([0.0, 0.0, 0.1, 0.3]),
    spread_ns=st.sampled_from([0, 0, 2_000_000]),
    ahead=st.sampled_from([1, 1, 2, 24]),  # that a rank has under way at a time
)
def test_any_history_under_any_schedule(
    seed: int,
    workers: int,
    slots: int,
    lengths: list[int],
    loss: float,
    spread_ns: int,
    ahead: int,
) -> None:
    """Sizes that come again, exponents that stay, jump, vanish; ranks at different paces."""
    rng = random.Random(seed)
    way = scattered(loss, loss / 2, 20_000, 20_000 + spread_ns)
    back = late(loss / 4, loss, loss / 2) if loss else None
    star = Star(workers, slots=slots, way=way, back=back, seed=seed)
    dtypes = (INT32, *numerics.FLOATS)
    tensors = []
    for number, length in enumerate(lengths):
        dtype = dtypes[rng.choice([0, 1, 1, 1, 1, 1, 1, 2, 3])]
        parts = random_parts(dtype, workers, length, seed + number)
        tensors.append([_tampered(part, rng) for part in parts])
    expected = [numerics.all_reduce(parts, "sum", VALUES) for parts in tensors]
    submitted = [0] * workers
    while any(len(done) < len(lengths) for done in star.done):
        for rank in range(workers):
            open_now = submitted[rank] - len(star.done[rank])
            if submitted[rank] < len(lengths) and open_now < ahead and rng.random() < 0.7:
                part = tensors[submitted[rank]][rank]
                star.submit(rank, submitted[rank] + 1, part, part)  # in place
                submitted[rank] += 1
        star.step()
        assert star.now_ns < 600_000_000_000, "no end in sight"
    for parts, want in zip(tensors, expected, strict=True):
        assert all(numerics.same_bits(part, want) for part in parts)
    counts = [core.counters for core in star.workers]
    # All have used the same sequence numbers for the same rounds.
    lanes = [worker.lanes().seqs for worker in star.workers]
    assert all(lane == lanes[0] for lane in lanes)
    assert len({(c.exponent_rounds, c.guessed_chunks, c.missed_guesses) for c in counts}) == 1
    event(f"guessed right: {counts[0].guessed_chunks > 0}")
    event(f"guessed wrong: {counts[0].missed_guesses > 0}")


def _tampered(part: NDArray[Any], rng: random.Random) -> NDArray[Any]:
    if part.dtype == INT32:
        return part
    what = rng.choice([""] * 16 + ["jump", "zero", "one value", "largest"])
    if what == "jump":
        part = (part.astype(np.float64) * 2.0 ** rng.randint(-14, 5)).astype(part.dtype)
    elif what == "zero":
        part = np.zeros_like(part)
    elif what == "one value":
        part[rng.randrange(part.size)] = rng.choice([np.nan, np.inf, -np.inf, 0.0])
    elif what == "largest":
        bits = {"float32": 0x7F7FFFFF, "float16": 0x7BFF, "bfloat16": 0x7F7F}[part.dtype.name]
        raw = part.view(np.uint32 if part.itemsize == 4 else np.uint16)
        raw[rng.randrange(part.size)] = bits
    return part


def test_an_exponent_below_the_own_one_is_no_agreement() -> None:
    """All agree on the largest. By a smaller one, own values would not fit int32."""
    core = WorkerCore(worker_config(0, 1, 16, VALUES))
    part, out = np.full(VALUES, 3, np.float32), np.empty(VALUES, np.float32)
    core.submit(1, part.ctypes.data, out.ctypes.data, Collective(ValueType.FLOAT32, VALUES), 0)
    (packet,) = core.poll_transmit(0)
    asked, _ = decode(packet)
    assert asked.next_exponent > 1
    answer = replace(asked, kind=Kind.RESULT)
    for exponent in (asked.next_exponent - 1, 0):
        core.on_result(encode(replace(answer, next_exponent=exponent), None), 0)
    assert core.counters.mismatched == 2
    core.on_result(encode(answer, None), 0)
    assert core.counters.exponent_rounds == 1
    (packet,) = core.poll_transmit(0)
    asked, values = decode(packet)
    core.on_result(encode(replace(asked, kind=Kind.RESULT), values), 0)
    assert core.take_completions() == [1]
    assert numerics.same_bits(out, numerics.all_reduce([part], "sum", VALUES))
