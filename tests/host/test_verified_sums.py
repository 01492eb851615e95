"""No wrong sum is given out: cores and the reference switch, with damage everywhere."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ina._native.host import Corruption, VerifyMode, WorkerCore
from ina.protocol.codec import decode, encode
from ina.protocol.spec import Kind
from tests.host.damage import (
    DamagedNetwork,
    Tensor,
    flip_bit,
    has_stopped,
    random_tensors,
    wrong_sums,
)
from tests.host.network import Array, Link, Network

VALUES = 8
KEY = bytes(range(100, 116))
LONG = 10 if os.environ.get("INA_LONG_TESTS") else 1
VERIFYING = [VerifyMode.ACCIDENTS, VerifyMode.KEYED]


def submit(network: Network, number: int, tensor: Tensor) -> None:
    op, parts, outs = tensor
    for rank, part in enumerate(parts):
        network.submit(rank, number, part, outs[rank], op)


def submit_all(network: Network, tensors: Sequence[Tensor]) -> None:
    for number, tensor in enumerate(tensors, 1):
        submit(network, number, tensor)


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
    for seed in range(20 * LONG):
        rng = random.Random(seed)
        workers = rng.choice((1, 2, 3, 4, 7, 32))
        slots = rng.choice((2, 8, 16))
        network = Network(
            workers,
            values=VALUES,
            slots=slots,
            link=Link(loss=rng.choice((0, 0.05)), duplication=0.02, late=0.02),
            seed=seed,
            first_seq=2**32 - 16,
            shares=[rng.choice((1, 2)) for _ in range(workers)] if slots > 2 else None,
            verify=mode,
            check_key=KEY,
        )
        tensors = random_tensors(rng, workers, 60, 8)
        if rng.random() < 0.5:
            submit_all(network, tensors)
            network.run(len(tensors))
        else:
            tensors = again_and_again(rng, tensors)
            for number in range(1, len(tensors) + 1):
                submit(network, number, tensors[number - 1])
                network.run(number)
        assert wrong_sums(network, VALUES, tensors) == []
        for core in network.workers:
            assert core.counters.corrupted == 0
            guessed += core.counters.guessed_chunks
            missed += core.counters.missed_guesses
            rounds += core.counters.exponent_rounds
    assert guessed > 0
    assert rounds > missed > 0


@pytest.mark.parametrize("where", ["up", "down", "memory"])
@pytest.mark.parametrize("mode", VERIFYING)
def test_no_flipped_bit_makes_a_wrong_sum(mode: VerifyMode, where: str) -> None:
    """Of packets to the switch, from it, and of its registers: the job goes on, or it ends."""
    went_on = damaged = blamed = 0
    for seed in range(60 * LONG):
        rng = random.Random(seed)
        workers = rng.choice((1, 2, 3, 4))
        network = DamagedNetwork(
            workers, values=VALUES, slots=8, seed=seed, verify=mode, check_key=KEY
        )
        setattr(network, where, 0.03)
        tensors = random_tensors(rng, workers, 60, 6)
        if rng.random() < 0.5:
            submit_all(network, tensors)
            network.run_out(len(tensors))
        else:
            tensors = again_and_again(rng, tensors)
            for number in range(1, len(tensors) + 1):
                submit(network, number, tensors[number - 1])
                network.run_out(number)
                if any(has_stopped(network, rank) for rank in range(workers)):
                    network.run_out(number + 1)  # the others are told, or wait in vain
                    break
        assert wrong_sums(network, VALUES, tensors) == [], f"seed {seed}"
        damaged += network.damaged
        went_on += all(len(done) == len(tensors) for done in network.done)
        blamed += sum(core.mismatch is not None for core in network.workers)
        for rank in range(workers):
            idle = network.workers[rank].next_deadline_ns(network.now_ns) is None
            assert idle or has_stopped(network, rank), f"seed {seed}: rank {rank} hangs"
    assert damaged > 100 * LONG
    assert went_on > 0
    # No rank has done anything; but what two flips make of one digest may look like it.
    assert blamed <= LONG


def test_without_verification_flipped_bits_make_wrong_sums() -> None:
    """What the test above finds nothing of is there to be found."""
    wrong = 0
    for seed in range(20):
        rng = random.Random(seed)
        network = DamagedNetwork(2, values=VALUES, slots=8, seed=seed)
        network.up = 0.05
        tensors = random_tensors(rng, 2, 60, 6)
        submit_all(network, tensors)
        network.run_out(len(tensors))
        wrong += len(wrong_sums(network, VALUES, tensors))
    assert wrong > 5


def one_sum(network: DamagedNetwork, workers: int) -> list[WorkerCore]:
    parts: list[Array] = [np.arange(VALUES, dtype=np.int32)] * workers
    outs: list[Array] = [np.empty(VALUES, np.int32) for _ in range(workers)]
    tensors = [("sum", parts, outs)]
    submit_all(network, tensors)
    network.run_out(1)
    assert wrong_sums(network, VALUES, tensors) == []
    return network.workers


def corrupt_value(rng: random.Random, packet: bytes) -> bytes:
    damaged = bytearray(packet)
    damaged[28 + 4 * 5 + 2] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def test_a_damaged_result_is_dropped_counted_and_asked_for_again() -> None:
    network = DamagedNetwork(2, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    network.down, network.left, network.damage = 1.0, 3, corrupt_value
    cores = one_sum(network, 2)
    assert all(len(done) == 1 for done in network.done)
    assert sum(core.counters.corrupted for core in cores) == 3
    assert sum(core.counters.retransmissions for core in cores) >= 3
    assert all(core.corruption is None for core in cores)


def only(cores: list[WorkerCore]) -> Corruption:
    (found,) = [core.corruption for core in cores if core.corruption is not None]
    return found


def test_a_wrong_sum_in_the_slot_ends_the_job() -> None:
    """It comes again each time: from one worker all that is known is which value it is."""
    network = DamagedNetwork(1, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    network.up, network.left, network.damage = 1.0, 1, corrupt_value
    found = only(one_sum(network, 1))
    assert (found.results, found.same, found.first_value) == (8, True, 5)
    assert (found.operation, found.seq, found.own_is_missing) == (1, 0, False)
    assert not network.done[0]


def test_a_way_that_damages_all_is_told_from_a_wrong_sum() -> None:
    network = DamagedNetwork(1, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    network.down, network.damage = 1.0, corrupt_value
    found = only(one_sum(network, 1))
    assert not found.same


def test_a_key_bounds_the_tries() -> None:
    """However many chunks they are spread over: each try of a forger's is a chance."""
    network = DamagedNetwork(1, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    network.down, network.damage = 0.5, corrupt_value
    array = np.arange(VALUES * 1000, dtype=np.int32)
    out = np.empty_like(array)
    network.submit(0, 1, array, out)
    network.run_out(1)
    found = only(network.workers)
    assert found.all_results == 256 or found.results == 8
    assert network.workers[0].counters.corrupted <= 256


@pytest.mark.parametrize("workers", [2, 4])
def test_forged_contributions_do_not_get_into_a_sum(workers: int) -> None:
    """With every address right, the header a member's, and a check as somebody without a key can
    make it: nothing, what the member sent, what it sent elsewhere, or at random."""
    taken = ended = 0
    for seed in range(200 * LONG):
        rng = random.Random(seed)

        def forge(_: random.Random, packet: bytes, rng: random.Random = rng) -> bytes:
            header, values = decode(packet)
            forged = values.copy()
            if forged.size:
                forged[rng.randrange(forged.size)] += np.int32(rng.choice((1, -1, 2**20, 2**30)))
            check = rng.choice((0, header.check, rng.getrandbits(32), header.check + 1))
            return encode(replace(header, check=check % 2**32), forged)

        network = DamagedNetwork(
            workers, values=VALUES, slots=8, seed=seed, verify=VerifyMode.KEYED, check_key=KEY
        )
        network.up, network.left, network.damage = 0.3, 1, forge
        parts: list[Array] = [
            np.linspace(-1, rank + 1, VALUES * 6, dtype=np.float32) for rank in range(workers)
        ]
        tensors = [("sum", parts, [np.empty_like(part) for part in parts])]
        submit_all(network, tensors)
        network.run_out(1)
        taken += len(wrong_sums(network, VALUES, tensors))
        ended += all(has_stopped(network, rank) for rank in range(workers))
    assert taken == 0
    assert ended > 0


def test_a_worker_without_verification_does_not_fit_in() -> None:
    network = DamagedNetwork(2, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    other = Network(2, values=VALUES, slots=2)
    network.workers[1] = other.workers[1]
    parts = [np.ones(VALUES, np.int32), np.ones(VALUES, np.int32)]
    for rank, part in enumerate(parts):
        network.submit(rank, 1, part, part.copy())
    network.run_out(1)
    assert network.workers[0].corruption is not None
    assert not network.done[0]


def test_ranks_that_differ_are_told_as_such() -> None:
    network = DamagedNetwork(2, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    for rank, elems in enumerate((VALUES, VALUES - 1)):
        part = np.ones(elems, np.int32)
        network.submit(rank, 1, part, np.empty_like(part))
    network.run_out(1)
    for core in network.workers:
        assert core.mismatch is not None
        assert core.corruption is None


def test_a_damaged_digest_is_not_taken_for_ranks_that_differ() -> None:
    """Nor where other results of the packet were damaged, too, and did not verify."""
    network = DamagedNetwork(2, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
    digests = iter((False, True, True, False, True))

    def damage(rng: random.Random, packet: bytes) -> bytes:
        packet = corrupt_value(rng, packet)
        if next(digests):
            packet = packet[:22] + flip_bit(rng, packet[22:24]) + packet[24:]
        return packet

    network.down, network.left, network.damage = 1.0, 5, damage
    cores = one_sum(network, 2)
    assert all(len(done) == 1 for done in network.done)
    assert all(core.mismatch is None for core in cores)
    assert sum(core.counters.corrupted for core in cores) == 5


@pytest.mark.parametrize("missing", [False, True])
def test_a_slot_that_one_flipped_bit_spoils_is_not_taken_for_ranks_that_differ(
    missing: bool,
) -> None:
    """Whether it is of the digest, or of the bitmap, so that a contribution is not in the sums."""
    network = DamagedNetwork(2, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)
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

    network.up, network.down, network.damage = 1.0, 1.0, listen
    cores = one_sum(network, 2)
    assert all(core.mismatch is None for core in cores)
    assert any(core.corruption is not None and core.corruption.same for core in cores)


def test_a_flipped_digest_ends_no_job() -> None:
    network = DamagedNetwork(2, values=VALUES, slots=2, verify=VerifyMode.KEYED, check_key=KEY)

    def flip_digest(rng: random.Random, packet: bytes) -> bytes:
        return packet[:22] + flip_bit(rng, packet[22:24]) + packet[24:]

    network.down, network.up, network.damage = 1.0, 1.0, flip_digest
    cores = one_sum(network, 2)
    assert all(len(done) == 1 for done in network.done)
    assert all(core.mismatch is None for core in cores)
