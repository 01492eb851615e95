"""The check of a sum: it holds for all that is right, and for how little that is not.

The searches are of a small word: values and checks of 4 bits, sums modulo 2^8, all else as it is.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from ina.protocol.check_model import (
    CheckModel,
    CheckRound,
    Claim,
    halves,
    join,
    never_wraps,
    siphash_of,
)

BITS = 4
SMALL = 1 << BITS


def test_siphash_is_siphash() -> None:
    # The paper's example (appendix A).
    assert siphash_of(bytes(range(16)), bytes(range(15))) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("workers", range(1, 6))
def test_what_is_right_is_taken(workers: int) -> None:
    """Whatever the values, the pads and the claims: also where lower halves carry."""
    rng = random.Random(workers)
    for number in range(300):
        job = CheckModel(rng.randbytes(16), rng.getrandbits(32), workers, 2, bits=BITS)
        low, high = -SMALL // 2 // workers, SMALL // 2 // workers
        parts = [[rng.randint(low, high) for _ in range(2)] for _ in range(workers)]
        claims = [rng.choice(list(Claim)) for _ in range(workers)]
        of = CheckRound(number, exponent=9, value_count=2)
        check = sum(
            job.contribute(of, worker, part, claim)
            for worker, (part, claim) in enumerate(zip(parts, claims, strict=True))
        )
        sums = [sum(column) for column in zip(*parts, strict=True)]
        exactly = [(claims.count(claim),) * 2 for claim in list(Claim)[1:]]
        assert job.verify(of, sums, check % SMALL, *exactly)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_error_passes_for_as_many_weights_as_there_are_carries(workers: int) -> None:
    """n of 2^bits, whatever was changed in values and check: over all odd weights, none more."""
    job = CheckModel(bytes(16), 1, workers, 2, bits=BITS)
    fresh = random.Random(workers).randrange(job.modulus)
    for first, second in itertools.product(range(-SMALL + 1, SMALL), repeat=2):
        if first == second == 0:
            continue
        passed: Counter[int] = Counter()
        # The weight of the value that is changed takes all values, the other's is anything.
        moving = 0 if first else 1
        for weight in range(1, job.modulus, 2):
            job.weights[moving], job.weights[1 - moving] = weight, fresh | 1
            whole = (job.weigh((first, second)) + fresh) % job.modulus >> BITS
            passed.update((whole - carry) % SMALL for carry in range(workers))  # these shifts
        assert passed == dict.fromkeys(range(SMALL), job.modulus // 2 * workers // SMALL)


@pytest.mark.parametrize("large", [False, True], ids=["whole", "halves"])
def test_two_flips_of_one_bit_do_not_pass_in_sums_of_int32(large: bool) -> None:
    """Whether these might wrap or not: of the topmost bits, too, in any two values."""
    for seed in range(20):
        rng = random.Random(seed)
        workers, count = rng.randint(1, 4), 4
        job = CheckModel(rng.randbytes(16), 1, workers, count)
        limit = 2**31 if large else 2**29
        parts = [[rng.randrange(-limit, limit) for _ in range(count)] for _ in range(workers)]
        assert all(never_wraps(part, workers) for part in parts) or large
        rounds = list(zip(*map(halves, parts), strict=True)) if large else [parts]
        found = []
        for number, sent in enumerate(rounds):
            of = CheckRound(
                number, value_type=0, exponent=1 + number if large else 0, value_count=count
            )
            check = sum(job.contribute(of, w, one) for w, one in enumerate(sent)) % 2**32
            sums = [sum(column) for column in zip(*sent, strict=True)]
            assert job.verify(of, sums, check)
            for (one, other), bit in itertools.product(
                itertools.combinations(range(count), 2), range(32)
            ):
                wrong = list(sums)
                wrong[one] = signed(wrong[one] ^ 1 << bit)
                wrong[other] = signed(wrong[other] ^ 1 << bit)
                assert not job.verify(of, wrong, check)
            found.append(sums)
        total = join(*found) if large else found[0]
        assert total == [signed(sum(column)) for column in zip(*parts, strict=True)]


def signed(value: int) -> int:
    """As int32, modulo 2^32."""
    return (value + 2**31) % 2**32 - 2**31


class FixedPads(CheckModel):
    """f(0), f(1), ... and r, as they are put in."""

    pads: tuple[int, ...] = ()

    def random(self, of: CheckRound, which: int) -> int:
        return self.pads[min(which, self.workers)] if self.pads else super().random(of, which)


def test_checks_say_nothing_of_the_weights() -> None:
    """Over all pads, what n workers send is any n numbers, each as often: for any values."""
    bits, workers = 2, 2
    modulus = 1 << 2 * bits
    job = FixedPads(bytes(16), 1, workers, 1, bits=bits)
    seen: Counter[tuple[int, ...]] = Counter()
    for job.pads in itertools.product(range(modulus), repeat=workers + 1):
        seen[tuple(job.contribute(CheckRound(0), worker, [1 + worker]) for worker in (0, 1))] += 1
    assert len(seen) == (1 << bits) ** workers
    assert len(set(seen.values())) == 1


@pytest.mark.parametrize(
    "other",
    [
        CheckRound(8, 5, 1, 100, 4),
        CheckRound(7, 6, 1, 100, 4),
        CheckRound(7, 5, 2, 100, 4),
        CheckRound(7, 5, 1, 101, 4),
        CheckRound(7, 5, 1, 100, 0),
    ],
    ids=["round", "digest", "type", "exponent", "count"],
)
def test_pads_of_workers_that_say_something_else_do_not_cancel(other: CheckRound) -> None:
    job = CheckModel(b"a key of 16 byte", 3, 3, 4)
    of = CheckRound(7, 5, 1, 100, 4)
    for odd in range(3):
        check = sum(job.contribute(other if w == odd else of, w, [0] * 4) for w in range(3))
        assert not job.verify(of, [0] * 4, check % 2**32)
    check = sum(job.contribute(of, w, [0] * 4) for w in range(3))
    assert job.verify(of, [0] * 4, check % 2**32)


def test_claims_must_be_as_many_as_the_result_says() -> None:
    job = CheckModel(b"a key of 16 byte", 3, 4, 1)
    for made in itertools.combinations_with_replacement(Claim, 4):
        of = CheckRound(1)
        check = sum(job.contribute(of, w, [], claim) for w, claim in enumerate(made)) % 2**32
        for bounds in itertools.product(((0, 0), (1, 4)), repeat=3):
            fits = all(
                least <= made.count(claim) <= most
                for claim, (least, most) in zip(list(Claim)[1:], bounds, strict=True)
            )
            assert job.verify(of, [], check, *bounds) == fits
