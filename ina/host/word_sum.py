"""Sums of float tensors by others than the switch, with the bits that the network would give them.

As in packets, a chunk's values share one exponent, on which the ranks agree, and become integers,
two or four in a word where they are packed. Of that two collectives are left to whoever sums them,
each of them exact in any order: the maximum of the chunks' *codes*, bytes, and the sum of words,
int32. Inf, NaN and zeros need no others: a code says them, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ina.errors import InvalidInputError
from ina.extension.quantize import BlockWords
from ina.host.arrays import VALUE_TYPES
from ina.host.recovery import Ranges
from ina.protocol.coding import values_per_word
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType

Octets = NDArray[np.uint8]

_ELEM_BYTES = {value_type: dtype.itemsize for dtype, value_type in VALUE_TYPES.items()}


class Place(NamedTuple):
    """A rank's, in the job whose bits are wanted."""

    rank: int
    world_size: int
    values_per_packet: int
    """Words of a packet."""


class WordSum:
    """One rank's part in the sum of one tensor, or of some of its chunks.

    Ranks take the same steps: :meth:`codes`, whose maximum over the ranks goes to :meth:`words`,
    whose sum over the ranks goes to :meth:`results`. `values` is the memory of the chunks, one
    after the other: C-contiguous bytes. All methods raise InvalidInputError where what they are
    given has another size.
    """

    def __init__(
        self, what: Collective, place: Place, number: int, chunks: Ranges | None = None
    ) -> None:
        """`what`: of floats. `number`: the tensor's in the order of submission, from 1; random bits
        depend on it. `chunks`: None: all.

        Raises InvalidInputError: there are no such chunks, or int32, which needs none of this.
        """
        try:
            self._native = BlockWords(what, place.world_size, place.rank, number, place[2])
        except ValueError as error:
            raise InvalidInputError(f"{what}: {error}") from None
        self._chunk_elems = place.values_per_packet * values_per_word(what.value_type)
        self._elem_bytes = _ELEM_BYTES[ValueType(what.value_type).element]
        count = -(-what.elems // self._chunk_elems)
        self._what, self._place, self._number = what, place, number
        self._chunks: Ranges = ((0, count),) if chunks is None else chunks
        self._spans: list[tuple[int, int]] = []  # first element, elements
        for begin, end in self._chunks:
            if not 0 <= begin <= end <= count:
                raise InvalidInputError(f"{what} has no chunks {begin}..{end - 1}")
            first = begin * self._chunk_elems
            self._spans.append((first, min(end * self._chunk_elems, what.elems) - first))
        self.elems = sum(elems for _, elems in self._spans)
        self.size_bytes = self.elems * self._elem_bytes
        self.chunks = sum(self._native.blocks(elems) for _, elems in self._spans)
        self._words = sum(self._native.words(elems) for _, elems in self._spans)

    def parts(self, words: int) -> Iterator[WordSum]:
        """Sums of some of its chunks each, in their order: of so many words, but for the last."""
        part: list[tuple[int, int]] = []
        room = most_chunks = max(1, words // self._place.values_per_packet)
        for begin, end in self._chunks:
            while begin < end:
                cut = min(end, begin + room)
                part.append((begin, cut))
                room -= cut - begin
                begin = cut
                if room == 0:
                    yield WordSum(self._what, self._place, self._number, tuple(part))
                    part, room = [], most_chunks
        if part:
            yield WordSum(self._what, self._place, self._number, tuple(part))

    def codes(self, values: Octets) -> Octets:
        """Those of this rank's chunks, one byte each."""
        _check("values", values, np.uint8, self.size_bytes)
        codes = np.empty(self.chunks, np.uint8)
        for _, elems, at, code, _ in self._places(values, codes, None):
            self._native.find_codes(at, elems, code)
        return codes

    def words(self, values: Octets, codes: Octets) -> NDArray[np.int32]:
        """What this rank gives to the sum."""
        _check("values", values, np.uint8, self.size_bytes)
        _check("codes", codes, np.uint8, self.chunks)
        words = np.empty(self._words, np.int32)
        for first, elems, at, code, word in self._places(values, codes, words):
            self._native.write(at, first, elems, code, word)
        return words

    def results(self, words: NDArray[np.int32], codes: Octets, values: Octets) -> None:
        """Write the sum, or average, to `values`. `words` are spoiled."""
        _check("values", values, np.uint8, self.size_bytes)
        _check("codes", codes, np.uint8, self.chunks)
        _check("words", words, np.int32, self._words)
        for _, elems, at, code, word in self._places(values, codes, words):
            self._native.read(word, elems, code, at)

    def _places(
        self, values: Octets, codes: Octets, words: NDArray[np.int32] | None
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Of each range: its first element, how many, and the addresses of all that is its."""
        at, code = values.ctypes.data, codes.ctypes.data
        word = 0 if words is None else words.ctypes.data
        for first, elems in self._spans:
            yield first, elems, at, code, word
            at += elems * self._elem_bytes
            code += self._native.blocks(elems)
            word += self._native.words(elems) * 4


def _check(name: str, array: NDArray[Any], dtype: type[np.generic], size: int) -> None:
    if array.dtype != dtype or array.size != size or not array.flags.c_contiguous:
        wanted = f"{size} of {np.dtype(dtype)}"
        raise InvalidInputError(f"{name}: {array.size} of {array.dtype}: want {wanted}, contiguous")
