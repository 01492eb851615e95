"""The check of a sum, as short as it can be said: this file is its specification.

Worker w of n sends, beside its values v_i, the check

    c_w = sum of a_i v_i  +  f(w) - f(w + 1 mod n)  +  (r if w = 0)  +  the worth of its claim

The switch adds checks as it adds values. The pads f cancel, and so a worker takes a result S_i
only if the sum of the checks is sum of a_i S_i + r + claims that fit what the result says. The
weights a_i and the worth of claims are drawn for the epoch, the pads f and r for the round: from a
key that all workers have and nobody else, and from all that they must say alike.

All that is modulo 2^64, for no sum in a packet wraps, and the upper half travels. The lower halves,
which do not, carry at most n - 1 into the sum: so a worker takes n numbers of 2^32. Values of int32
whose sum might wrap are no packet's: their halves are, in two rounds (:func:`halves`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

WORD = (1 << 64) - 1
_RESULT_PAD, _WEIGHT, _CLAIM = 0xFFFF, 0xFFFE, 0xFFFD


class Claim(IntEnum):
    """What a worker says in a round that is no sum: one claim at most."""

    NONE = 0
    SCALE = 1  # the exponent that the values are scaled by is its own
    TOO_LARGE = 2  # its values do not fit the guessed exponent: it sends zeros
    NON_FINITE = 3  # it holds Inf or NaN


Bounds = tuple[int, int]
"""The least and the most workers that may have made a claim."""


@dataclass(frozen=True)
class CheckRound:
    """What all workers say alike in a round, or their pads do not cancel."""

    number: int  # the sequence number, not wrapped around: it never comes twice; below 2^56
    digest: int = 0  # of all that was submitted up to the tensor, 64 bits
    value_type: int = 1
    exponent: int = 0  # of int32: 0, or which half the values are, 1 the lower and 2 the upper one
    value_count: int = 0

    def words(self, epoch: int, which: int) -> tuple[int, int, int]:
        """What the pseudo-random function is of; ``which`` number of the round it is for.

        ``which`` is 16 bits: a worker, 0..1023, or one of the names above.
        """
        said = self.value_type << 12 | self.value_count | self.exponent << 16
        above, below = divmod(which, 256)
        return above << 56 | self.number, epoch << 32 | below << 24 | said, self.digest


class CheckModel:
    """The check of one epoch of a job with a key, seen from everywhere at once.

    ``bits`` of a value and of a check: 32. Fewer, for searches of all there is, change no more.
    """

    def __init__(
        self,
        key: bytes,
        epoch: int,
        workers: int,
        values: int,
        *,
        bits: int = 32,
    ) -> None:
        self.key, self.epoch, self.workers = key, epoch, workers
        self.bits = bits
        self.modulus = 1 << 2 * bits
        self.weights = [
            self.random(CheckRound(i, value_type=0), _WEIGHT) | 1 for i in range(values)
        ]  # odd
        self.worth = [
            0 if claim is Claim.NONE else self.random(CheckRound(claim, value_type=0), _CLAIM) | 1
            for claim in Claim
        ]

    def random(self, of: CheckRound, which: int) -> int:
        """A pseudo-random number, as wide as the sums are here."""
        return siphash(self.key, of.words(self.epoch, which)) % self.modulus

    def contribute(
        self, of: CheckRound, worker: int, values: Sequence[int], claim: Claim = Claim.NONE
    ) -> int:
        """The header's field ``check``."""
        following = (worker + 1) % self.workers
        whole = self.weigh(values) + self.worth[claim]
        whole += self.random(of, worker) - self.random(of, following)
        if worker == 0:
            whole += self.random(of, _RESULT_PAD)
        return whole % self.modulus >> self.bits

    def verify(
        self,
        of: CheckRound,
        sums: Sequence[int],
        check: int,
        scale: Bounds = (0, 0),
        too_large: Bounds = (0, 0),
        non_finite: Bounds = (0, 0),
    ) -> bool:
        """Whether a result with these sums and this sum of checks is one to take."""
        base = self.weigh(sums) + self.random(of, _RESULT_PAD)
        return any(
            self._agrees(base + claimed, check)
            for claimed in self._claims(scale, too_large, non_finite)
        )

    def weigh(self, values: Sequence[int]) -> int:
        """The weighted sum of a packet's values; none weigh nothing."""
        return sum(a * v for a, v in zip(self.weights, values, strict=False))

    def _claims(self, *bounds: Bounds) -> Iterator[int]:
        scales, larges, non_finites = (range(least, most + 1) for least, most in bounds)
        for i in scales:
            for j in larges:
                for k in non_finites:
                    if i + j + k <= self.workers:
                        yield i * self.worth[1] + j * self.worth[2] + k * self.worth[3]

    def _agrees(self, whole: int, check: int) -> bool:
        whole %= self.modulus
        return ((whole >> self.bits) - check) % (1 << self.bits) < self.workers


def never_wraps(values: Sequence[int], workers: int) -> bool:
    """Whether a sum of so many workers' values, all like these, stays within int32."""
    spare_bits = (workers - 1).bit_length()
    limit = 1 << (31 - spare_bits)
    return all(-limit <= value < limit for value in values)


def halves(values: Sequence[int]) -> tuple[list[int], list[int]]:
    """The lower and the upper half of values of int32, whose sums do not wrap."""
    return [value & 0xFFFF for value in values], [value >> 16 for value in values]


def join(lower: Sequence[int], upper: Sequence[int]) -> list[int]:
    """The sums, modulo 2^32 and as int32, that the sums of halves are of."""
    wholes = (low + (high << 16) for low, high in zip(lower, upper, strict=True))
    return [(whole + 2**31) % 2**32 - 2**31 for whole in wholes]


def siphash(key: bytes, words: Sequence[int]) -> int:
    """SipHash-2-4 of 64-bit words, as of their bytes, little endian."""
    data = b"".join(word.to_bytes(8, "little") for word in words)
    return siphash_of(key, data)


def siphash_of(key: bytes, data: bytes) -> int:
    """SipHash-2-4 (Aumasson and Bernstein, 2012): 64 bits, of any bytes, with 16 bytes of key."""
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    state = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])
    for at in range(0, len(padded), 8):
        block = int.from_bytes(padded[at : at + 8], "little")
        state[3] ^= block
        _sip_rounds(state, 2)
        state[0] ^= block
    state[2] ^= 0xFF
    _sip_rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_rounds(state: list[int], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a = (a + b) & WORD
        b = _rotated(b, 13) ^ a
        a = _rotated(a, 32)
        c = (c + d) & WORD
        d = _rotated(d, 16) ^ c
        a = (a + d) & WORD
        d = _rotated(d, 21) ^ a
        c = (c + b) & WORD
        b = _rotated(b, 17) ^ c
        c = _rotated(c, 32)
    state[:] = a, b, c, d


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & WORD
