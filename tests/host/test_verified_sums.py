"""No wrong sum is given out: cores and the P4 program, with damage everywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ina._native.host import Corruption, VerifyMode
from ina._native.sim import Worker, WorkerEvent
from ina.protocol.codec import decode, encode
from ina.protocol.spec import HEADER_BYTES, Kind
from tests.host.damage import Damage, Damager, Tensor, flip_bit, random_tensors, wrong_sums
from tests.selection import LONG
from tests.worlds.virtual.cores import Array
from tests.worlds.virtual.star import Star, late, scattered

VALUES = 64
MOST_ELEMS = 480
KEY = bytes(range(100, 116))
MORE = 10 if LONG else 1
"""As many seeds, in make test-long."""
VERIFYING = [VerifyMode.ACCIDENTS, VerifyMode.KEYED]


def submit(star: Star, number: int, tensor: Tensor) -> None:
    op, parts, outs = tensor
    for rank, part in enumerate(parts):
        star.submit(rank, number, part, outs[rank], op)


def submit_all(star: Star, tensors: Sequence[Tensor]) -> None:
    for number, tensor in enumerate(tensors, 1):
        submit(star, number, tensor)


def again_and_again(rng: random.Random, tensors: list[Tensor]) -> list[Tensor]:
    """Small ones, many times, one after the other: then exponents are guessed, right and wrong."""
    found = []
    with np.errstate(all="ignore"):  # inf * 0
        for op, parts, _ in [one for one in tensors if one[1][0].size <= VALUES * 4][:2] * 6:
            scale = rng.choice((0, 1, 1, 1, 4))
            scaled = [(part * scale).astype(part.dtype) for part in parts]
            found.append((op, scaled, [np.empty_like(part) for part in parts]))
    return found


@pytest.mark.parametrize("mode", VERIFYING)
def test_right_sums_are_never_refused(mode: VerifyMode) -> None:
    """All types, exponents agreed and guessed, zeros, NaN, lossy links, lanes in several shares."""
    guessed = missed = rounds = 0
    for seed in range(40 if MORE == 1 else 100 * MORE):
        rng = random.Random(seed)
        workers = rng.choice((1, 2, 3, 4, 7, 32))
        slots = rng.choice((2, 8, 16))
        loss = rng.choice((0, 0.05))
        star = Star(
            workers,
            slots=slots,
            way=scattered(loss, 0.02),
            back=late(0.02, loss, 0.02),
            seed=seed,
            first_seq=2**32 - 16,
            shares=[rng.choice((1, 2)) for _ in range(workers)] if slots > 2 else None,
            verify=mode,
            check_key=KEY,
        )
        tensors = random_tensors(rng, workers, MOST_ELEMS, 8)
        if rng.random() < 0.5:
            submit_all(star, tensors)
            star.run(len(tensors))
        else:
            tensors = again_and_again(rng, tensors)
            for number in range(1, len(tensors) + 1):
                submit(star, number, tensors[number - 1])
                star.run(number)
        assert wrong_sums(star, tensors) == []
        for worker in star.workers:
            assert worker.counters.corrupted == 0
            guessed += worker.counters.guessed_chunks
            missed += worker.counters.missed_guesses
            rounds += worker.counters.exponent_rounds
    assert guessed > 0
    assert rounds > missed > 0


@pytest.mark.parametrize("where", ["up", "down", "memory"])
@pytest.mark.parametrize("mode", VERIFYING)
def test_no_flipped_bit_makes_a_wrong_sum(mode: VerifyMode, where: str) -> None:
    """Of packets to the switch, from it, and of its registers: the job goes on, or it ends."""
    went_on = damaged = blamed = 0
    seeds = 50 if MORE == 1 else 300 * MORE
    for seed in range(seeds):
        rng = random.Random(seed)
        workers = rng.choice((1, 2, 3, 4))
        star = Star(workers, slots=8, seed=seed, verify=mode, check_key=KEY)
        damager = Damager(star, seed)
        setattr(damager, where, 0.03)
        tensors = random_tensors(rng, workers, MOST_ELEMS, 6)
        if rng.random() < 0.5:
            submit_all(star, tensors)
            star.run_out(len(tensors))
        else:
            tensors = again_and_again(rng, tensors)
            for number in range(1, len(tensors) + 1):
                submit(star, number, tensors[number - 1])
                star.run_out(number)
                if any(star.failed):
                    star.run_out(number + 1)  # the others are told, or wait in vain
                    break
        assert wrong_sums(star, tensors) == [], f"seed {seed}"
        damaged += damager.damaged
        went_on += all(len(done) == len(tensors) for done in star.done)
        blamed += star.failed.count(WorkerEvent.MISMATCH)
        for rank, worker in enumerate(star.workers):
            counted = worker.counters
            idle = counted.tensors_done == counted.tensors_submitted
            assert idle or star.failed[rank], f"seed {seed}: rank {rank} hangs"
    assert damaged > seeds * 5 // 3
    assert went_on > 0
    # No rank has done anything; but what two flips make of one digest may look like it.
    assert blamed <= MORE


def test_without_verification_flipped_bits_make_wrong_sums() -> None:
    """What the test above finds nothing of is there to be found."""
    wrong = 0
    for seed in range(20):
        rng = random.Random(seed)
        star = Star(2, slots=8, seed=seed)
        Damager(star, seed).up = 0.05
        tensors = random_tensors(rng, 2, MOST_ELEMS, 6)
        submit_all(star, tensors)
        star.run_out(len(tensors))
        wrong += len(wrong_sums(star, tensors))
    assert wrong > 5


def keyed(workers: int, damage: Damage) -> tuple[Star, Damager]:
    star = Star(workers, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    return star, Damager(star, 0, damage)


def one_sum(star: Star) -> list[Worker]:
    parts: list[Array] = [np.arange(VALUES, dtype=np.int32) for _ in star.workers]
    outs: list[Array] = [np.empty(VALUES, np.int32) for _ in star.workers]
    tensors = [("sum", parts, outs)]
    submit_all(star, tensors)
    star.run_out(1)
    assert wrong_sums(star, tensors) == []
    return star.workers


def corrupt_value(rng: random.Random, packet: bytes) -> bytes:
    damaged = bytearray(packet)
    damaged[HEADER_BYTES + 4 * 5 + 2] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def test_a_damaged_result_is_dropped_counted_and_asked_for_again() -> None:
    star, damager = keyed(2, corrupt_value)
    damager.down, damager.left = 1.0, 3
    workers = one_sum(star)
    assert all(len(done) == 1 for done in star.done)
    assert sum(worker.counters.corrupted for worker in workers) == 3
    assert sum(worker.counters.retransmissions for worker in workers) >= 3
    assert all(worker.corruption() is None for worker in workers)


def only(workers: list[Worker]) -> Corruption:
    (found,) = [found for worker in workers if (found := worker.corruption()) is not None]
    return found


def test_a_wrong_sum_in_the_slot_ends_the_job() -> None:
    """It comes again each time: from one worker all that is known is which value it is."""
    star, damager = keyed(1, corrupt_value)
    damager.up, damager.left = 1.0, 1
    found = only(one_sum(star))
    assert (found.results, found.same, found.first_value) == (8, True, 5)
    assert (found.operation, found.seq, found.own_is_missing) == (1, 0, False)
    assert star.failed == [WorkerEvent.CORRUPTED]
    assert not star.done[0]


def test_a_way_that_damages_all_is_told_from_a_wrong_sum() -> None:
    star, damager = keyed(1, corrupt_value)
    damager.down = 1.0
    found = only(one_sum(star))
    assert not found.same


def test_a_key_bounds_the_tries() -> None:
    """However many chunks they are spread over: each try of a forger's is a chance."""
    star, damager = keyed(1, corrupt_value)
    damager.down = 0.5
    array = np.arange(VALUES * 1000, dtype=np.int32)
    star.submit(0, 1, array, np.empty_like(array))
    star.run_out(1)
    found = only(star.workers)
    assert found.all_results == 256 or found.results == 8
    assert star.workers[0].counters.corrupted <= 256


@pytest.mark.parametrize("workers", [2, 4])
def test_forged_contributions_do_not_get_into_a_sum(workers: int) -> None:
    """With every address right, the header a member's, and a check as somebody without a key can
    make it: nothing, what the member sent, what it sent elsewhere, or at random."""

    def forge(rng: random.Random, packet: bytes) -> bytes:
        header, values = decode(packet)
        forged = values.copy()
        if forged.size:
            forged[rng.randrange(forged.size)] += np.int32(rng.choice((1, -1, 2**20, 2**30)))
        check = rng.choice((0, header.check, rng.getrandbits(32), header.check + 1))
        return encode(replace(header, check=check % 2**32), forged)

    taken = ended = 0
    for seed in range(80 if MORE == 1 else 200 * MORE):
        star = Star(workers, slots=8, seed=seed, verify=VerifyMode.KEYED, check_key=KEY)
        damager = Damager(star, seed, forge)
        damager.up, damager.left = 0.3, 1
        parts: list[Array] = [
            np.linspace(-1, rank + 1, VALUES * 6, dtype=np.float32) for rank in range(workers)
        ]
        tensors = [("sum", parts, [np.empty_like(part) for part in parts])]
        submit_all(star, tensors)
        star.run_out(1)
        taken += len(wrong_sums(star, tensors))
        ended += all(star.failed)
    assert taken == 0
    assert ended > 0


def test_a_worker_without_verification_does_not_fit_in() -> None:
    star = Star(2, slots=2, verify=[VerifyMode.KEYED, VerifyMode.OFF], check_key=KEY)
    for rank in range(2):
        part = np.ones(VALUES, np.int32)
        star.submit(rank, 1, part, np.empty_like(part))
    star.run_out(1)
    assert star.workers[0].corruption() is not None
    assert not star.done[0]


def test_ranks_that_differ_are_told_as_such() -> None:
    star = Star(2, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    for rank, elems in enumerate((VALUES, VALUES - 1)):
        part = np.ones(elems, np.int32)
        star.submit(rank, 1, part, np.empty_like(part))
    star.run_out(1)
    assert star.failed == [WorkerEvent.MISMATCH] * 2
    assert all(worker.corruption() is None for worker in star.workers)


def test_a_damaged_digest_is_not_taken_for_ranks_that_differ() -> None:
    """Nor where other results of the packet were damaged, too, and did not verify."""
    digests = iter((False, True, True, False, True))

    def damage(rng: random.Random, packet: bytes) -> bytes:
        packet = corrupt_value(rng, packet)
        if next(digests):
            packet = packet[:22] + flip_bit(rng, packet[22:24]) + packet[24:]
        return packet

    star, damager = keyed(2, damage)
    damager.down, damager.left = 1.0, 5
    workers = one_sum(star)
    assert all(len(done) == 1 for done in star.done)
    assert all(worker.mismatch() is None for worker in workers)
    assert sum(worker.counters.corrupted for worker in workers) == 5


@pytest.mark.parametrize("missing", [False, True])
def test_a_slot_that_one_flipped_bit_spoils_is_not_taken_for_ranks_that_differ(
    missing: bool,
) -> None:
    """Whether it is of the digest, or of the bitmap, so that a contribution is not in the sums."""
    contributed: list[int] = []

    def damage(rng: random.Random, packet: bytes) -> bytes:
        header, values = decode(packet)
        digest = contributed[0] if missing else header.digest ^ 1 << 5
        return encode(replace(header, digest=digest), values + np.int32(1))

    def listen(rng: random.Random, packet: bytes) -> bytes:
        if decode(packet)[0].kind == Kind.CONTRIBUTION:
            contributed.append(decode(packet)[0].digest)
            return packet
        return damage(rng, packet)

    star, damager = keyed(2, listen)
    damager.up = damager.down = 1.0
    workers = one_sum(star)
    assert all(worker.mismatch() is None for worker in workers)
    found = [found for worker in workers if (found := worker.corruption()) is not None]
    assert any(one.same for one in found)


def test_a_flipped_digest_ends_no_job() -> None:
    def flip_digest(rng: random.Random, packet: bytes) -> bytes:
        return packet[:22] + flip_bit(rng, packet[22:24]) + packet[24:]

    star, damager = keyed(2, flip_digest)
    damager.down = damager.up = 1.0
    workers = one_sum(star)
    assert all(len(done) == 1 for done in star.done)
    assert all(worker.mismatch() is None for worker in workers)
