"""The C++ check against its specification, and the numbers that verification must not touch."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ina._native import check as native
from ina._native.check import SumCheck
from ina._native.host import VerifyMode
from ina.protocol import check_model
from ina.protocol.check_model import Bounds, CheckModel, CheckRound, Claim

JOBS = 2000 if os.environ.get("INA_LONG_TESTS") else 200
KEY = bytes(range(16))
NONE: Bounds = (0, 0)
_NATIVE = [
    native.Claim.NONE, native.Claim.SCALE, native.Claim.TOO_LARGE, native.Claim.NON_FINITE,
]  # fmt: skip


def wire(values: NDArray[Any]) -> bytes:
    return values.astype(">i4").tobytes()


def contribute(
    check: SumCheck, of: CheckRound, values: bytes, claim: Claim = Claim.NONE
) -> tuple[int, int]:
    return check.contribute(
        of.number, of.digest, of.value_type, of.exponent, _NATIVE[claim], values
    )


def verify(
    check: SumCheck,
    of: CheckRound,
    expected: int,
    values: bytes,
    sent: int,
    bounds: tuple[Bounds, Bounds, Bounds] = (NONE, NONE, NONE),
) -> bool:
    return check.verify(
        of.number, of.digest, of.value_type, of.exponent, expected, values, sent, *bounds
    )


def some_round(rng: random.Random, value_type: int, values: int) -> CheckRound:
    return CheckRound(
        rng.getrandbits(56), rng.getrandbits(64), value_type, rng.getrandbits(8), values
    )


def test_siphash_is_the_models() -> None:
    rng = random.Random(1)
    for _ in range(200):
        key, words = rng.randbytes(16), [rng.getrandbits(64) for _ in range(3)]
        assert native.siphash(key, *words) == check_model.siphash(key, words)


@pytest.mark.parametrize("kernels", native.weigh_kernel_names())
def test_every_instruction_set_weighs_alike(kernels: str) -> None:
    rng = np.random.default_rng(2)
    for count in (1, 2, 3, 7, 8, 15, 16, 31, 33, 64, 256, 360, 1024):
        values = rng.integers(-(2**31), 2**31, count)
        values[:2] = (-(2**31), 2**31 - 1)[:count]
        low, high = (rng.integers(0, 2**32, count, dtype=np.uint32) for _ in range(2))
        low[0] = high[0] = 2**32 - 1
        weights = [int(a) + (int(b) << 32) for a, b in zip(low, high, strict=True)]
        wide = sum(a * (int(v) + 2**31) for a, v in zip(weights, values, strict=True)) % 2**64
        found = native.weigh(kernels, wire(values), low.tolist(), high.tolist())
        assert found == wide


@pytest.mark.parametrize("kernels", native.weigh_kernel_names())
def test_every_instruction_set_finds_the_bits_that_integers_use(kernels: str) -> None:
    rng = np.random.default_rng(3)
    for count in (0, 1, 7, 8, 17, 64, 255, 360):
        values = rng.integers(-1000, 1000, count).astype(np.int32)
        for place, large in ((0, 2**31 - 1), (count // 2, -(2**30)), (count - 1, -(2**31))):
            values[place : place + 1] = large
            used = int(np.bitwise_or.reduce(values ^ (values >> 31), initial=0))
            assert native.used_bits(kernels, values.tobytes()) == used
            values[place : place + 1] = 0


@pytest.mark.parametrize("value_type", [0, 1], ids=["int32", "float32"])
def test_checks_are_the_models(value_type: int) -> None:
    rng = random.Random(3)
    for workers in (1, 2, 3, 32, 33, 300, 1024):
        epoch, count = rng.getrandbits(32), 7
        model = CheckModel(KEY, epoch, workers, count)
        of = some_round(rng, value_type, count)
        # Also those whose number's lower byte is of what is no worker (0xFD to 0xFF).
        for worker in range(workers) if workers < 99 else (0, 31, 32, 253, 255, 256, workers - 1):
            values = [rng.randrange(-(2**31), 2**31) for _ in range(count)]
            claim = rng.choice(list(Claim))
            check = SumCheck(VerifyMode.KEYED, KEY, epoch, worker, workers, count)
            sent, _ = contribute(check, of, wire(np.array(values)), claim)
            assert sent == model.contribute(of, worker, values, claim)


def test_no_right_sum_is_refused_and_no_flipped_bit_is_missed() -> None:
    rng, numbers = random.Random(4), np.random.default_rng(4)
    for _ in range(JOBS):
        workers = rng.choice((rng.randint(1, 32), rng.randint(1, 32), rng.randint(33, 120)))
        count = rng.choice((1, 7, 64, 256))
        mode = rng.choice((VerifyMode.ACCIDENTS, VerifyMode.KEYED))
        value_type = rng.choice((0, 1))
        key, epoch = rng.randbytes(16), rng.getrandbits(32)
        checks = [SumCheck(mode, key, epoch, w, workers, count) for w in range(workers)]
        of = some_round(rng, value_type, count)
        limit = 2**31 // workers
        parts = numbers.integers(-limit, limit, (workers, count))
        made = [rng.choice(list(Claim)) for _ in range(workers)]
        sent = [
            contribute(check, of, wire(part), claim)
            for check, part, claim in zip(checks, parts, made, strict=True)
        ]
        whole = sum(one for one, _ in sent) % 2**32
        total = parts.sum(axis=0)
        sums = wire(total)
        counts = [made.count(claim) for claim in list(Claim)[1:]]
        exactly = ((counts[0],) * 2, (counts[1],) * 2, (counts[2],) * 2)
        for check, (_, expected) in zip(checks, sent, strict=True):
            assert verify(check, of, expected, sums, whole, exactly)
        judge, expected = checks[0], sent[0][1]
        for _ in range(40):
            wrong = bytearray(sums)
            wrong[rng.randrange(len(wrong))] ^= 1 << rng.randrange(8)
            assert not verify(judge, of, expected, bytes(wrong), whole, exactly)
        for _ in range(40 * (count > 1)):  # of one bit in two values: the topmost, too
            one, other = rng.sample(range(count), 2)
            flips = np.zeros(count, np.int32)
            flips[[one, other]] = rng.choice((-(2**31), 1 << rng.randrange(31)))
            wrong = bytearray(wire(total.astype(np.int32) ^ flips))
            assert not verify(judge, of, expected, bytes(wrong), whole, exactly)
        for bit in range(32):
            if 1 << bit < 2 * workers:
                continue  # a carry, where the values are right
            assert not verify(judge, of, expected, sums, whole ^ 1 << bit, exactly)


@pytest.mark.parametrize("workers", [32, 33, 1024])
def test_numbers_of_claims_are_found_among_all_that_fit(workers: int) -> None:
    """Of two kinds at once, as with NaN: one by one, or for many workers looked up."""
    rng = random.Random(workers)
    of = CheckRound(7, 8, 1, 9, 0)
    check = SumCheck(VerifyMode.KEYED, KEY, 9, 0, workers, 1)
    model = CheckModel(KEY, 9, workers, 1)
    _, expected = contribute(check, of, b"")
    for _ in range(100):
        scale = rng.choice((0, 1, workers, rng.randint(0, workers)))
        other = rng.randint(0, workers - scale)
        kind = rng.choice((Claim.TOO_LARGE, Claim.NON_FINITE))
        whole = expected + scale * model.worth[Claim.SCALE] + other * model.worth[kind]
        sent = (whole >> 32) - rng.randrange(workers) & 0xFFFFFFFF  # less what lower halves carry
        least, most = max(0, scale - rng.randint(0, 3)), scale + rng.randint(0, 3)
        others = (max(0, other - rng.randint(0, 20)), other + rng.randint(0, 20))
        for bounds, found in (
            ((least, most), True),
            ((scale + 1, workers), False),
            ((0, scale - 1), False),
        ):
            if bounds[0] > bounds[1] or bounds[1] < 0:
                continue
            large = others if kind is Claim.TOO_LARGE else NONE
            non_finite = others if kind is Claim.NON_FINITE else NONE
            told = verify(check, of, expected, b"", sent, (bounds, large, non_finite))
            # What should not be found is, by chance, in n of 2^32 for each number that is tried.
            assert told == found


@pytest.mark.parametrize("mode", [VerifyMode.ACCIDENTS, VerifyMode.KEYED])
def test_one_worker_twice_does_not_stand_for_another(mode: VerifyMode) -> None:
    of = CheckRound(5, 6, 1, 7, 4)
    values = np.arange(4)
    checks = [SumCheck(mode, KEY, 9, w, 4, 4) for w in range(4)]
    sent = [contribute(check, of, wire(values)) for check in checks]
    for twice in range(4):
        for missing in range(4):
            counted = [w for w in range(4) if w != missing] + [twice]
            whole = sum(sent[w][0] for w in counted) % 2**32
            found = verify(checks[0], of, sent[0][1], wire(4 * values), whole)
            assert found == (twice == missing)


def test_another_key_or_epoch_does_not_verify() -> None:
    of = CheckRound(5, 6, 1, 7, 4)
    values = wire(np.arange(4))
    right = SumCheck(VerifyMode.KEYED, KEY, 9, 0, 1, 4)
    sent, expected = contribute(right, of, values)
    assert verify(right, of, expected, values, sent)
    for key, epoch in ((bytes(16), 9), (KEY, 10)):
        other = SumCheck(VerifyMode.KEYED, key, epoch, 0, 1, 4)
        _, others = contribute(other, of, values)
        assert not verify(other, of, others, values, sent)
