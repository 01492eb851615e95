"""How float tensors travel: in how many bits a value, and rounded how. See docs/protocol.md."""

from __future__ import annotations

from typing import NamedTuple

from ina.errors import InvalidInputError
from ina.protocol.collective import Collective, Rounding
from ina.protocol.spec import MAX_WORLD_SIZE, ValueType


class Coding(NamedTuple):
    """Of whole words, or packed. Integers always travel whole."""

    bits: int = 32
    """Of a word of a packet, for each value: 32, 16 or 8."""
    rounding: Rounding = Rounding.NEAREST

    def __str__(self) -> str:
        """As users write it."""
        return _NAMES[self]

    def of(self, what: Collective) -> Collective:
        """The same collective, of values that travel so."""
        value_type = ValueType(what.value_type).packed_in(self.bits)
        is_packed = value_type.per_word > 1
        return what._replace(
            value_type=value_type, rounding=self.rounding if is_packed else Rounding.NEAREST
        )


WHOLE = Coding()
CODINGS: dict[str, Coding] = {
    "32": WHOLE,
    "16": Coding(16),
    "16-stochastic": Coding(16, Rounding.STOCHASTIC),
    "8": Coding(8),
    "8-stochastic": Coding(8, Rounding.STOCHASTIC),
}
"""By what users write."""
_VALUE_TYPES = {it.value for it in ValueType}
_NAMES = {coding: name for name, coding in CODINGS.items()}

MOST_WORKERS = {32: MAX_WORLD_SIZE, 16: 64, 8: 16}
"""By bits: beyond, a column that has room for a sum leaves a contribution less than 9 bits with its
sign, or 3."""


def coding_of(what: Collective) -> Coding:
    """How the values of a collective travel."""
    return Coding(32 // ValueType(what.value_type).per_word, Rounding(what.rounding))


def checked_coding(name: str, value: str | int) -> Coding:
    """The value of what is called ``name``, if it is one; raises InvalidInputError."""
    coding = CODINGS.get(str(value))
    if coding is None:
        shown = str(value) if str(value).isprintable() and len(str(value)) < 40 else "?"
        raise InvalidInputError(f"{name}={shown}: want {', '.join(CODINGS)}")
    return coding


def values_per_word(value_type: int) -> int:
    """How many a word of a packet holds; 1 of a number that is no value type."""
    return ValueType(value_type).per_word if value_type in _VALUE_TYPES else 1


def column_limit(bits: int, workers: int) -> int:
    """The largest magnitude that a column may have, so that the sum of as many fits it."""
    return ((1 << (bits - 1)) - 1) // workers


def exact_below(bits: int, workers: int) -> int:
    """Whole numbers below this, a power of two, are summed as they are by so many workers."""
    return 1 << ((column_limit(bits, workers) + 1).bit_length() - 1)


def too_narrow(bits: int, workers: int) -> str:
    """What to say of more workers than MOST_WORKERS."""
    wider = min((it for it, most in MOST_WORKERS.items() if most >= workers), default=32)
    return (
        f"columns of {bits} bits have room for sums of {MOST_WORKERS[bits]} workers, not of"
        f" {workers}; wire={wider} has"
    )
